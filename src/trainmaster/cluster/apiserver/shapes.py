"""The shapes of kinds: how the table of built-in types and the schemas of definitions say what is owned as one.

A shape is made when its kind is first written, level by level, and kept; types contain themselves, so a field's shape
is looked up when it is first met.
"""

from functools import cache
from weakref import WeakKeyDictionary

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin, normal
from trainmaster.cluster.apiserver.builtin import Field, Many, Zero
from trainmaster.cluster.apiserver.kind import Kind, Schema
from trainmaster.cluster.apiserver.mergeable import ANYTHING, LEAF, Fields, Items, Shape
from trainmaster.cluster.apiserver.schema_parts import EMBEDDED, LIST_KEYS, LIST_TYPE, PRESERVE

MAP_TYPE = "x-kubernetes-map-type"
# Written by the server alone, or saying which object it is: nobody owns these.
UNOWNED = frozenset({"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
                     "managedFields", "resourceVersion"})
_NAMES = frozenset({"apiVersion", "kind"})
# Any JSON, with or without fields of a schema: owned as whatever is there.
_FREE = frozenset({"json", "fields", "schema-or-list", "schema-or-bool", "schema-or-names"})

_CUSTOM: WeakKeyDictionary[Schema, Fields] = WeakKeyDictionary()


def of_kind(kind: Kind) -> Fields:
    """The shape of the objects of a kind."""
    if kind.schema is not None:
        found = _CUSTOM.get(kind.schema)
        if found is None:
            found = _CUSTOM[kind.schema] = custom(kind.schema.document)
        return found
    assert kind.type is not None
    return of_type(kind.type.name)


@cache
def of_type(name: str) -> Fields:
    """The shape of a built-in type at the top of an object."""
    return Fields(lambda: {**_named(name), "metadata": _metadata()}, ignored=_NAMES)


def nothing(kind: Kind) -> Object:
    """An object before anything is set: of a built-in kind, some fields are there all the same. Not to be changed."""
    return {"metadata": {}} if kind.type is None else _empty(kind.type.name)


@cache
def _empty(name: str) -> Object:
    found = normal.of_type(name)({})
    assert isinstance(found, dict)
    return found


def custom(document: Object) -> Fields:
    """The shape of the objects of a custom kind."""
    top = _of_schema(document, free=False)
    named = {"apiVersion": LEAF, "kind": LEAF, "metadata": _metadata()}
    if isinstance(top, Fields):
        return Fields({**top.named, **named}, top.element, ignored=_NAMES)
    return Fields(named, ANYTHING, ignored=_NAMES)


@cache
def _metadata() -> Fields:
    return Fields(lambda: _named(builtin.METADATA), ignored=UNOWNED)


@cache
def _inner(name: str) -> Shape:
    """A built-in type inside an object."""
    return LEAF if builtin.type_named(name).map_type == "atomic" else Fields(lambda: _named(name))


def _named(name: str) -> dict[str, Shape]:
    return {field.name: _of_field(field) for field in builtin.type_named(name).fields.values()}


def _of_field(field: Field) -> Shape:
    if field.many is Many.LIST:
        return _list(field)
    if field.map_type == "atomic":
        return LEAF
    if field.many is Many.MAP:
        return Fields({}, _one(field))
    if field.map_type == "granular" and field.type_name:
        return Fields(lambda: _named(field.type_name))
    return _one(field)


def _one(field: Field) -> Shape:
    if field.type_name:
        return _inner(field.type_name)
    return ANYTHING if field.word in _FREE else LEAF


def _list(field: Field) -> Shape:
    """A list that says nothing about its items is merged in a patch, or one value."""
    if field.list_type == "atomic" or (not field.list_type and "merge" not in field.patch):
        return LEAF
    keys = field.list_keys if field.list_type else (field.merge_key,) if field.merge_key else ()
    if field.list_type == "set" or not keys:
        return Items(LEAF)
    fields = builtin.type_named(field.type_name).fields
    defaults = {key: found for key in keys if (found := _default(fields[key])) is not None}
    return Items(_inner(field.type_name), keys, defaults)


def _default(field: Field) -> Json:
    if field.default is not None:
        return field.default
    return normal.zero_of(field) if field.zero is Zero.ALWAYS else None


def _of_schema(document: Json, *, free: bool) -> Shape:
    """`free`: somewhere above, unknown fields are kept."""
    if not isinstance(document, dict):
        return ANYTHING
    free = free or bool(document.get(PRESERVE))
    type_ = document.get("type")
    if type_ == "array":
        return _list_of_schema(document, free=free)
    if type_ not in {None, "object"}:
        return LEAF
    if document.get(MAP_TYPE) == "atomic":
        return LEAF
    named: dict[str, Shape] = {name: _of_schema(inner, free=free)
                               for name, inner in (document.get("properties") or {}).items()}
    if document.get(EMBEDDED):
        named |= {"apiVersion": LEAF, "kind": LEAF, "metadata": _inner(builtin.METADATA)}
    more = document.get("additionalProperties")
    if isinstance(more, dict):
        return Fields(named, _of_schema(more, free=free))
    kept = more is True or (more is None and (free or not named))
    if not named and kept:
        return ANYTHING
    return Fields(named, ANYTHING if kept else None)


def _list_of_schema(document: Object, *, free: bool) -> Shape:
    listed, items = document.get(LIST_TYPE), document.get("items")
    if listed not in {"set", "map"} or not isinstance(items, dict):
        return LEAF
    if listed == "set":
        return Items(LEAF)
    keys = tuple(document.get(LIST_KEYS) or ())
    properties = items.get("properties") or {}
    defaults = {key: properties[key]["default"] for key in keys
                if isinstance(properties.get(key), dict) and properties[key].get("default") is not None}
    return Items(_of_schema(items, free=free), keys, defaults)
