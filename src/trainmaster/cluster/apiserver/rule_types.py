"""What the fields that a rule names are, so that a rule about a field that is not there is refused when it is written.

The library that compiles expressions checks types itself, if they are messages of protobuf: so a schema becomes the
description of one, in the package `protobuf`, which is loaded with the first rule that somebody writes. Nothing is ever
stored in such a message: expressions run on plain values. A checker of our own was rejected: it would be the third
implementation of the language's overloads, and the first with faults.

What has no type in Kubernetes has no field here; lists in lists and maps of maps are checked down to the first level.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import expressions, rule_values
from trainmaster.cluster.apiserver.expressions import Absent

_PACKAGE = "rule"
_SELF = "Self"
_ANY, _LIST, _MAP = (f"google.protobuf.{name}" for name in ("Value", "ListValue", "Struct"))
_FORMATS = {"byte": "BYTES", "duration": "google.protobuf.Duration", "date": "google.protobuf.Timestamp",
            "date-time": "google.protobuf.Timestamp", "datetime": "google.protobuf.Timestamp"}
_SCALARS = {"boolean": "BOOL", "integer": "INT", "number": "DOUBLE"}
_FIELD_TYPES = {"BOOL": "TYPE_BOOL", "INT": "TYPE_INT64", "DOUBLE": "TYPE_DOUBLE", "STRING": "TYPE_STRING",
                "BYTES": "TYPE_BYTES"}
_KNOWN = ("timestamp", "duration", "struct", "wrappers", "any")
_TEXT: Object = {"type": "string"}
# Of whole objects, whatever their schema says.
_ROOT: Object = {"apiVersion": _TEXT, "kind": _TEXT,
                 "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}}


def checked(text: str, document: Object, *, root: bool, optional: bool) -> expressions.Checked:
    """What an expression about values of a schema gives: BOOL, STRING, DYN ... Raises Unusable."""
    return expressions.typed(text, _Types(document, root=root).variables(optional=optional))


class _Types:
    """Types by name: those of CEL, and those of messages."""

    def __init__(self, document: Object, *, root: bool) -> None:
        try:
            self._parts = {name: importlib.import_module(f"google.protobuf.{name}")
                           for name in ("descriptor_pb2", "descriptor_pool", "message_factory")}
            known = [importlib.import_module(f"google.protobuf.{name}_pb2") for name in _KNOWN]
        except ImportError as missing:
            raise Absent(f"types cannot be checked here: {missing}") from missing
        pb = self._parts["descriptor_pb2"]
        self._file = pb.FileDescriptorProto(name="rule.proto", package=_PACKAGE, syntax="proto2", dependency=[
            f"google/protobuf/{name}.proto" for name in ("timestamp", "duration", "struct")])
        self._made = 0
        self._self = self._type(document, root=root)
        self._pool = self._parts["descriptor_pool"].DescriptorPool()
        for each in known:
            self._pool.AddSerializedFile(each.DESCRIPTOR.serialized_pb)
        self._pool.AddSerializedFile(self._file.SerializeToString())

    def variables(self, *, optional: bool) -> expressions.Typed:
        return expressions.Typed(self._pool, {"self": self._self, "oldSelf": "" if optional else self._self})

    def _type(self, document: Json, *, root: bool = False) -> str:
        """`list T` and `map T` for those, "" for what has no type."""
        if not isinstance(document, dict):
            return ""
        if document.get("x-kubernetes-int-or-string"):
            return _ANY
        root = root or bool(document.get("x-kubernetes-embedded-resource"))
        match document.get("type"):
            case "object" if isinstance(document.get("additionalProperties"), dict):
                inner = self._type(document["additionalProperties"])
                return inner and f"map {inner}"
            case "object":
                return self._message({**(document.get("properties") or {}), **(_ROOT if root else {})})
            case "array":
                inner = self._type(document.get("items"))
                return inner and f"list {inner}"
            case "string":
                return _FORMATS.get(str(document.get("format")), "STRING")
            case other:
                return _SCALARS.get(str(other), "")

    def _message(self, fields: Mapping[str, Json]) -> str:
        self._made += 1
        name, number = f"{_SELF}{self._made}", 0
        message = self._parts["descriptor_pb2"].DescriptorProto(name=name)
        for field, document in fields.items():
            written, found = rule_values.escaped(field), self._type(document)
            if not found or not (written.isidentifier() and written.isascii()):
                continue
            number += 1
            self._field(message, written, number, found)
        self._file.message_type.append(message)
        return f"{_PACKAGE}.{name}"

    def _field(self, message: Any, name: str, number: int, found: str) -> None:
        pb = self._parts["descriptor_pb2"].FieldDescriptorProto
        shape, _, inner = found.partition(" ")
        entry_name = _entry(name)
        taken = {each.name for each in (*message.nested_type, *message.field)}
        if shape == "map" and entry_name in taken:
            shape, inner = _MAP, ""
        if shape == "map":
            entry = message.nested_type.add(name=entry_name)
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=pb.LABEL_OPTIONAL, type=pb.TYPE_STRING)
            _typed(pb, entry.field.add(name="value", number=2, label=pb.LABEL_OPTIONAL), _flat(inner))
            _typed(pb, message.field.add(name=name, number=number, label=pb.LABEL_REPEATED),
                   f"{_PACKAGE}.{message.name}.{entry_name}")
        else:
            label = pb.LABEL_REPEATED if shape == "list" else pb.LABEL_OPTIONAL
            _typed(pb, message.field.add(name=name, number=number, label=label), _flat(inner or shape))


def _entry(name: str) -> str:
    """What protobuf wants the entries of a map to be called."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"


def _flat(found: str) -> str:
    """What is in a list or a map: those cannot hold others of their sort, but ones of anything."""
    return {"list": _LIST, "map": _MAP}.get(found.partition(" ")[0], found)


def _typed(pb: Any, field: Any, found: str) -> None:
    if found in _FIELD_TYPES:
        field.type = getattr(pb, _FIELD_TYPES[found])
    else:
        field.type, field.type_name = pb.TYPE_MESSAGE, f".{found}"
