"""The wire format of protobuf: tags, numbers, lengths; within limits, into dictionaries.

A message is read by tables from wire tag to a function that puts the value into its place. Who makes the tables decides
what the result looks like (`protobuf` makes them for Kubernetes types); here is only what all messages share. A tag is
a field's number and how its value is written, in one number, so one look-up both finds a field and checks its form.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from trainmaster.api.meta import Json, Object

# Objects, entries of maps and items of lists. Two bytes can stand for an object with a dozen fields; the biggest real
# bodies (schemas, endpoint lists) have some ten thousand parts.
MOST_PARTS = 100_000
# Levels of JSON, as for all bodies; a message takes two: itself, and the list or map it may be in.
DEEPEST = 128
LEVELS_OF_A_MESSAGE = 2

VARINT, EIGHT_BYTES, CHUNK, FOUR_BYTES = 0, 1, 2, 5
_FORMS = {VARINT: "a number", EIGHT_BYTES: "eight bytes", CHUNK: "bytes", FOUR_BYTES: "four bytes"}
_CUT_SHORT = "the message ends in the middle of a field"


class Undecodable(Exception):
    """The bytes are not what they should be; the text says what is wrong with them."""


@dataclass(slots=True)
class Budget:
    """What one body may still cost."""

    parts: int = MOST_PARTS
    depth: int = 0

    def spend(self, parts: int = 1) -> None:
        self.parts -= parts
        if self.parts < 0:
            raise Undecodable(f"the message has more than {MOST_PARTS} parts")

    def enter(self) -> None:
        """One part more, and one message deeper; whoever enters takes the levels off again."""
        self.spend()
        self.depth += LEVELS_OF_A_MESSAGE
        if self.depth > DEEPEST:
            raise Undecodable(f"the message is nested more than {DEEPEST} levels deep")


Put: TypeAlias = Callable[[Object, bytes, Budget], None]    # a value made of a chunk of bytes goes into its place
PutNumber: TypeAlias = Callable[[Object, int, Budget], None]
Read: TypeAlias = Callable[[bytes, Budget], Json]


def tag(number: int, form: int) -> int:
    return number << 3 | form


class Message:
    """Readers of the fields of one message, by tag. Fields without a reader are passed over."""

    __slots__ = ("chunks", "doubles", "name", "numbers")

    def __init__(self, name: str, chunks: dict[int, Put] | None = None) -> None:
        self.name = name
        self.chunks: dict[int, Put] = chunks or {}
        self.numbers: dict[int, PutNumber] = {}
        self.doubles: dict[int, str] = {}

    def scan(self, data: bytes, out: Object, budget: Budget) -> None:
        """Put the fields in `data` into `out`. Raises Undecodable, and IndexError if a number is cut short."""
        at, end = 0, len(data)
        while at < end:
            found = data[at]
            at += 1
            if found > 127:
                found, at = varint(data, at, found)
            form = found & 7
            if form == CHUNK:
                size = data[at]
                at += 1
                if size > 127:
                    size, at = varint(data, at, size)
                stop = at + size
                if stop > end:
                    raise Undecodable(_CUT_SHORT)
                put = self.chunks.get(found)
                if put is None:
                    self._pass(found, budget)
                else:
                    put(out, data[at:stop], budget)
                at = stop
            elif form == VARINT:
                value = data[at]
                at += 1
                if value > 127:
                    value, at = varint(data, at, value)
                put_number = self.numbers.get(found)
                if put_number is None:
                    self._pass(found, budget)
                else:
                    put_number(out, value, budget)
            else:
                at = self._fixed(data, at, found, out, budget)

    def _fixed(self, data: bytes, at: int, found: int, out: Object, budget: Budget) -> int:
        if found & 7 not in _FORMS:     # groups, which no Kubernetes type has, and what is not protobuf at all
            raise Undecodable(f"the message has a field of wire type {found & 7}")
        stop = at + (8 if found & 7 == EIGHT_BYTES else 4)
        if stop > len(data):
            raise Undecodable(_CUT_SHORT)
        name = self.doubles.get(found)
        if name is None:
            self._pass(found, budget)
        else:
            out[name] = double(data[at:stop])
        return stop

    def _pass(self, found: int, budget: Budget) -> None:
        """A field of a newer release is passed over; a known one in a wrong form is a fault."""
        budget.spend()
        number = found >> 3
        if number == 0:
            raise Undecodable("the message has a field of number 0")
        for form, readers in ((CHUNK, self.chunks), (VARINT, self.numbers), (EIGHT_BYTES, self.doubles)):
            if tag(number, form) in readers:
                raise Undecodable(f"field {number} of {self.name} must be {_FORMS[form]}, not {_FORMS[found & 7]}")


def varint(data: bytes, at: int, first: int) -> tuple[int, int]:
    """A number in groups of seven bits, of which the first is read already; and where it ends."""
    value, shift, byte = first & 127, 7, first
    while byte > 127:
        if shift > 63:
            raise Undecodable("the message has a number of more than 64 bits")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
    return value & 0xFFFF_FFFF_FFFF_FFFF, at


def int32(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def int64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def double(data: bytes) -> float | int:
    value: float = struct.unpack("<d", data)[0]
    if value - value != 0:      # infinite, or not a number
        raise Undecodable("the message has a number that JSON cannot write")
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else value     # Go writes 1, not 1.0


# Ways to put a value into its place.

def one(name: str, read: Read) -> Put:
    def put(out: Object, chunk: bytes, budget: Budget) -> None:
        out[name] = read(chunk, budget)

    return put


def text_field(name: str, *, omit_empty: bool) -> Put:
    """Most fields are text, so it is worth a way of its own."""

    def put(out: Object, chunk: bytes, _: Budget) -> None:
        out[name] = str(chunk, "utf-8")

    def put_unless_empty(out: Object, chunk: bytes, _: Budget) -> None:
        if chunk:
            out[name] = str(chunk, "utf-8")
        else:
            out.pop(name, None)

    return put_unless_empty if omit_empty else put


def unless(name: str, read: Read, zero: Json) -> Put:
    """A value that is not shown if it is zero; the last one counts."""

    def put(out: Object, chunk: bytes, budget: Budget) -> None:
        value = read(chunk, budget)
        if value != zero:
            out[name] = value
        else:
            out.pop(name, None)

    return put


def listed(name: str, read: Read) -> Put:
    def put(out: Object, chunk: bytes, budget: Budget) -> None:
        budget.spend()
        value = read(chunk, budget)
        if out.get(name) is not None:   # null: an earlier part of the same message ended without any
            out[name].append(value)
        else:
            out[name] = [value]

    return put


def mapped(name: str, read: Read) -> Put:
    """A map is a list of messages {1: key, 2: value}."""
    entry = Message("a map entry", {tag(1, CHUNK): one("key", text), tag(2, CHUNK): one("value", plain)})

    def put(out: Object, chunk: bytes, budget: Budget) -> None:
        pair: Object = {"key": "", "value": b""}
        budget.spend()
        entry.scan(chunk, pair, budget)
        value = read(pair["value"], budget)
        if out.get(name) is not None:
            out[name][pair["key"]] = value
        else:
            out[name] = {pair["key"]: value}

    return put


def number(name: str, convert: Callable[[int], Json], *, omit_zero: bool = False) -> PutNumber:
    def put(out: Object, value: int, _: Budget) -> None:
        if value or not omit_zero:
            out[name] = convert(value)
        else:
            out.pop(name, None)

    return put


def numbers(name: str, convert: Callable[[int], Json]) -> tuple[PutNumber, Put]:
    """A list of numbers comes one by one, or many in a chunk."""

    def put(out: Object, value: int, budget: Budget) -> None:
        budget.spend()
        if out.get(name) is None:
            out[name] = []
        out[name].append(convert(value))

    def put_many(out: Object, chunk: bytes, budget: Budget) -> None:
        at = 0
        while at < len(chunk):
            value, at = varint(chunk, at + 1, chunk[at])
            put(out, value, budget)

    return put, put_many


def text(chunk: bytes, _: Budget) -> str:
    return str(chunk, "utf-8")


def plain(chunk: bytes, _: Budget) -> bytes:
    return chunk
