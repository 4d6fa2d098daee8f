"""The table of built-in types (`builtin`) as schemas of OpenAPI: fields, types, list types and merge keys, no prose.

What the table knows is facts; the descriptions that a real server carries along are a megabyte of text, and nothing but
`kubectl explain` reads them. Only metadata is described, for it is part of every kind that people define.
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
}
_FIELDS = "apimachinery.pkg.apis.meta.v1.FieldsV1"
_SAID = {
    "annotations": "Annotations are texts by key that tools keep with the object; nothing is selected by them.",
    "creationTimestamp": "CreationTimestamp is a timestamp that the server sets when the object is made.",
    "deletionGracePeriodSeconds": "How many seconds the object has to end, once it is deleted. Set by the server.",
    "deletionTimestamp": "The moment by which the object will be gone, once it is deleted. Set by the server.",
    "finalizers": "What must be done before the object is gone; whoever has done its part takes its entry out.",
    "generateName": "The beginning of a name that the server completes, where `name` is not given.",
    "generation": "Counts the changes of what is wanted. Set by the server.",
    "labels": "Labels are short texts by key that objects are selected by.",
    "managedFields": "Who owns which field, for server-side apply. Kept by the server.",
    "name": "The name, one of its kind in its namespace. It cannot be changed.",
    "namespace": "The namespace, where the kind lives in one. It cannot be changed.",
    "ownerReferences": "The objects this one depends on; when the last of them is gone, it goes too.",
    "resourceVersion": "The revision of this state. A write that names an older one is refused.",
    "selfLink": "Not used any more.",
    "uid": "Tells this object from all others, also from later ones of the same name. Set by the server.",
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
            if any(field.word == "fields" for field in type_.fields.values()):
                found[builtin.NAME_PREFIX + _FIELDS] = {"type": "object"}
    return found


def _schema(type_: Type, place: str) -> Object:
    schema: Object = {"type": "object"}
    if type_.fields:
        said = _SAID if type_.name == builtin.METADATA else {}
        schema["properties"] = {field.name: _property(field, place, said.get(field.name, ""))
                                for field in type_.fields.values()}
    required = [field.name for field in type_.fields.values() if field.required]
    return {**schema, "required": required} if required else schema


def _property(field: Field, place: str, description: str) -> Object:
    named = _FIELDS if field.word == "fields" else field.type_name
    one = {"$ref": f"{place}{builtin.NAME_PREFIX}{named}"} if named else _WORDS.get(field.word, {})
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
    found.update({f"x-kubernetes-{name}": value for name, value in said.items() if value})
    return {**found, "description": description} if description else found
