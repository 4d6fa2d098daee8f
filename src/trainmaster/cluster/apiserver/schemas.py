"""Structural schemas of custom resources: pruning, defaults, checks.

Pruning and defaults are one walk of ours over a compiled schema; checking values is left to jsonschema-rs, whose
findings are put into the words of Kubernetes. Of the validation rules in CEL only `self == oldSelf` is understood,
which is what the kinds we serve use; other rules are kept in the definition and not enforced.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs
import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes
from trainmaster.cluster.apiserver.causes import Cause

TYPES = ("array", "boolean", "integer", "number", "object", "string")
PRESERVE, INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
EMBEDDED, RULES = "x-kubernetes-embedded-resource", "x-kubernetes-validations"
# A definition with more faults than this is described well enough by the first ones.
MOST_FAULTS = 20
DEEPEST = 100

_COMBINED = ("allOf", "anyOf", "oneOf")
# Keywords that jsonschema-rs understands as OpenAPI v3 means them (draft 4 in all that matters).
_PLAIN = ("enum", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
          "maxItems", "minItems", "uniqueItems", "multipleOf", "maxProperties", "minProperties", "required")
_IMPLIED = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(slots=True)
class Node:
    """One level of a schema, as the walk needs it."""

    properties: dict[str, "Node"] = field(default_factory=dict)
    others: "Node | None" = None             # additionalProperties
    items: "Node | None" = None
    preserve: bool = False
    embedded: bool = False
    nullable: bool = False
    default: bytes | None = None             # as JSON, so that every object gets a copy of its own
    fixed: str = ""                          # the message of a rule `self == oldSelf`
    holds_fixed: bool = False                # such a rule is here or below
    defaults: tuple[str, ...] = ()           # properties that have a default


class StructuralSchema:
    """One version's schema. Without a document, everything is kept and nothing is checked."""

    def __init__(self, document: Object | None) -> None:
        self.document: Object = document if document is not None else {"type": "object", PRESERVE: True}
        self._root = _compiled(self.document)
        self._validator: Any = None

    def settle(self, thing: Object) -> list[str]:
        """Drop unknown fields and fill in defaults, in place; the paths that were dropped, in order."""
        unknown: list[str] = []
        kept: Object = {name: thing.pop(name) for name in sorted(_IMPLIED) if name in thing}
        _settle(thing, self._root, "", unknown)
        thing.update(kept)
        return unknown

    def check(self, thing: Object, old: Object | None) -> Iterator[Cause]:
        if self._validator is None:
            self._validator = validator(self.document)
        if not self._validator.is_valid(thing):
            yield from _said(self._validator.iter_errors(thing))
        if old is not None and self._root.holds_fixed:
            yield from _changed(thing, old, self._root, "")


def validator(document: Object) -> Any:
    """Compiled checks. Raises ValueError for what cannot be compiled, such as a broken pattern."""
    return jsonschema_rs.Draft4Validator(_portable(document), validate_formats=False)


def faults(document: Json, path: str, depth: int = 0) -> Iterator[Cause]:
    """What is wrong with a schema itself."""
    if not isinstance(document, dict):
        yield causes.invalid(path, causes.type_name(document), "must be an object")
        return
    if depth > DEEPEST:
        yield causes.forbidden(path, f"nested more than {DEEPEST} levels deep")
        return
    kind = document.get("type")
    if kind is not None and kind not in TYPES:
        yield causes.unsupported(f"{path}.type", kind, TYPES)
    if "$ref" in document:
        yield causes.forbidden(f"{path}.$ref", "$ref is not supported")
    for name in ("properties", "definitions"):
        inner = document.get(name) or {}
        if not isinstance(inner, dict):
            yield causes.invalid(f"{path}.{name}", causes.type_name(inner), "must be an object")
            continue
        for key, value in inner.items():
            yield from faults(value, f"{path}.{name}[{key}]", depth + 1)
    for name in ("items", "not"):
        if document.get(name) is not None:
            yield from faults(document[name], f"{path}.{name}", depth + 1)
    if isinstance(document.get("additionalProperties"), dict):
        yield from faults(document["additionalProperties"], f"{path}.additionalProperties", depth + 1)
    for name in _COMBINED:
        inner = document.get(name) or []
        if not isinstance(inner, list):
            yield causes.invalid(f"{path}.{name}", causes.type_name(inner), "must be an array")
            continue
        for index, value in enumerate(inner):
            yield from faults(value, f"{path}.{name}[{index}]", depth + 1)


def _compiled(document: Object) -> Node:
    node = Node(
        preserve=bool(document.get(PRESERVE)), embedded=bool(document.get(EMBEDDED)),
        nullable=bool(document.get("nullable")), fixed=_fixed_message(document))
    if "default" in document:
        node.default = orjson.dumps(document["default"])
    node.properties = {name: _compiled(inner) for name, inner in (document.get("properties") or {}).items()}
    more = document.get("additionalProperties")
    if isinstance(more, dict):
        node.others = _compiled(more)
    elif more:
        node.preserve = True
    if isinstance(document.get("items"), dict):
        node.items = _compiled(document["items"])
    if document.get(INT_OR_STRING) or ("type" not in document and not node.properties):
        node.preserve = True
    node.defaults = tuple(name for name, inner in node.properties.items() if inner.default is not None)
    below = [*node.properties.values(), *([node.others] if node.others else [])]
    node.holds_fixed = bool(node.fixed) or any(inner.holds_fixed for inner in below)
    return node


