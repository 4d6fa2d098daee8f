"""The OpenAPI v2 document as protobuf, the only form in which kubectl asks for it.

kubectl up to 1.28 reads it before every apply, and newer ones for a manifest of `kind: List`; refused, they fail. The
messages are those of gnostic's `openapi.v2`, of which a document of ours uses a few. Tables say which key goes where;
what the messages have no place for (`anyOf`, `nullable`) is left out, and every `x-` key becomes an extension.
"""

import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias

import orjson

from trainmaster.api.meta import Json, Object

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# What clients ask for. The two differ by one sign that may not be in the type of an answer.
ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

Encode: TypeAlias = Callable[[int, Json], bytes]       # a field number and a value give the bytes of the field
Fields: TypeAlias = Mapping[str, tuple[int, Encode]]


def encoded(document: Object) -> bytes:
    """The bytes of a whole document."""
    return _message(document, _DOCUMENT, 16)


def _message(value: Object, fields: Fields, extensions: int) -> bytes:
    parts = []
    for key, item in value.items():
        if key.startswith("x-"):
            parts.append(_chunk(extensions, _text(1, key) + _chunk(2, _any_inner(item))))
        elif key in fields and item is not None:
            number, encode = fields[key]
            parts.append(encode(number, item))
    return b"".join(parts)


def _varint(value: int) -> bytes:
    found = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _chunk(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, value: Json) -> bytes:
    return _chunk(number, str(value).encode())


def _texts(number: int, value: Json) -> bytes:
    return b"".join(_text(number, item) for item in value)


def _whole(number: int, value: Json) -> bytes:
    return _varint(number << 3) + _varint(int(value))


def _double(number: int, value: Json) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", float(value))


def _any_inner(value: Json) -> bytes:
    """Any: JSON is YAML too."""
    return _text(2, orjson.dumps(value).decode() + "\n")


def _any(number: int, value: Json) -> bytes:
    return _chunk(number, _any_inner(value))


def _anys(number: int, value: Json) -> bytes:
    return b"".join(_any(number, item) for item in value)


def _schema(number: int, value: Json) -> bytes:
    return _chunk(number, _message(value, _SCHEMA, 31))


def _schemas(number: int, value: Json) -> bytes:
    return b"".join(_schema(number, item) for item in value)


def _named_schemas(number: int, value: Json) -> bytes:
    return _chunk(number, b"".join(_chunk(1, _text(1, name) + _schema(2, inner)) for name, inner in value.items()))


def _type(number: int, value: Json) -> bytes:
    return _chunk(number, _text(1, value))


def _items(number: int, value: Json) -> bytes:
    return _chunk(number, _schema(1, value))


def _others(number: int, value: Json) -> bytes:
    return _chunk(number, _whole(2, value) if isinstance(value, bool) else _schema(1, value))


def _info(number: int, value: Json) -> bytes:
    return _chunk(number, _message(value, {"title": (1, _text), "version": (2, _text)}, 7))


def _paths(number: int, value: Json) -> bytes:
    return _chunk(number, b"".join(_chunk(2, _text(1, path) + _chunk(2, _message(item, _PATH, 10)))
                                   for path, item in value.items()))


def _operation(number: int, value: Json) -> bytes:
    return _chunk(number, _message(value, _OPERATION, 13))


def _parameters(number: int, value: Json) -> bytes:
    """ParametersItem > Parameter > NonBodyParameter > the form for the place it is in."""
    return b"".join(
        _chunk(number, _chunk(1, _chunk(2, _chunk(*(
            (3, _message(each, _QUERY_PARAMETER, 23)) if each["in"] == "query"
            else (4, _message(each, _PATH_PARAMETER, 22)))))))
        for each in value)


def _responses(number: int, value: Json) -> bytes:
    """Responses > NamedResponseValue > ResponseValue > Response, with a description alone."""
    return _chunk(number, b"".join(
        _chunk(1, _text(1, code) + _chunk(2, _chunk(1, _text(1, answer["description"]))))
        for code, answer in value.items()))


_SCHEMA: Fields = {
    "$ref": (1, _text), "format": (2, _text), "title": (3, _text), "description": (4, _text), "default": (5, _any),
    "multipleOf": (6, _double), "maximum": (7, _double), "exclusiveMaximum": (8, _whole), "minimum": (9, _double),
    "exclusiveMinimum": (10, _whole), "maxLength": (11, _whole), "minLength": (12, _whole), "pattern": (13, _text),
    "maxItems": (14, _whole), "minItems": (15, _whole), "uniqueItems": (16, _whole), "maxProperties": (17, _whole),
    "minProperties": (18, _whole), "required": (19, _texts), "enum": (20, _anys),
    "additionalProperties": (21, _others), "type": (22, _type), "items": (23, _items), "allOf": (24, _schemas),
    "properties": (25, _named_schemas),
}
_QUERY_PARAMETER: Fields = {"in": (2, _text), "name": (4, _text), "type": (6, _text), "uniqueItems": (20, _whole)}
_PATH_PARAMETER: Fields = {"required": (1, _whole), "in": (2, _text), "name": (4, _text), "type": (5, _text),
                           "uniqueItems": (19, _whole)}
_OPERATION: Fields = {"consumes": (7, _texts), "parameters": (8, _parameters), "responses": (9, _responses)}
_PATH: Fields = {"get": (2, _operation), "put": (3, _operation), "post": (4, _operation), "delete": (5, _operation),
                 "patch": (8, _operation), "parameters": (9, _parameters)}
_DOCUMENT: Fields = {"swagger": (1, _text), "info": (2, _info), "paths": (8, _paths),
                     "definitions": (9, _named_schemas)}
