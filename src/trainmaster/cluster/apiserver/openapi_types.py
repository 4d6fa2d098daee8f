"""The table of built-in types (`builtin`) as schemas of OpenAPI: fields, types, list types and merge keys, no prose.

What the table knows is facts; the descriptions that a real server carries along are a megabyte of text, and nothing but
`kubectl explain` reads them.
"""

from collections.abc import Iterable

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import builtin
from trainmaster.cluster.apiserver.builtin import Field, Many, Type

_TEXT: Object = {"type": "string"}
_WORDS: dict[str, Object] = {
    "string": _TEXT,
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "quantity": _TEXT,
    "int-or-string": {"type": "string", "format": "int-or-string"},
    "time": {"type": "string", "format": "date-time"},
    "micro-time": {"type": "string", "format": "date-time"},
    "strings": {"type": "array", "items": _TEXT},
    "raw": {"type": "object"},
    "fields": {"type": "object"},
}


def schemas(types: Iterable[Type], place: str) -> Object:
    """These types and all that they are made of, by name. References point to `place`, such as `#/definitions/`."""
    found: Object = {}
    waiting = list(types)
    while waiting:
        type_ = waiting.pop()
        if type_.definition not in found:
            found[type_.definition] = _schema(type_, place)
            waiting += [builtin.type_named(field.type_name) for field in type_.fields.values() if field.type_name]
    return found


def _schema(type_: Type, place: str) -> Object:
    schema: Object = {"type": "object"}
    if type_.fields:
        schema["properties"] = {field.name: _property(field, place) for field in type_.fields.values()}
    required = [field.name for field in type_.fields.values() if field.required]
    return {**schema, "required": required} if required else schema


def _property(field: Field, place: str) -> Object:
    one = {"$ref": f"{place}{builtin.NAME_PREFIX}{field.type_name}"} if field.type_name else _WORDS.get(field.word, {})
    match field.many:
        case Many.LIST:
            found: Object = {"type": "array", "items": one}
        case Many.MAP:
            found = {"type": "object", "additionalProperties": one}
        case _:
            found = dict(one)
    said = {
        "list-type": field.list_type, "list-map-keys": list(field.list_keys), "map-type": field.map_type,
        "patch-strategy": ",".join(field.patch), "patch-merge-key": field.merge_key,
    }
    return {**found, **{f"x-kubernetes-{name}": value for name, value in said.items() if value}}