def _fixed_message(document: Object) -> str:
    for rule in document.get(RULES) or ():
        if isinstance(rule, dict) and "".join(str(rule.get("rule", "")).split()) in {"self==oldSelf", "oldSelf==self"}:
            return str(rule.get("message") or f"failed rule: {rule['rule']}")
    return ""


def _settle(value: Json, node: Node, path: str, unknown: list[str]) -> None:
    if isinstance(value, list):
        if node.items is not None:
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    _settle(item, node.items, f"{path}[{index}]", unknown)
        return
    if not isinstance(value, dict):
        return
    properties = node.properties
    for key in list(value):
        inner = properties.get(key) or node.others
        if inner is None:
            if not node.preserve and not (node.embedded and key in _IMPLIED):
                unknown.append(_below(path, key))
                del value[key]
            continue
        item = value[key]
        if item is None:
            if not inner.nullable:
                del value[key]
        elif isinstance(item, dict | list):
            _settle(item, inner, _below(path, key), unknown)
    for key in node.defaults:
        if key not in value:
            inner = properties[key]
            value[key] = orjson.loads(inner.default or b"null")
            _settle(value[key], inner, _below(path, key), unknown)


def _changed(value: Json, old: Json, node: Node, path: str) -> Iterator[Cause]:
    """Fields that may not change and did. A field that appears or goes away is not a change."""
    if node.fixed and value != old:
        said = f"Invalid value: {causes.quoted(causes.type_name(value))}: {node.fixed}"
        yield Cause(path, "FieldValueInvalid", said)
    if isinstance(value, dict) and isinstance(old, dict):
        for key in value.keys() & old.keys():
            inner = node.properties.get(key) or node.others
            if inner is not None and inner.holds_fixed:
                yield from _changed(value[key], old[key], inner, _below(path, key))


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _portable(document: Object) -> Object:
    """OpenAPI v3 with Kubernetes' extensions as plain JSON schema."""
    found: Object = {name: document[name] for name in _PLAIN if name in document}
    if document.get(INT_OR_STRING):
        found["type"] = ["integer", "string"]
    elif "type" in document:
        found["type"] = document["type"]
    if document.get("nullable"):
        given = found.get("type")
        if given is not None:
            found["type"] = [*([given] if isinstance(given, str) else given), "null"]
        if "enum" in found:
            found["enum"] = [*found["enum"], None]
    if isinstance(document.get("properties"), dict):
        found["properties"] = {name: _portable(inner) for name, inner in document["properties"].items()}
    for name in ("items", "additionalProperties", "not"):
        if isinstance(document.get(name), dict):
            found[name] = _portable(document[name])
    for name in _COMBINED:
        # For int-or-string the usual `anyOf` only repeats the two types.
        if isinstance(document.get(name), list) and not (name == "anyOf" and document.get(INT_OR_STRING)):
            found[name] = [_portable(inner) for inner in document[name]]
    return found


def _said(errors: Iterable[Any]) -> Iterator[Cause]:
    for count, error in enumerate(errors):
        if count == MOST_FAULTS:
            return
        yield _cause(_path(error.instance_path), error.kind, error.instance, str(error.message))


def _cause(path: str, kind: Any, value: Json, message: str) -> Cause:
    limit = getattr(kind, "limit", None)
    match str(kind.name):
        case "required":
            return causes.required(_below(path, str(kind.property)))
        case "type":
            return causes.mistyped(path, value, ",".join(name for name in _types(kind) if name != "null"))
        case "enum":
            return causes.unsupported(path, value, [option for option in kind.options if option is not None])
        case "pattern":
            return causes.invalid(path, value, f"{path} in body should match '{kind.pattern}'")
        case "maxLength":
            return causes.too_long(path, int(limit or 0))
        case "maxItems":
            return causes.too_many(path, len(value), int(limit or 0))
        case "minLength":
            return causes.invalid(path, value, f"{path} in body should be at least {limit} chars long")
        case "minItems":
            return causes.invalid(path, len(value), f"{path} in body should have at least {limit} items")
        case name if name in _BOUNDS:
            return causes.invalid(path, value, f"{path} in body should be {_BOUNDS[name]} {limit}")
        case _:
            return causes.invalid(path, causes.type_name(value), f"{path} in body {message[:200]}")


_BOUNDS = {
    "minimum": "greater than or equal to", "maximum": "less than or equal to",
    "exclusiveMinimum": "greater than", "exclusiveMaximum": "less than",
}


def _types(kind: Any) -> Sequence[str]:
    return [str(name) for name in kind.types]


def _path(parts: Sequence[str | int]) -> str:
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else _below(path, part)
    return path
