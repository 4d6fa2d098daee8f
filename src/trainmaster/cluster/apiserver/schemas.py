"""Structural schemas of custom resources: pruning, defaults, checks.

Pruning and defaults are one walk of ours over a compiled schema; checking values is left to jsonschema-rs, whose
findings are put into the words of Kubernetes. What plain JSON schema cannot say (lists without repeats, embedded
objects, rules in CEL) is a second walk, over the parts of an object that have such a rule. What a schema itself must
look like is in `definition_schemas`, what a rule says in `schema_rules`.
"""

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs
import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, embedded, formats, schema_rules
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.schema_parts import EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, PRESERVE, RULES
from trainmaster.cluster.apiserver.schema_rules import Budget, Rule

# An object with more faults than this is described well enough by the first ones.
MOST_FAULTS = 20

# Said beside faults after which a real server does not look at the rules in CEL any more.
UNCHECKED = Cause(
    "<nil>", "FieldValueInvalid", "Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation")
_BLOCKING = frozenset({"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany",
                       "FieldValueTypeInvalid"})

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
    rules: tuple[Rule, ...] = ()             # the other rules in CEL
    document: Object = field(default_factory=dict)    # of a level that has some
    unique: str = ""                         # a list that is a set, or a map by `keys`
    keys: tuple[str, ...] = ()
    ruled: bool = False                      # one of these, or an embedded object, is here or below
    defaults: tuple[str, ...] = ()           # properties that have a default


class StructuralSchema:
    """One version's schema. Without a document, everything is kept and nothing is checked."""

    def __init__(self, document: Object | None) -> None:
        self.document: Object = document if document is not None else {"type": "object", PRESERVE: True}
        self._root = _compiled(self.document)
        self._validator: Any = None
        self._has_rules = _has_rules(self.document)

    def settle(self, thing: Object) -> list[str]:
        """Drop unknown fields and fill in defaults, in place; the paths that were dropped, in order.

        Raises Misfit, after all of it is done, for an embedded object that cannot be one.
        """
        unknown: list[str] = []
        misfits: list[str] = []
        kept: Object = {name: thing.pop(name) for name in sorted(_IMPLIED) if name in thing}
        _settle(thing, self._root, "", unknown, misfits)
        thing.update(kept)
        if misfits:
            raise embedded.Misfit(misfits[0])
        return unknown

    def check(self, thing: Object, old: Object | None) -> Iterator[Cause]:
        if self._validator is None:
            self._validator = validator(self.document)
        found = [] if self._validator.is_valid(thing) else list(_said(self._validator.iter_errors(thing)))
        yield from found
        blocked = self._has_rules and any(cause.reason in _BLOCKING for cause in found)
        if blocked:
            yield UNCHECKED
        if self._root.ruled:
            yield from _broken(thing, old, self._root, "", None if blocked else Budget())


def _has_rules(document: Json) -> bool:
    """Whether there are rules in CEL here or below."""
    if not isinstance(document, dict):
        return False
    inner = [*(document.get("properties") or {}).values(), document.get("items"), document.get("additionalProperties")]
    return bool(document.get(RULES)) or any(map(_has_rules, inner))


def validator(document: Object) -> Any:
    """Compiled checks. Raises ValueError for what cannot be compiled, such as a broken pattern."""
    return jsonschema_rs.Draft4Validator(_portable(document), validate_formats=True, formats=FORMATS)


def broken_by(document: Object, value: Json, path: str) -> Iterator[Cause]:
    """What is wrong with a value by a schema, such as the default in it. Raises ValueError like `validator`."""
    found = list(_said(validator(document).iter_errors(value)))
    yield from (Cause(_within(path, cause.field), cause.reason, cause.message) for cause in found)
    node = _compiled(document)
    if not found and node.ruled:
        yield from _broken(value, None, node, path, Budget())


