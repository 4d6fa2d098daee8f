"""Sets of fields, as `managedFields` writes them: which parts of an object somebody has a say in. Pure.

A set is a tree. A key is one step of a path: `f:name` a field, `k:{"name":"a"}` an item of a list by its keys, `v:1` an
item by its value. What is below a key is the set of paths that begin with it; `.` says that the path up to here is a
member itself, and an empty tree says it too, for then there is nothing else it could say.

The tree is kept as the plain JSON of the wire (FieldsV1). A class of its own with sorted members, as Go has it, was
rejected: nearly every write reads several sets and changes one of them a little, so the cheapest form is the one that
needs no reading and no writing. Sets are never changed in place; what did not change is shared between them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from trainmaster.api.meta import Json

FieldSet: TypeAlias = dict[str, "FieldSet"]

SELF = "."
# The set of one path, seen from its end. Shared by all sets: never to be changed.
MEMBER: FieldSet = {}

_UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@dataclass(frozen=True, slots=True)
class Change:
    """What a write does to the fields of an object, in the words of one version."""

    changed: FieldSet
    removed: FieldSet


class Malformed(ValueError):
    """What should be a set is none."""


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of both; of whole sets, in which nothing is a member at the top."""
    if not one or not other:
        return one or other
    result = dict(one)
    for key, below in other.items():
        known = result.get(key)
        result[key] = below if known is None else _joined(known, below)
    return result


def _joined(one: FieldSet, other: FieldSet) -> FieldSet:
    if one is other or (not one and not other):
        return one
    if not one or not other:
        tree = one or other
        return tree if SELF in tree else {SELF: MEMBER, **tree}
    return union(one, other)


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of the first that are not in the second; what is below such a path stays."""
    result = one
    for key, gone in other.items():
        known = result.get(key)
        if known is None or key == SELF:
            continue
        left = _without(known, gone)
        if left is known:
            continue
        if result is one:
            result = dict(one)
        if left is None:
            del result[key]
        else:
            result[key] = left
    return result


def _without(known: FieldSet, gone: FieldSet) -> FieldSet | None:
    """What is left below a key, or None."""
    if not known:
        return None if is_member(gone) else known
    left = difference(known, gone)
    if SELF in left and is_member(gone):
        left = {key: below for key, below in left.items() if key != SELF}
        return left or None
    if len(left) == 1 and SELF in left:
        return MEMBER
    return left or None


def pruned(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths of the first that neither are in the second nor begin with one that is."""
    result = one
    for key, gone in other.items():
        known = result.get(key)
        if known is None or key == SELF:
            continue
        left = None if is_member(gone) else pruned(known, gone)
        if left is known:
            continue
        if result is one:
            result = dict(one)
        if not left:
            del result[key]
        else:
            result[key] = MEMBER if len(left) == 1 and SELF in left else left
    return result


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """The paths that are in both."""
    result: FieldSet = {}
    for key, below in one.items():
        if key == SELF:
            continue
        match = other.get(key)
        if match is None:
            continue
        both = is_member(below) and is_member(match)
        common = intersection(below, match)
        if common:
            result[key] = {SELF: MEMBER, **common} if both else common
        elif both:
            result[key] = MEMBER
    return result


def is_member(tree: FieldSet) -> bool:
    """Whether the path to this tree is in the set."""
    return not tree or SELF in tree


def has(one: FieldSet, path: tuple[str, ...]) -> bool:
    """Whether a path, by its keys, is in the set."""
    for key in path:
        if key not in one:
            return False
        one = one[key]
    return bool(path) and is_member(one)


def only(path: tuple[str, ...]) -> FieldSet:
    """The set of one path."""
    result = MEMBER
    for key in reversed(path):
        result = {key: result}
    return result


def read(value: Json) -> FieldSet:
    """A set that a client sent, in the form that sets have here. Raises Malformed."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed("a set of fields is an object")
    return _read(value)


def _read(value: dict[str, Json]) -> FieldSet:
    result: FieldSet = {}
    for key, below in value.items():
        if not isinstance(below, dict):
            raise Malformed("a set of fields holds objects only")
        step = key if key == SELF else _step(key)
        if step:
            result[step] = MEMBER if key == SELF else _read(below)
    return MEMBER if len(result) == 1 and SELF in result else result


def _step(key: str) -> str:
    """One step in its one spelling; "" for one of a kind that nobody knows yet."""
    kind, text = key[:2], key[2:]
    if len(key) < 2 or kind[1] != ":":
        raise Malformed(f"missing colon: {key}")
    if kind == "f:":
        return key
    if kind not in {"k:", "v:", "i:"}:
        return ""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"not JSON: {key}") from error
    if kind == "k:":
        if not isinstance(found, dict):
            raise Malformed(f"not keys of an item: {key}")
        return item_key(found)
    return kind + json_text(found)


def item_key(keys: dict[str, Json]) -> str:
    """The step to the item of a list that has these keys."""
    return "k:" + json_text(keys)


def value_key(value: Json) -> str:
    """The step to the item of a list that is this value."""
    return "v:" + json_text(value)


def json_text(value: Json) -> str:
    """JSON as Go writes it into a set: keys in order, nothing that HTML could take for a tag."""
    found = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return found.translate(_UNSAFE) if "<" in found or ">" in found or "&" in found else found


def plain_text(value: Json) -> str:
    """JSON in the order it has."""
    return orjson.dumps(value).decode().translate(_UNSAFE)


def paths(one: FieldSet, before: str = "") -> Iterator[str]:
    """Every path as Kubernetes prints it, such as `.spec.ports[port=80,protocol="TCP"].name`: members first."""
    steps = sorted((key for key in one if key != SELF), key=_rank)
    for key in steps:
        if is_member(one[key]):
            yield before + shown(key)
    for key in steps:
        if one[key]:
            yield from paths(one[key], before + shown(key))


def shown(key: str) -> str:
    kind, text = key[:2], key[2:]
    if kind == "f:":
        return f".{text}"
    found = orjson.loads(text)
    if kind == "i:":
        return f"[{found}]"
    if kind == "v:":
        return f"[={_printed(found)}]"
    return "[" + ",".join(f"{name}={_printed(value)}" for name, value in found.items()) + "]"


def _printed(value: Json) -> str:
    return json_text(value) if not isinstance(value, str) else orjson.dumps(value).decode()


def _rank(key: str) -> tuple[int, list[tuple[int, Json]]]:
    """The order of Go: fields by name, then items by their keys, numbers before text."""
    kind, text = key[:2], key[2:]
    if kind == "f:":
        return 0, [(0, text)]
    found = orjson.loads(text)
    if kind == "k:":
        return 1, [part for name, value in found.items() for part in ((1, name), _value_rank(value))]
    return (2 if kind == "v:" else 3), [_value_rank(found)]


def _value_rank(value: Json) -> tuple[int, Json]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, str(value))
