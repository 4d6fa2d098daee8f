"""Stored bytes in the form a client asked for: plain JSON without parsing, or a table, or metadata alone, or YAML.

A list is made in pieces that take the loop a few milliseconds each, so that nobody waits long behind a long one, and a
long one is never in memory as a whole.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
import yaml

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import tables
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.negotiation import YAML, Form, Shape

# What one piece of a list holds at most: bytes where they are only passed on, objects where they are parsed. A request
# has some three turns of the loop to go, and may meet a piece in each. A piece is copied five times on its way through
# TLS: what the memory that the C library keeps at hand (128 KiB) still holds costs the client and us least; 64 KiB cost
# a tenth more, 250 KiB a fifth.
PIECE_BYTES = 120 * 1024
PIECE_OBJECTS = 15
PIECE_OBJECTS_YAML = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list: stored bytes, the revision it was read at, how to go on, how many are left (if known)."""

    items: Sequence[bytes]
    revision: int
    more: str = ""
    remaining: int | None = None

    def metadata(self) -> Object:
        found: Object = {"resourceVersion": str(self.revision)}
        if self.more:
            found["continue"] = self.more
        if self.more and self.remaining:
            found["remainingItemCount"] = self.remaining
        return found


def one(kind: Kind, value: bytes, form: Form, now: datetime, include: str = "") -> bytes:
    """One object."""
    if form.shape is Shape.OBJECT:
        return encoded(kind.present(value), form)
    thing = orjson.loads(kind.present(value))
    if form.shape is Shape.TABLE:
        listed = {"resourceVersion": thing["metadata"].get("resourceVersion", "")}
        found = tables.table(kind, [thing], now, include=include or "Metadata", version=form.version, listing=listed)
    else:
        found = tables.partial(thing, form.version)
    return encoded(orjson.dumps(found), form)


@dataclass(frozen=True, slots=True)
class Made:
    """A document in pieces, and how many bytes it has, where that is known before they are made."""

    pieces: Iterator[bytes]
    length: int | None = None


def many(kind: Kind, page: Listing, form: Form, now: datetime, include: str = "") -> Made:
    """A list of objects."""
    if form.shape is Shape.OBJECT and form.media != YAML and not kind.custom and kind.view is None:
        return _cut(kind, page)
    return Made(_presented(kind, page, form, now, include))


def _presented(kind: Kind, page: Listing, form: Form, now: datetime, include: str) -> Iterator[bytes]:
    if form.shape is Shape.TABLE:
        document = tables.table(kind, [], now, version=form.version, listing=page.metadata())
        del document["rows"]
        return _sliced(document, "rows", page.items, form, lambda values: tables.table(
            kind, _parsed(kind, values), now, include=include or "Metadata", version=form.version)["rows"])
    if form.shape is not Shape.OBJECT:
        document = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{form.version}",
                    "metadata": page.metadata()}
        if form.media != YAML:
            return _passed_on(document, lambda value: tables.bare(kind.present(value), form.version), page.items)
        return _sliced(document, "items", page.items, form, lambda values: [
            tables.partial(thing, form.version) for thing in _parsed(kind, values)])
    document = _document(kind, page)
    if form.media == YAML:
        return _sliced(document, "items", page.items, form, lambda values: [
            orjson.loads(kind.item(value)) for value in values])
    return _passed_on(document, kind.item, page.items)


def _document(kind: Kind, page: Listing) -> Object:
    return {"kind": kind.list_kind, "apiVersion": kind.resource.api_version, "metadata": page.metadata()}


def _cut(kind: Kind, page: Listing) -> Made:
    """A list of built-in objects: each is its stored bytes without the beginning that says its kind.

    Nothing is copied but into the piece. Who knows the length beforehand is spared the frame around every piece, which
    costs both sides two packets of TLS each.
    """
    begun, skipped = orjson.dumps(_document(kind, page))[:-1] + b',"items":[', len(kind.head)
    values = page.items
    length = len(begun) + sum(map(len, values)) + len(values) * (1 - skipped) + max(len(values) - 1, 0) + len(_END)
    if not values:
        return Made(iter([begun + _END]), length)

    def pieces() -> Iterator[bytes]:
        before, first, size = begun + b"{", 0, 0
        for index, value in enumerate(values, start=1):
            size += len(value)
            if size >= PIECE_BYTES and index < len(values):
                yield b",{".join([before + values[first][skipped:],
                                  *[memoryview(each)[skipped:] for each in values[first + 1:index]]])
                before, first, size = b",{", index, 0
        yield b"".join([before, b",{".join([memoryview(each)[skipped:] for each in values[first:]]), _END])

    return Made(pieces(), length)


_END = b"]}"


def _passed_on(document: Object, item: Callable[[bytes], bytes], values: Sequence[bytes]) -> Iterator[bytes]:
    """The list of stored bytes that nobody has to parse."""
    begun, size = [orjson.dumps(document)[:-1] + b',"items":['], 0
    for index, value in enumerate(values):
        if size >= PIECE_BYTES:
            yield b"".join(begun)
            begun, size = [], 0
        if index:
            begun.append(b",")
        begun.append(item(value))
        size += len(value)
    yield b"".join((*begun, b"]}\n"))


def _sliced(document: Object, field: str, values: Sequence[bytes], form: Form,
            shown: Callable[[Sequence[bytes]], list[Object]]) -> Iterator[bytes]:
    """A document whose last field is the list of what `shown` makes of the values."""
    step = PIECE_OBJECTS_YAML if form.media == YAML else PIECE_OBJECTS
    slices = (shown(values[start:start + step]) for start in range(0, len(values), step))
    if form.media == YAML:
        yield _yaml(document if values else {**document, field: []}) + (f"{field}:\n".encode() if values else b"")
        yield from map(_yaml, slices)
        return
    yield b"".join((orjson.dumps(document)[:-1], b',"', field.encode(), b'":['))
    for index, things in enumerate(slices):
        yield (b"," if index else b"") + orjson.dumps(things)[1:-1]
    yield b"]}\n"


def _parsed(kind: Kind, values: Sequence[bytes]) -> list[Object]:
    return [orjson.loads(kind.present(value)) for value in values]


def encoded(document: bytes, form: Form) -> bytes:
    return document + b"\n" if form.media != YAML else _yaml(orjson.loads(document))


def _yaml(value: Json) -> bytes:
    dumped: str = yaml.dump(value, Dumper=_DUMPER, sort_keys=False, default_flow_style=False)
    return dumped.encode()


_DUMPER: type = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