def _compiled(document: Object) -> Node:
    node = Node(
        preserve=bool(document.get(PRESERVE)), embedded=bool(document.get(EMBEDDED)),
        nullable=bool(document.get("nullable")), fixed=_fixed_message(document),
        keys=tuple(document.get(LIST_KEYS) or ()), rules=schema_rules.rules_of(document))
    if node.rules:
        node.document = document
    if document.get(LIST_TYPE) in {"set", "map"}:
        node.unique = document[LIST_TYPE]
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
    below = [*node.properties.values(), *(inner for inner in (node.others, node.items) if inner is not None)]
    node.ruled = bool(node.fixed or node.rules or node.unique or node.embedded) or any(inner.ruled for inner in below)
    return node


def _fixed_message(document: Object) -> str:
    for rule in document.get(RULES) or ():
        if isinstance(rule, dict) and schema_rules.is_fixed(rule):
            return str(rule.get("message") or f"failed rule: {rule['rule']}")
    return ""


def _settle(value: Json, node: Node, path: str, unknown: list[str], misfits: list[str]) -> None:
    if isinstance(value, list):
        if node.items is not None:
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    _settle(item, node.items, f"{path}[{index}]", unknown, misfits)
        return
    if not isinstance(value, dict):
        return
    properties = node.properties
    if node.embedded and (wrong := embedded.settled(value, path, unknown)):
        misfits.append(wrong)
    for key in list(value):
        if node.embedded and key in _IMPLIED:
            continue
        inner = properties.get(key) or node.others
        if inner is None:
            if not node.preserve:
                unknown.append(_below(path, key))
                del value[key]
            continue
        item = value[key]
        if item is None:
            if not inner.nullable:
                del value[key]
        elif isinstance(item, dict | list):
            _settle(item, inner, _below(path, key), unknown, misfits)
    for key in node.defaults:
        if key not in value:
            inner = properties[key]
            value[key] = orjson.loads(inner.default or b"null")
            _settle(value[key], inner, _below(path, key), unknown, misfits)


def _broken(value: Json, old: Json, node: Node, path: str, budget: Budget | None) -> Iterator[Cause]:
    """The rules beyond JSON schema, those in CEL with a budget. `old` is None for what is new: that is not a change."""
    if node.rules and budget is not None:
        yield from schema_rules.broken(node.rules, node.document, value, old, path, budget)
    if node.fixed and old is not None and value != old:
        yield causes.invalid(path, value, node.fixed)
    if isinstance(value, dict):
        if node.embedded:
            yield from embedded.faults(value, path)
        before = old if isinstance(old, dict) else {}
        for key, item in value.items():
            inner = node.properties.get(key) or node.others
            if inner is not None and inner.ruled:
                yield from _broken(item, before.get(key), inner, _below(path, key), budget)
    elif isinstance(value, list):
        if node.unique and not (isinstance(old, list) and any(_repeated(old, node, path))):
            yield from _repeated(value, node, path)
        if node.items is not None and node.items.ruled:
            for at, item in enumerate(value):
                yield from _broken(item, _counterpart(item, old, node), node.items, f"{path}[{at}]", budget)


def _repeated(values: list[Json], node: Node, path: str) -> Iterator[Cause]:
    seen: set[bytes] = set()
    for at, value in enumerate(values):
        known = _identity(value, node)
        printed = orjson.dumps(known, option=orjson.OPT_SORT_KEYS)
        if printed in seen:
            yield causes.duplicate(f"{path}[{at}]", known)
        seen.add(printed)


def _identity(value: Json, node: Node) -> Json:
    if node.unique == "map" and isinstance(value, dict):
        return {key: value[key] for key in node.keys if key in value}
    return value


def _counterpart(item: Json, old: Json, node: Node) -> Json:
    """What an item of a list was before; only a list with keys can tell."""
    if node.unique != "map" or not isinstance(old, list):
        return None
    return next((each for each in old if _identity(each, node) == _identity(item, node)), None)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _within(path: str, inner: str) -> str:
    return f"{path}{'' if not inner or inner.startswith('[') else '.'}{inner}"


