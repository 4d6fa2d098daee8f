"""What makes the schema in a definition a structural one. Pure.

Every field has one type, lists say what their items are, and combinations (`allOf`, `anyOf`, `oneOf`, `not`) only say
more about fields that are there without them: that makes pruning, defaults and merging possible. What else keywords
may say is in `schema_keywords`. The words, the places and the order of the findings are those of Kubernetes.
"""

import re
from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, expression_literals, expressions
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.schema_parts import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    RULES,
    is_set,
    items,
    listed,
    nested,
    others,
    properties,
    type_of,
)

_PLAIN = re.compile(r"(?:[A-Za-z0-9_ ^$()|?*+.\[\]-]|\\[.+*?/-]){1,512}", re.ASCII)
_BEYOND = re.compile(r"\(\?|[*+?]\+|\[\[|--")      # groups of special meaning, greed, classes by name
_NAMED = ("name", "generateName")
_EITHER: list[Object] = [{"type": "integer"}, {"type": "string"}]
# By what a schema is of.
_TYPELESS = {"root": "must not be empty at the root", "item": "must not be empty for specified array items",
             "field": "must not be empty for specified object fields"}
# What may not be in a combination, and how it would have to be.
_ONLY_OUTSIDE = {
    "type": "empty", "default": "undefined", "title": "empty", "description": "empty", "nullable": "false",
    PRESERVE: "false", EMBEDDED: "false", INT_OR_STRING: "false", LIST_KEYS: "empty", LIST_TYPE: "undefined",
    MAP_TYPE: "undefined", RULES: "empty", "additionalProperties": "undefined",
}


def faults(document: Object, path: str) -> list[Cause]:
    """What keeps a schema from being structural, in the order of the texts."""
    return sorted([*_faults(document, path, "root"), *_incomplete(document, document, path, path)], key=str)


def _faults(document: Object, path: str, level: str) -> Iterator[Cause]:
    if type_of(document) == "array" and items(document) is None:
        yield causes.required(f"{path}.items", "must be specified")
    if (inner := items(document)) is not None:
        yield from _faults(inner, f"{path}.items", "item")
    for name, inner in properties(document).items():
        yield from _faults(inner, f"{path}.properties[{name}]", "field")
    if document.get("additionalProperties") is not None:
        if level == "root":
            yield causes.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if (inner := others(document)) is not None:
            yield from _faults(inner, f"{path}.additionalProperties", "field")
    for name in (PRESERVE, EMBEDDED):
        if document.get(INT_OR_STRING) and document.get(name):
            yield causes.invalid(f"{path}.{name}", True, f"must be false if {INT_OR_STRING} is true")
    yield from _combined(document, path, free=_is_either(document), first_free=_is_first_either(document))
    yield from _type_faults(document, path, level)
    yield from _whole_faults(document, path, level)


def _type_faults(document: Object, path: str, level: str) -> Iterator[Cause]:
    kind = type_of(document)
    if document.get(EMBEDDED) and kind != "object":
        told = f"must be object if {EMBEDDED} is true"
        yield causes.invalid(f"{path}.type", kind, told) if kind else causes.required(f"{path}.type", told)
    elif not kind and not document.get(INT_OR_STRING) and not document.get(PRESERVE):
        yield causes.required(f"{path}.type", _TYPELESS[level])
    if level == "root" and kind and kind != "object":
        yield causes.invalid(f"{path}.type", kind, "must be object at the root")


def _whole_faults(document: Object, path: str, level: str) -> Iterator[Cause]:
    """Of the schema of an object with a type and metadata, whose schemas Kubernetes knows."""
    embedded, known = bool(document.get(EMBEDDED)), properties(document)
    whole = embedded or level == "root"
    if embedded and document.get("additionalProperties") is not None:
        yield causes.forbidden(f"{path}.additionalProperties", f"must not be used if {EMBEDDED} is set")
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if whole and name in known and type_of(known[name]) != wanted:
            yield causes.invalid(f"{path}.properties[{name}].type", type_of(known[name]), f"must be {wanted}")
    if level == "root" and "metadata" in known and _says_more(known["metadata"]):
        yield causes.forbidden(f"{path}.properties[metadata]", "must not specify anything other than name and "
                                                               "generateName, but metadata is implicitly specified")
    if embedded and not document.get(PRESERVE) and not known:
        yield causes.required(f"{path}.properties", f"must not be empty if {EMBEDDED} is true without {PRESERVE}")


