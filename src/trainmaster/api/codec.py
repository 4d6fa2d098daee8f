"""JSON to typed records and back, keeping what we do not know.

msgspec does the typed part; the walk around it moves unknown fields into `Wire.unknown` on the way in and back on the
way out, treats null like absent (as Go's decoder does), and writes moments in whole seconds. msgspec's own encoder
cannot do these three.
"""

import types
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import fields

from trainmaster.api.kubeflow_v1 import JobKind, JobSpec
from trainmaster.api.meta import Json, Object, timestamp
from trainmaster.api.policy import JobStatus
from trainmaster.api.wire import UNKNOWN, Wire

W = TypeVar("W", bound=Wire)
Prepare = Callable[[Json], Json]


class Malformed(Exception):
    """The JSON does not have the shape of the type. `field` says where."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def decode(raw: Json, kind: type[W], path: str = "") -> W:
    """The record that the JSON describes. Raises Malformed."""
    if not isinstance(raw, dict):
        raise Malformed(path, f"must be an object, not {type(raw).__name__}")
    try:
        return msgspec.convert(_preparer(kind)(raw), kind)
    except msgspec.ValidationError as problem:
        what, place = place_of(problem)
        raise Malformed(path + place if path else place.lstrip("."), what) from None


def place_of(problem: msgspec.ValidationError) -> tuple[str, str]:
    """What is wrong and where, below the value that was converted. msgspec says it in one sentence only."""
    what, _, where = str(problem).partition(" - at `$")
    return what, where.rstrip("`").replace("[...]", "[*]")


def decode_spec(raw: Json, kind: JobKind) -> JobSpec:
    return decode(raw, kind.spec, "spec")


def decode_status(raw: Json) -> JobStatus:
    return decode(raw or {}, JobStatus, "status")


def encode(value: Json) -> Json:
    """The JSON of a record, a list or mapping of records, or a plain value. Fields at their default are left out."""
    if isinstance(value, msgspec.Struct):
        return _encode_record(value)
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    return value


def _encode_record(record: msgspec.Struct) -> Object:
    made: Object = {}
    for name, key, default in _written_fields(type(record)):
        value = getattr(record, name)
        if value is not None and value != default:
            made[key] = encode(value)
    return {**record.unknown, **made} if isinstance(record, Wire) and record.unknown else made


@lru_cache(maxsize=256)
def _written_fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    return tuple(
        (known.name, known.encode_name, _default(known)) for known in fields(kind) if known.encode_name != UNKNOWN
    )


def _default(known: msgspec.structs.FieldInfo) -> Any:
    if known.default is not msgspec.NODEFAULT:
        return known.default
    return known.default_factory() if known.default_factory is not msgspec.NODEFAULT else msgspec.NODEFAULT


@lru_cache(maxsize=256)
def _preparer(kind: Any) -> Prepare:
    """How raw JSON of a type is made ready for msgspec: nulls dropped, unknown fields set apart."""
    if get_origin(kind) is Annotated:
        return _preparer(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        return _preparer(next(option for option in get_args(kind) if option is not type(None)))
    if get_origin(kind) is tuple:
        each = _preparer(get_args(kind)[0])
        return lambda raw: [each(item) for item in raw] if isinstance(raw, list) else raw
    if get_origin(kind) is dict and _holds_records(value := get_args(kind)[1]):
        inner = _preparer(value)
        return lambda raw: {k: inner(v) for k, v in raw.items() if v is not None} if isinstance(raw, dict) else raw
    if isinstance(kind, type) and issubclass(kind, Wire):
        return _record_preparer(kind)
    return lambda raw: raw


def _record_preparer(kind: type[Wire]) -> Prepare:
    known = {each.encode_name: _preparer(each.type) for each in fields(kind) if each.encode_name != UNKNOWN}

    def prepare(raw: Json) -> Json:
        if not isinstance(raw, dict):
            return raw
        made: Object = {}
        unknown: Object = {}
        for key, value in raw.items():
            if key not in known:
                unknown[key] = value
            elif value is not None:
                made[key] = known[key](value)
        if unknown:
            made[UNKNOWN] = unknown
        return made

    return prepare


def _holds_records(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Wire)
