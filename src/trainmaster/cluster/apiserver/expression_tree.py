"""The compiled form of an expression, to be looked at: what is called, with which types.

The library gives it as the message that CEL's specification describes. That description is no part of any package that
we have, so the fields that matter are listed here, once; others are passed over. A tree that is too deep for protobuf's
own limit is none.
"""

import importlib
from functools import cache
from typing import Any

# Message: its fields as `name=number type`, `*` before a type for many. Maps are lists of entries on the wire.
_MESSAGES = {
    "Form": "checked=2 Checked",
    "Checked": "references=2 *Refers types=3 *HasType expression=4 Expr source=5 Source",
    "Source": "positions=4 *Position",
    "Position": "key=1 int64 value=2 int64",
    "Refers": "key=1 int64 value=2 Reference",
    "Reference": "name=1 string overloads=3 *string",
    "HasType": "key=1 int64 value=2 Type",
    "Type": "dyn=1 Empty null=2 int64 primitive=3 int64 well_known=5 int64 list=6 ListOf map=7 MapOf message=9 string "
            "parameter=10 string opaque=14 Opaque",
    "Empty": "",
    "ListOf": "of=1 Type",
    "MapOf": "key=1 Type value=2 Type",
    "Opaque": "name=1 string of=2 *Type",
    "Expr": "id=2 int64 constant=3 Constant ident=4 Ident select=5 Select call=6 Call list=7 List "
            "struct=8 Struct loop=9 Loop",
    "Constant": "truth=2 bool integer=3 int64 text=6 string data=7 bytes",
    "Ident": "name=1 string",
    "Select": "operand=1 Expr field=2 string test=3 bool",
    "Call": "target=1 Expr function=2 string args=3 *Expr",
    "List": "items=1 *Expr optional=2 *int64",
    "Struct": "message=1 string entries=2 *Entry",
    "Entry": "field=2 string key=3 Expr value=4 Expr optional=5 bool",
    "Loop": "variable=1 string range=2 Expr result_variable=3 string start=4 Expr condition=5 Expr step=6 Expr "
            "result=7 Expr second_variable=8 string",
}
_PLAIN = {"int64": "TYPE_INT64", "string": "TYPE_STRING", "bool": "TYPE_BOOL", "bytes": "TYPE_BYTES"}


class TooDeep(Exception):
    """The tree cannot be read here."""


def read(form: bytes) -> Any:
    """Raises TooDeep. The package `protobuf` is there: without it nothing is compiled with types."""
    found = _form()()
    error = importlib.import_module("google.protobuf.message").DecodeError
    try:
        found.ParseFromString(form)
    except error as problem:
        raise TooDeep(str(problem)) from problem
    return found.checked


@cache
def _form() -> Any:
    pb = importlib.import_module("google.protobuf.descriptor_pb2")
    file = pb.FileDescriptorProto(name="tree.proto", package="tree", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message, words = file.message_type.add(name=name), fields.split()
        for written, kind in zip(words[::2], words[1::2], strict=True):
            field, _, number = written.partition("=")
            label = pb.FieldDescriptorProto.LABEL_REPEATED if kind[0] == "*" else pb.FieldDescriptorProto.LABEL_OPTIONAL
            made, kind = message.field.add(name=field, number=int(number), label=label), kind.removeprefix("*")
            if kind in _PLAIN:
                made.type = getattr(pb.FieldDescriptorProto, _PLAIN[kind])
            else:
                made.type, made.type_name = pb.FieldDescriptorProto.TYPE_MESSAGE, f".tree.{kind}"
    pool = importlib.import_module("google.protobuf.descriptor_pool").DescriptorPool()
    pool.Add(file)
    factory = importlib.import_module("google.protobuf.message_factory")
    return factory.GetMessageClass(pool.FindMessageTypeByName("tree.Form"))