def _portable(document: Object) -> Object:
    """OpenAPI v3 with Kubernetes' extensions as plain JSON schema."""
    found: Object = {name: document[name] for name in _PLAIN if document.get(name) is not None}
    impossible = _tidied(found)
    if document.get(INT_OR_STRING):
        found["type"] = ["integer", "string"]
    elif document.get("type"):
        found["type"] = document["type"]
    if document.get("format") in FORMATS:
        found["format"] = document["format"]
    if document.get("nullable"):
        given = found.get("type")
        if given is not None:
            found["type"] = [*([given] if isinstance(given, str) else given), "null"]
        if "enum" in found and None not in found["enum"]:
            found["enum"] = [*found["enum"], None]
    if isinstance(document.get("properties"), dict):
        found["properties"] = {name: _portable(inner or {}) for name, inner in document["properties"].items()}
    for name in ("items", "additionalProperties", "not"):
        if isinstance(document.get(name), dict):
            found[name] = _portable(document[name])
    for name in _COMBINED:
        # For int-or-string the usual `anyOf` only repeats the two types.
        if document.get(name) and not (name == "anyOf" and document.get(INT_OR_STRING)):
            found[name] = [_portable(inner or {}) for inner in document[name]]
    if document.get("format") in _RANGES:
        least, most = _RANGES[document["format"]]
        impossible.append({"minimum": least, "maximum": most})
    if impossible:
        found["allOf"] = [*found.get("allOf", ()), *impossible]
    return found


def _tidied(found: Object) -> list[Object]:
    """Take out, in place, what Kubernetes takes and JSON schema does not; what says the same instead."""
    instead: list[Object] = []
    for name, kind in _SIZES.items():
        if found.get(name, 0) < 0:
            found[name] = 0
            if name.startswith("max"):
                instead.append({"not": {"type": kind, name: 0}})
    if found.get("multipleOf", 1) <= 0:
        del found["multipleOf"]
        instead.append({"not": {"type": "number"}})
    for bound in ("Minimum", "Maximum"):
        if bound.lower() not in found:
            found.pop(f"exclusive{bound}", None)
    for name in ("enum", "required"):
        if name in found:
            unlike = {orjson.dumps(each, option=orjson.OPT_SORT_KEYS): each for each in found[name]}
            found[name] = list(unlike.values())
            if not unlike:
                del found[name]
    return instead


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
        case "maxItems" | "maxProperties":
            return causes.too_many(path, len(value), int(limit or 0))
        case "format":
            said = causes.quoted(value)
            return Cause(path, "FieldValueTypeInvalid",
                         f"Invalid value: {said}: {path} in body must be of type {kind.format}: {said}")
        case "minLength":
            return causes.invalid(path, value, f"{path} in body should be at least {limit} chars long")
        case "minItems":
            return causes.invalid(path, len(value), f"{path} in body should have at least {limit} items")
        case name if name in _BOUNDS:
            return causes.invalid(path, value, f"{path} in body should be {_BOUNDS[name]} {limit}")
        case _:
            return causes.invalid(path, causes.type_name(value), f"{path} in body {message[:200]}")


def _is_address(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version
        except ValueError:
            return False

    return check


# Of the formats that a real server checks, those that definitions use.
FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": lambda text: not text or formats.is_date_time(text), "byte": formats.is_base64,
    "uuid": formats.is_uuid, "ipv4": _is_address(4), "ipv6": _is_address(6),
}
_RANGES = {"int32": (-2**31, 2**31 - 1), "int64": (-2**63, 2**63 - 1)}
_SIZES = {"minLength": "string", "maxLength": "string", "minItems": "array", "maxItems": "array",
          "minProperties": "object", "maxProperties": "object"}
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
