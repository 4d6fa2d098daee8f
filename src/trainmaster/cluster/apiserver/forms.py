"""Stored bytes in the form a client asked for: plain JSON without parsing, or a table, or metadata alone, or YAML."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson
import yaml

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import tables
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.negotiation import YAML, Form, Shape


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


def many(kind: Kind, page: Listing, form: Form, now: datetime, include: str = "") -> bytes:
    """A list of objects."""
    if form.shape is Shape.OBJECT:
        head: Object = {"kind": kind.list_kind, "apiVersion": kind.resource.api_version, "metadata": page.metadata()}
        items = b",".join([kind.item(value) for value in page.items])
        return encoded(b"".join((orjson.dumps(head)[:-1], b',"items":[', items, b"]}")), form)
    things = [orjson.loads(kind.present(value)) for value in page.items]
    if form.shape is Shape.TABLE:
        found = tables.table(kind, things, now, include=include or "Metadata", version=form.version,
                             listing=page.metadata())
    else:
        found = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{form.version}",
                 "metadata": page.metadata(), "items": [tables.partial(thing, form.version) for thing in things]}
    return encoded(orjson.dumps(found), form)


def encoded(document: bytes, form: Form) -> bytes:
    if form.media != YAML:
        return document
    dumped: str = yaml.dump(orjson.loads(document), Dumper=_DUMPER, sort_keys=False, default_flow_style=False)
    return dumped.encode()


_DUMPER: type = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
