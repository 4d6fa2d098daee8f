"""Bytes of a request body become JSON values, within limits.

JSON unless the Content-Type says YAML or protobuf; a missing Content-Type is JSON, because one widely used client sends
none. Protobuf is for built-in kinds only. Size is limited before parsing, depth before anything of ours recurses.
"""

from dataclasses import dataclass
from functools import lru_cache

import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import failures, go_yaml, managed_fields, protobuf, repeats
from trainmaster.cluster.apiserver.repeats import Repeats

MOST_BYTES = 3 * 1024 * 1024
# The printer of orjson stops at 254 levels; nothing real comes near a quarter of that.
DEEPEST = 128

JSON, YAML, PROTOBUF = "application/json", "application/yaml", protobuf.MEDIA_TYPE
TYPES = (JSON, YAML, PROTOBUF)


@dataclass(frozen=True, slots=True)
class Body:
    """The JSON value of a body, and the keys that are in it twice, if any."""

    value: Json
    repeats: Repeats | None = None


@lru_cache(maxsize=64)
def media_type(content_type: str) -> str:
    """The media type without parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def parse(body: bytes, content_type: str, *, api_version: str = "", kind: str = "", custom: bool = False) -> Body:
    """Read a body; what it holds is of this kind unless it says otherwise. Raises Failure: 413, 415 or 400.

    A typed server drops `null` in a field as if it had not been sent; so do we, for built-in kinds.
    """
    if len(body) > MOST_BYTES:
        raise failures.too_large(MOST_BYTES)
    media = media_type(content_type)
    if media in {"", JSON}:
        found = read_json(body)
        return found if custom or b"null" not in body else Body(without_nulls(found.value), found.repeats)
    if media == YAML:
        found = read_yaml(body)
        return found if custom else Body(without_nulls(found.value), found.repeats)
    if media == PROTOBUF and not custom:
        try:
            return Body(without_nulls(protobuf.decode(body, api_version, kind)))
        except protobuf.Undecodable as error:
            raise failures.bad_request(str(error)) from error
    raise failures.unsupported_media_type(TYPES)


_NESTED = frozenset({dict, list})


def read_json(body: bytes) -> Body:
    """Raises Failure 400."""
    if (cut := managed_fields.without(body)) is not None and (known := _without_record(*cut)) is not None:
        return known
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise failures.bad_request(f"the body is not valid JSON: {error}") from error
    return _checked(body, found)


def _without_record(rest: bytes, record: Json) -> Body | None:
    """What is left of a body whose record of owners is known; None: that is no JSON, or not where such a record is."""
    try:
        found = _checked(rest, orjson.loads(rest))
    except orjson.JSONDecodeError:
        return None
    return found if managed_fields.fill(found.value, record) else None


def _checked(body: bytes, found: Json) -> Body:
    """Raises Failure 400."""
    marks = body.translate(None, _NO_MARKS)
    openings = marks.count(b"{") + marks.count(b"[")
    if openings >= DEEPEST:
        # What is empty holds nothing: beyond the last level it adds none. The record of owners is full of such.
        _refuse_depth(found, openings - marks.count(b"{}") - marks.count(b"[]") + 1)
    return Body(found, repeats.in_json(body, found))


def read_yaml(body: bytes) -> Body:
    """Raises Failure 400."""
    try:
        node = go_yaml.composed(body.decode())
        # Through JSON once: keys become strings, and what JSON cannot say is refused.
        found = orjson.loads(orjson.dumps(go_yaml.constructed(node), option=orjson.OPT_NON_STR_KEYS))
    except (go_yaml.Unreadable, RecursionError, ValueError, TypeError) as error:
        raise failures.bad_request(f"the body is not valid YAML: {' '.join(str(error).split())[:200]}") from error
    _refuse_depth(found, len(body))
    return Body(found, repeats.in_yaml(node))


def as_object(value: Json) -> Object:
    if not isinstance(value, dict):
        raise failures.bad_request("the body must be a JSON object")
    return value


def without_nulls(value: Json) -> Json:
    """The value without the fields that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


# Quotes stay, so that of two brackets side by side both are in the same string, or none is in any.
_NO_MARKS = bytes(set(range(256)) - set(b'{}[]"'))


def _refuse_depth(value: Json, most: int) -> None:
    """`most`: as many levels as there can be."""
    if most > DEEPEST and depth(value) > DEEPEST:
        raise failures.bad_request(f"the body is nested more than {DEEPEST} levels deep")


def depth(value: Json) -> int:
    """Levels of nesting, found without recursion."""
    level = 0
    current: list[Json] = [value] if value.__class__ in _NESTED else []
    while current and level <= DEEPEST:
        level += 1
        # One pass per level: who sends back what was read sends some hundred containers, with the record of owners.
        current = [child for item in current for child in (item.values() if item.__class__ is dict else item)
                   if child.__class__ in _NESTED]
    return level

