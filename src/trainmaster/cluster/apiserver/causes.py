"""What is wrong with one field, in the words Kubernetes uses.

Clients match on these texts and kubectl prints them as they are, so they are wire format, not prose of ours. Rules
(`names`, `pods`, `schemas`, ...) yield causes; whoever runs the rules turns them into one 422 answer (`failures`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from trainmaster.api.meta import Json, Object

# A value is quoted back to whoever sent it, but never a whole document.
MOST_QUOTED = 512


@dataclass(frozen=True, slots=True)
class Cause:
    """One fault: `field: message`, and the reason that programs read."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message

    def document(self) -> Object:
        found = {"reason": self.reason, "message": self.message, "field": self.field}
        return {name: value for name, value in found.items() if value}


def required(field: str, detail: str = "") -> Cause:
    return Cause(field, "FieldValueRequired", _detailed("Required value", detail))


def invalid(field: str, value: Json, detail: str = "") -> Cause:
    return Cause(field, "FieldValueInvalid", _detailed(f"Invalid value: {quoted(value)}", detail))


def unquoted(field: str, detail: str) -> Cause:
    """A value that is too much to quote, or is none of its own."""
    return Cause(field, "FieldValueInvalid", f"Invalid value: {detail}")


def unsupported(field: str, value: Json, choices: Sequence[str]) -> Cause:
    listed = ", ".join(quoted(choice) for choice in choices)
    return Cause(field, "FieldValueNotSupported", f"Unsupported value: {quoted(value)}: supported values: {listed}")


def forbidden(field: str, detail: str) -> Cause:
    return Cause(field, "FieldValueForbidden", _detailed("Forbidden", detail))


def not_found(field: str, value: Json, detail: str = "") -> Cause:
    return Cause(field, "FieldValueNotFound", _detailed(f"Not found: {quoted(value)}", detail))


def duplicate(field: str, value: Json, detail: str = "") -> Cause:
    return Cause(field, "FieldValueDuplicate", _detailed(f"Duplicate value: {quoted(value)}", detail))


def too_long(field: str, most: int) -> Cause:
    return Cause(field, "FieldValueTooLong", f"Too long: may not be more than {most} byte{'s' * (most != 1)}")


def too_many(field: str, found: int, most: int) -> Cause:
    items = "item" if most == 1 else "items"
    return Cause(field, "FieldValueTooMany", f"Too many: {found}: must have at most {most} {items}")


def mistyped(field: str, value: Json, wanted: str) -> Cause:
    """A value of the wrong JSON type; what is quoted is the type, not the value, as the real server does."""
    found = quoted(type_name(value))
    said = f"Invalid value: {found}: {field} in body must be of type {wanted}: {found}"
    return Cause(field, "FieldValueTypeInvalid", said)


def type_name(value: Json) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case None:
            return "null"
        case _:
            return "object"


def quoted(value: Json) -> str:
    return cut(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode())


def cut(text: str) -> str:
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."


def _detailed(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text
