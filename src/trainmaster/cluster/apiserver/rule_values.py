"""Values as rules in CEL see them: fields by names that can be written, numbers, bytes, moments as such. Pure.

The library that evaluates expressions takes no moment and no duration from Python. So a rule about fields of format
`date`, `date-time` or `duration` is compiled with an expression before it that converts them: the object is written
anew, with all fields that its schema has. Only a rule with the name of such a field in it pays for that. In maps with
free keys they stay text.
"""

import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from trainmaster.api.meta import Json, Object

# Words of the language that fields may be called, and signs that names may have and fields in the language may not.
_WORDS = frozenset({"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
                    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"})
_SIGNS = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_FORMATS = {"date-time": "timestamp({0})", "datetime": "timestamp({0})", "date": "timestamp({0} + 'T00:00:00Z')",
            "duration": "duration({0})"}
_IMPLIED = ("apiVersion", "kind", "metadata")      # of whole objects, whatever the schema says


def bound(value: Json, document: Any) -> Any:
    """A value as expressions see it: fields by names that can be written in them, numbers and bytes as such."""
    if not isinstance(document, dict):
        return value
    if isinstance(value, dict):
        fields, others = document.get("properties") or {}, document.get("additionalProperties")
        return {escaped(key) if key in fields else key: bound(item, fields.get(key, others))
                for key, item in value.items()}
    if isinstance(value, list):
        return [bound(item, document.get("items")) for item in value]
    if document.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if document.get("format") == "byte" and isinstance(value, str):
        with suppress(ValueError):
            return base64.b64decode(value)
    return value


def escaped(name: str) -> str:
    """A field's name as it is written in an expression."""
    if name in _WORDS:
        return f"__{name}__"
    for sign, word in _SIGNS:
        name = name.replace(sign, word)
    return name


def conversions(document: Object, text: str, *variables: str) -> dict[str, str]:
    """What the variables must be bound to before an expression about values of this schema; none: as they are."""
    if not any(not name or re.search(rf"\b{re.escape(name)}\b", text) for name in _fields(document, "")):
        return {}
    return {each: found for each in variables if re.search(rf"\b{each}\b", text)
            and (found := _converted(document, each, 0))}


def _fields(document: Json, name: str) -> Iterator[str]:
    """Of fields that hold a moment or a duration, or a list of them; "" for the value itself."""
    if not isinstance(document, dict):
        return
    if document.get("type") == "string" and document.get("format") in _FORMATS:
        yield name
    yield from _fields(document.get("items"), name)
    for field, inner in (document.get("properties") or {}).items():
        yield from _fields(inner, escaped(field))


def _converted(document: Json, value: str, depth: int) -> str:
    """An expression for the value with its moments, or "" if it has none."""
    if not isinstance(document, dict):
        return ""
    if document.get("type") == "string" and document.get("format") in _FORMATS:
        return _FORMATS[document["format"]].format(value)
    inner = f"v{depth}"
    if item := _converted(document.get("items"), inner, depth + 1):
        return f"{value}.map({inner}, {item})"
    fields = document.get("properties") or {}
    found = {name: _converted(each, inner, depth + 1) for name, each in fields.items()}
    if not any(found.values()):
        return ""
    entries = [f"?'{escaped(name)}': {value}.?{escaped(name)}" + (f".optMap({inner}, {found[name]})"
                                                                 if found.get(name) else "")
               for name in dict.fromkeys((*fields, *_IMPLIED)) if escaped(name).isidentifier()]
    return "{" + ", ".join(entries) + "}"
