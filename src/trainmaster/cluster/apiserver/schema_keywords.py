"""What the keywords of a schema in a definition may say, each where it stands. Pure.

Some of JSON schema is not for definitions, and the words of Kubernetes (`x-kubernetes-...`) want others beside them.
How keywords make up a structural schema is in `structural`, what rules in CEL say in `schema_rules`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, schema_paths
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.schema_parts import (
    EMBEDDED,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    META,
    PRESERVE,
    RULES,
    definitions,
    dependencies,
    item_list,
    items,
    listed,
    negated,
    others,
    properties,
    type_of,
    unusable,
    words,
)

TYPES = ("array", "boolean", "integer", "number", "object", "string")
LIST_TYPES, MAP_TYPES = ("atomic", "set", "map"), ("atomic", "granular")
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINES = re.compile(r"[\n\r]")
_SCALAR = "must be a scalar type if parent array's x-kubernetes-list-type is map"
_ATOMIC = "must be atomic as item of a list with x-kubernetes-list-type=set"


@dataclass(frozen=True, slots=True)
class _Around:
    """What is said about a schema by those that it is in."""

    root: bool = False
    meta: bool = False            # inside of the type or the metadata of an object
    defaultless: str = ""         # why there may be no default


def faults(document: Object, path: str) -> Iterator[Cause]:
    """What is wrong with the schema of a whole object, and with those in it."""
    yield from _faults(document, path, _Around(root=True))


def _faults(document: Object, path: str, around: _Around) -> Iterator[Cause]:
    yield from _unsupported(document, path, around)
    if document.get("uniqueItems"):
        yield causes.forbidden(f"{path}.uniqueItems",
                               "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
    yield from _inner(document, path, around)
    if document.get(PRESERVE) is False:
        yield causes.invalid(f"{path}.{PRESERVE}", False, "must be true or undefined")
    yield from _map_faults(document, path)
    yield from _list_faults(document, path)
    yield from _key_faults(document, path)
    yield from _item_faults(document, path)
    if rules := listed(document, RULES):
        seen = None if unusable(document) else document
        for at, rule in enumerate(rules):
            yield from _rule_faults(rule, seen, f"{path}.{RULES}[{at}]")


def _unsupported(document: Object, path: str, around: _Around) -> Iterator[Cause]:
    kind = type_of(document)
    if kind and kind not in TYPES:
        yield causes.unsupported(f"{path}.type", kind, TYPES)
    if document.get("default") is not None and around.defaultless:
        yield causes.forbidden(f"{path}.default", f"must not be set {around.defaultless}")
    for name, present in (
        ("id", bool(document.get("id"))), ("additionalItems", document.get("additionalItems") is not None),
        ("patternProperties", bool(document.get("patternProperties"))),
        ("definitions", bool(document.get("definitions"))), ("dependencies", document.get("dependencies") is not None),
        ("$ref", document.get("$ref") is not None),
    ):
        if present:
            yield causes.forbidden(f"{path}.{name}", f"{name} is not supported")
    if kind == "null":
        yield causes.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if item_list(document):
        yield causes.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if around.meta and document.get(EMBEDDED):
        yield causes.forbidden(f"{path}.{EMBEDDED}", "must not be used inside of resource meta")


def _inner(document: Object, path: str, around: _Around) -> Iterator[Cause]:
    inside = replace(around, root=False) if around.root else around
    more = document.get("additionalProperties")
    if more is not None and more is not True and document.get("properties"):
        yield causes.forbidden(f"{path}.additionalProperties",
                               "additionalProperties and properties are mutual exclusive")
    if (inner := others(document)) is not None:
        why = "inside additionalProperties applying to object metadata"
        yield from _faults(inner, f"{path}.additionalProperties",
                           replace(inside, defaultless=why) if around.meta else inside)
    for name, inner in properties(document).items():
        yield from _faults(inner, f"{path}.properties[{name}]", _of_field(name, document, around))
    if (inner := negated(document)) is not None:
        yield from _faults(inner, f"{path}.not", inside)
    for combined in ("allOf", "oneOf", "anyOf"):
        for at, inner in enumerate(listed(document, combined)):
            yield from _faults(inner, f"{path}.{combined}[{at}]", inside)
    for name, inner in definitions(document).items():
        yield from _faults(inner, f"{path}.definitions[{name}]", inside)
    if (inner := items(document)) is not None:
        yield from _faults(inner, f"{path}.items", inside)
    for at, inner in enumerate(item_list(document)):
        yield from _faults(inner, f"{path}.items[{at}]", inside)
    for name, inner in dependencies(document).items():
        yield from _faults(inner, f"{path}.dependencies[{name}]", inside)


def _of_field(name: str, document: Object, around: _Around) -> _Around:
    if name not in META or not (around.root or document.get(EMBEDDED)):
        return replace(around, root=False) if around.root else around
    return _Around(meta=True, defaultless=f"in top-level {name}" if around.root else around.defaultless)


def _map_faults(document: Object, path: str) -> Iterator[Cause]:
    found = document.get(MAP_TYPE)
    if found is None:
        return
    yield from _wanted_type(document, path, "object", MAP_TYPE)
    if found not in MAP_TYPES:
        yield causes.unsupported(f"{path}.{MAP_TYPE}", found, MAP_TYPES)


def _list_faults(document: Object, path: str) -> Iterator[Cause]:
    found, inner = document.get(LIST_TYPE), items(document)
    if found is not None and type_of(document) != "array":
        yield from _wanted_type(document, path, "array", LIST_TYPE)
    elif found == "set" and inner is not None:
        ordered = inner.get(LIST_TYPE)
        if type_of(inner) == "array" and ordered not in {None, "atomic"}:
            yield causes.invalid(f"{path}.items.{LIST_TYPE}", ordered, _ATOMIC)
        if type_of(inner) == "object" and inner.get(MAP_TYPE) != "atomic":
            yield causes.invalid(f"{path}.items.{MAP_TYPE}", ordered, _ATOMIC)
    if found is not None and found not in LIST_TYPES:
        yield causes.unsupported(f"{path}.{LIST_TYPE}", found, LIST_TYPES)


def _wanted_type(document: Object, path: str, wanted: str, because: str) -> Iterator[Cause]:
    kind, told = type_of(document), f"must be {wanted} if {because} is specified"
    if not kind:
        yield causes.required(f"{path}.type", told)
    elif kind != wanted:
        yield causes.invalid(f"{path}.type", kind, told)


def _key_faults(document: Object, path: str) -> Iterator[Cause]:
    """Of a list whose items are told apart by some of their fields."""
    found, keys, inner = document.get(LIST_TYPE), words(document, LIST_KEYS), items(document)
    if keys and found != "map":
        told = f"must be map if {LIST_KEYS} is non-empty"
        yield (causes.required(f"{path}.{LIST_TYPE}", told) if found is None else
               causes.invalid(f"{path}.{LIST_TYPE}", found, told))
    if found != "map":
        return
    if not keys:
        yield causes.required(f"{path}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    if document.get("items") is None:
        yield causes.required(f"{path}.items", f"must have a schema if {LIST_TYPE} is map")
    elif inner is None:
        yield causes.invalid(f"{path}.items", {"Schema": None, "JSONSchemas": item_list(document) or None},
                             f"must only have a single schema if {LIST_TYPE} is map")
    elif type_of(inner) != "object":
        yield causes.invalid(f"{path}.items.type", type_of(inner),
                             f"must be object if parent array's {LIST_TYPE} is map")
    else:
        known = properties(inner)
        taken: set[str] = set()
        for key in keys:
            if key not in known:
                yield causes.invalid(f"{path}.{LIST_KEYS}", keys, "entries must all be names of item properties")
            elif type_of(known[key]) in {"array", "object"}:
                yield causes.invalid(f"{path}.items.properties[{key}].type", "object", _SCALAR)
            if key in taken:
                yield causes.invalid(f"{path}.{LIST_KEYS}", keys, "must not contain duplicate entries")
            taken.add(key)


def _item_faults(document: Object, path: str) -> Iterator[Cause]:
    """Items that are told apart are there, and so are their keys."""
    found, inner = document.get(LIST_TYPE), items(document)
    if inner is None or found not in {"set", "map"}:
        return
    if inner.get("nullable"):
        yield causes.forbidden(f"{path}.items.nullable", f"cannot be nullable when {LIST_TYPE} is {found}")
    known, needed, why = properties(inner), set(words(inner, "required")), f"this property is in {LIST_KEYS}, so it"
    for key in words(document, LIST_KEYS) if found == "map" else ():
        if key not in known:
            continue
        place = f"{path}.items.properties[{key}]"
        if key not in needed and known[key].get("default") is None:
            yield causes.required(f"{place}.default", f"{why} must have a default or be a required property")
        if known[key].get("nullable"):
            yield causes.forbidden(f"{place}.nullable", f"{why} cannot be nullable")


def _rule_faults(rule: Object, document: Object | None, path: str) -> Iterator[Cause]:
    """All but what the expressions say; paths are followed in a schema that can be structural."""
    written, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    if not written:
        yield causes.required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield causes.invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _LINES.search(message.strip()):
        yield causes.invalid(f"{path}.message", message, "must not contain line breaks")
    elif _LINES.search(written) and not message:
        yield causes.required(f"{path}.message", "message must be specified if rule contains line breaks")
    computed = str(rule.get("messageExpression") or "")
    if computed and not computed.strip():
        yield causes.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") is not None and rule["reason"] not in REASONS:
        yield causes.unsupported(f"{path}.reason", rule["reason"], REASONS)
    if below := str(rule.get("fieldPath") or ""):
        yield from _path_faults(below, document, f"{path}.fieldPath")


def _path_faults(below: str, document: Object | None, path: str) -> Iterator[Cause]:
    if not below.strip():
        yield causes.invalid(path, below, "must be non-empty if specified")
    if _LINES.search(below):
        yield causes.invalid(path, below, "must not contain line breaks")
    try:
        if document is not None:
            schema_paths.followed(below, document)
    except schema_paths.Astray:
        yield causes.invalid(path, below, "must be a valid path")
