"""Objects as the tables that `kubectl get` prints, and as bare metadata."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache

import msgspec

from trainmaster.api.meta import Json, Object, moment
from trainmaster.cluster.apiserver.columns import AGE, NAME, Since
from trainmaster.cluster.apiserver.kind import Column, Kind

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400

_DESCRIPTIONS = {
    "Name": "Name must be unique within a namespace.",
    "Age": "How long ago the object was created.",
}


def table(kind: Kind, things: Iterable[Object], now: datetime, *, include: str = "Metadata", version: str = "v1",
          header: bool = True, listing: Object | None = None) -> Object:
    """One Table. `listing` is the metadata of the list; events of a watch after the first come without a header."""
    columns = kind.columns or (NAME, AGE)
    return {
        "kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": listing or {},
        "columnDefinitions": [_header(column) for column in columns] if header else None,
        "rows": [_row(columns, thing, now, include, version) for thing in things],
    }


def partial(thing: Object, version: str = "v1") -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": thing["metadata"]}


def bare(value: bytes, version: str = "v1") -> bytes:
    """The same for an object in stored form: its metadata is found and passed on without being read."""
    return b"".join((_bare_head(version), _METADATA.decode(value).metadata, b"}"))


@cache
def _bare_head(version: str) -> bytes:
    return f'{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}","metadata":'.encode()


class _Bones(msgspec.Struct):
    metadata: msgspec.Raw


_METADATA = msgspec.json.Decoder(_Bones)


def duration(seconds: float) -> str:
    """A span of time as kubectl says it: at most two units, the smaller one only while it matters."""
    if seconds < -1:
        return "<invalid>"
    whole = max(0, int(seconds))
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < 10 * MINUTE:
        return _two(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    return _two(whole, YEAR, "y", DAY, "d") if whole < 8 * YEAR else f"{whole // YEAR}y"


def _two(whole: int, big: int, big_unit: str, small: int, small_unit: str) -> str:
    first, rest = divmod(whole, big)
    return f"{first}{big_unit}{rest // small}{small_unit}" if rest // small else f"{first}{big_unit}"


def _header(column: Column) -> Object:
    return {"name": column.name, "type": column.type, "format": column.format, "priority": column.priority,
            "description": column.description or _DESCRIPTIONS.get(column.name, "")}


def _row(columns: Sequence[Column], thing: Object, now: datetime, include: str, version: str) -> Object:
    row: Object = {"cells": [_said(column.value(thing), now) for column in columns]}
    if include == "Object":
        row["object"] = thing
    elif include != "None":
        row["object"] = partial(thing, version)
    return row


def _said(cell: Json, now: datetime) -> Json:
    if not isinstance(cell, Since):
        return cell
    if not cell.moment:
        return cell.other
    try:
        end = moment(cell.until) if cell.until else now
        seconds = (end - moment(cell.moment)).total_seconds()
    except (ValueError, OverflowError):
        return cell.other
    return f"{cell.before}{duration(seconds)}{cell.after}"
