"""Bytes of a request body become JSON values, within limits.

JSON unless the Content-Type says YAML; a missing Content-Type is JSON, because one widely used client sends none.
Protobuf is refused with 415 for now. Size is limited before parsing, depth before anything of ours recurses.
"""

from functools import lru_cache

import orjson
import yaml

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import failures

MOST_BYTES = 3 * 1024 * 1024
# The printer of orjson stops at 254 levels; nothing real comes near a quarter of that.
DEEPEST = 128

TYPES = ("application/json", "application/yaml")


@lru_cache(maxsize=64)
def media_type(content_type: str) -> str:
    """The media type without parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def parse(body: bytes, content_type: str) -> Json:
    """The JSON value in a body. Raises Failure: 413, 415 or 400."""
    if len(body) > MOST_BYTES:
        raise failures.too_large(MOST_BYTES)
    media = media_type(content_type)
    if media in {"", "application/json"}:
        return parse_json(body)
    if media == "application/yaml":
        return parse_yaml(body)
    raise failures.unsupported_media_type(TYPES)


def parse_json(body: bytes) -> Json:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise failures.bad_request(f"the body is not valid JSON: {error}") from error
    return _shallow(found, body.count(b"{") + body.count(b"["))


def parse_yaml(body: bytes) -> Json:
    try:
        text = body.decode()
        # Aliases let a kilobyte stand for gigabytes; no client writes them.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=_LOADER)):
            raise failures.bad_request("the body uses YAML aliases; write the value out instead")
        found = yaml.load(text, Loader=_LOADER)  # noqa: S506  the loader is the C form of SafeLoader
        # Through JSON once: dates become text, keys become strings, and what JSON cannot say is refused.
        return _shallow(orjson.loads(orjson.dumps(found, option=orjson.OPT_NON_STR_KEYS)), len(body))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError, TypeError) as error:
        raise failures.bad_request(f"the body is not valid YAML: {' '.join(str(error).split())[:200]}") from error


def as_object(value: Json) -> Object:
    if not isinstance(value, dict):
        raise failures.bad_request("the body must be a JSON object")
    return value


def without_nulls(value: Json) -> Json:
    """A typed server drops `null` in a field as if it had not been sent; so do we, for built-in kinds."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _shallow(value: Json, openings: int) -> Json:
    if openings > DEEPEST and depth(value) > DEEPEST:
        raise failures.bad_request(f"the body is nested more than {DEEPEST} levels deep")
    return value


def depth(value: Json) -> int:
    """Levels of nesting, found without recursion."""
    level, current = 0, [value]
    while current and level <= DEEPEST:
        level += 1
        below: list[Json] = []
        for item in current:
            if isinstance(item, dict):
                below += [child for child in item.values() if isinstance(child, dict | list)]
            elif isinstance(item, list):
                below += [child for child in item if isinstance(child, dict | list)]
        current = below
    return level


_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