def _says_more(document: Object) -> bool:
    """Than which names metadata may have."""
    known = properties(document)
    return bool(known and not set(known) <= set(_NAMED)) or any(
        _counts(name, value) for name, value in document.items() if name not in {"type", "default", "properties"}
    ) or document.get("additionalProperties") is False


def _counts(name: str, value: Json) -> bool:
    """Whether a keyword is more than empty. Lists that are there count, but for those of values and of schemas."""
    return is_set(value) and not (name in {"enum", "allOf", "anyOf", "oneOf"} and value == [])


def _is_either(document: Object) -> bool:
    """The one combination that may have types: a number or text."""
    return [{name: value for name, value in each.items() if _counts(name, value)}
            for each in listed(document, "anyOf")] == _EITHER


def _is_first_either(document: Object) -> bool:
    every = listed(document, "allOf")
    return bool(every) and _is_either(every[0])


def _combined(document: Object, path: str, *, free: bool = False, first_free: bool = False) -> Iterator[Cause]:
    """Combinations, but for `anyOf` if that is free, or the one in the first of `allOf`; and the pattern."""
    for name, inner in nested(document):
        if not (free and name.startswith("anyOf[")):
            yield from _inside(inner, f"{path}.{name}", free=first_free and name == "allOf[0]")
    if pattern := str(document.get("pattern") or ""):
        yield from _pattern_faults(pattern, f"{path}.pattern")


def _inside(document: Object, path: str, *, free: bool = False) -> Iterator[Cause]:
    yield from _combined(document, path, free=free)
    if (inner := items(document)) is not None:
        yield from _inside(inner, f"{path}.items")
    for name, inner in properties(document).items():
        yield from _inside(inner, f"{path}.properties[{name}]")
    for name, how in _ONLY_OUTSIDE.items():
        value = document.get(name)
        if (is_set(value) and value != []) or (value == "" and name in {LIST_TYPE, MAP_TYPE}) or (
                value == [] and name == "default"):
            yield causes.forbidden(f"{path}.{name}", f"must be {how} to be structural")
    if "metadata" in properties(document):
        yield causes.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _incomplete(said: Object, document: Object, path: str, where: str) -> Iterator[Cause]:
    """Fields and items that are in a combination only."""
    for name, inner in nested(said):
        yield from _missing(inner, document, path, f"{where}.{name}")


def _missing(said: Object, document: Object, path: str, where: str) -> Iterator[Cause]:
    yield from _incomplete(said, document, path, where)
    wanted = [*((f"properties[{name}]", inner, properties(document).get(name))
                for name, inner in properties(said).items())]
    if (inner := items(said)) is not None:
        wanted.append(("items", inner, items(document)))
    for name, inner, found in wanted:
        if found is None:
            yield causes.required(f"{path}.{name}", f"because it is defined in {where}.{name}")
        else:
            yield from _missing(inner, found, f"{path}.{name}", f"{where}.{name}")


def _pattern_faults(pattern: str, path: str) -> Iterator[Cause]:
    if _is_plain(pattern):
        return
    try:
        why = expressions.unread("matches", pattern)
    except ImportError:      # whoever compiles the whole schema will say it
        return
    if why:
        yield causes.invalid(path, pattern, "must be a valid regular expression, but isn't: error parsing regexp: "
                                            f"{expression_literals.go_pattern(why)}")


def _is_plain(pattern: str) -> bool:
    """Whether every engine reads it. The patterns of our own definitions do: the engine of rules, 11 MB, is not loaded
    for them."""
    if not _PLAIN.fullmatch(pattern) or _BEYOND.search(pattern):
        return False
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
