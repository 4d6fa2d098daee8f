"""TensorBoard's event files, as far as they hold scalars.

A file is a row of records (length, check, content, check), each a protocol buffer of a few known fields: less to read
than a dependency on TensorBoard to install. Checks are not verified; what is cut off is left for the next time. Graphs
and pictures, which Keras writes between the scalars, are passed over by their length and need not be read.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

LARGEST_RECORD = 16 << 20     # beyond it the file is something else, or broken
LARGEST_READ = 64 << 10       # beyond it a record holds a graph or a picture
_HEAD, _CHECK = 12, 4
_FLOAT, _DOUBLE = 1, 2        # types of a tensor


class NotEvents(Exception):
    """The content is not that of an event file."""


@dataclass(frozen=True, slots=True)
class Scalar:
    step: int
    tag: str
    value: float


def scalars(content: bytes) -> tuple[list[Scalar], int]:
    """The scalars of all whole records, and where the next one begins: behind the content, if the last one is large and
    has not come yet. Raises NotEvents."""
    found: list[Scalar] = []
    at = 0
    while len(content) - at >= _HEAD:
        (length,) = struct.unpack_from("<Q", content, at)
        if length > LARGEST_RECORD:
            raise NotEvents(f"a record of {length} bytes at {at}")
        end = at + _HEAD + length + _CHECK
        if length > LARGEST_READ:
            at = end
            continue
        if end > len(content):
            break
        try:
            found += _event(content[at + _HEAD:end - _CHECK])
        except (IndexError, struct.error, ValueError) as problem:
            raise NotEvents(f"the record at {at} is not an event") from problem
        at = end
    return found, at


def _event(data: bytes) -> Iterator[Scalar]:
    step, summary = 0, b""
    for number, value in _fields(data):
        if number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            summary = value
    for number, value in _fields(summary):
        if number == 1 and isinstance(value, bytes) and (scalar := _scalar(value, step)) is not None:
            yield scalar


def _scalar(data: bytes, step: int) -> Scalar | None:
    tag, value = "", None
    for number, field in _fields(data):
        if number == 1 and isinstance(field, bytes):
            tag = field.decode(errors="replace")
        elif number == 2 and isinstance(field, bytes):
            (value,) = struct.unpack("<f", field)
        elif number == 8 and isinstance(field, bytes):
            value = _tensor(field)
    return Scalar(step, tag, value) if tag and value is not None else None


def _tensor(data: bytes) -> float | None:
    """The only number of a tensor of one."""
    kind, content = 0, b""
    for number, field in _fields(data):
        if number == 1 and isinstance(field, int):
            kind = field
        elif number in (4, 5, 6) and isinstance(field, bytes):     # as bytes, or as a list of numbers
            content = field
    form = {(_FLOAT, 4): "<f", (_DOUBLE, 8): "<d"}.get((kind, len(content)))
    return float(struct.unpack(form, content)[0]) if form else None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer: numbers as they are, everything else as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            case 1 | 5:
                size = 8 if key & 7 == 1 else 4
                yield key >> 3, data[at:at + size]
                at += size
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise ValueError("a field is longer than its record")
                yield key >> 3, data[at:at + size]
                at += size
            case _:
                raise ValueError("a field of a kind that is none")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number that does not end")
