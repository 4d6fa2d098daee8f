"""Rules of a definition that may cost too much, by what their schema lets values grow to. Pure.

Kubernetes refuses them when they are written: one rule beyond a budget, or all rules of a schema together. Where a
schema sets no limit, as much is assumed as fits into a request.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, expression_costs, expression_prices, expression_tree, rule_values
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.expression_costs import Path

ONE_RULE, ALL_RULES = 10_000_000, 100_000_000
REQUEST = 3 * 1024 * 1024       # bytes
MOST_NAMED = 4
_ADVICE = ("(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and "
           "strings are declared)")
_TEXT: Object = {"type": "string"}
_ROOT: Object = {"apiVersion": _TEXT, "kind": _TEXT,
                 "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}}
_SMALLEST = {"boolean": 4, "integer": 1, "number": 1, "array": 2, "string": 2}
_SMALLEST_TEXT = {"duration": 3, "date": 12, "date-time": 21}
_LONGEST_TEXT = {"duration": 32, "date": 12, "date-time": 32}


def excessive(document: Object, path: str, forms: Mapping[str, bytes]) -> Iterator[Cause]:
    """Of the rules whose compiled forms are given, by their places."""
    costs: dict[str, int] = {}
    for place, schema, times, root in _schemas(document, path, 1, root=True):
        for at, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
            for name, often in (("rule", _cardinality(schema, times)), ("messageExpression", 1)):
                where = f"{place}.x-kubernetes-validations[{at}].{name}"
                if rule.get(name) and where in forms and (cost := _cost(forms[where], schema, root=root)) is not None:
                    costs[where] = min(cost * often, expression_prices.MOST)
                    if costs[where] > ONE_RULE:
                        yield causes.forbidden(where, _told(f"estimated {name} cost", costs[where], ONE_RULE))
    total = min(sum(costs.values()), expression_prices.MOST)
    if total > ALL_RULES:
        named = sorted((each for each in costs if costs[each] >= ALL_RULES / 100), key=lambda each: -costs[each])
        for where in named[:MOST_NAMED]:
            yield causes.forbidden(where, "contributed to estimated rule cost total exceeding cost limit for entire "
                                          "OpenAPIv3 schema")
        yield causes.forbidden(path, _told("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 "
                                           "schema", total, ALL_RULES))


def _schemas(document: Json, path: str, times: int | None, *, root: bool = False
             ) -> Iterator[tuple[str, Object, int | None, bool]]:
    """Each with its place, how often it can be in an object (None: as often as fits), and if it is a whole object."""
    if not isinstance(document, dict):
        return
    yield path, document, times, root or bool(document.get("x-kubernetes-embedded-resource"))
    for name, inner in (document.get("properties") or {}).items():
        yield from _schemas(inner, f"{path}.properties[{name}]", times)
    for name, most in (("items", "maxItems"), ("additionalProperties", "maxProperties")):
        given = document.get(most)
        yield from _schemas(document.get(name), f"{path}.{name}",
                            None if times is None or given is None else times * max(0, given))


def _cardinality(document: Object, times: int | None) -> int:
    return REQUEST // (_least(document) + 1) if times is None else times


def _cost(form: bytes, document: Object, *, root: bool) -> int | None:
    """None for what cannot be read; such a rule is still bounded when it runs."""
    try:
        tree = expression_tree.read(form)
    except expression_tree.TooDeep:
        return None

    def bounds(path: Path) -> int | None:
        return _bound(document, path, root=root)
    return expression_costs.estimated(tree, bounds)


def _told(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    by = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{what} exceeds budget by factor of {by} {_ADVICE}"


def _bound(document: Any, path: Path, *, root: bool = False) -> int | None:
    """How many signs, items or entries there can be at a place in a value; None if there is no such place."""
    if not isinstance(document, dict) or not _is_known(document):
        return None
    if not path:
        return _most(document)
    whole = root or bool(document.get("x-kubernetes-embedded-resource"))
    first, rest = path[0], path[1:]
    inner = document.get("additionalProperties")
    if isinstance(inner, dict) and document.get("type") == "object":
        return _bound(inner, rest) if first in {"@items", "@values"} else 0 if first == "@keys" and not rest else None
    if document.get("type") == "array":
        return _bound(document.get("items"), rest) if first in {"@items", "@values"} else None
    fields = {**(document.get("properties") or {}), **(_ROOT if whole else {})}
    return next((_bound(inner, rest) for name, inner in fields.items() if rule_values.escaped(name) == first), None)


def _is_known(document: Object) -> bool:
    """Whether there are values of it in the language at all."""
    match document.get("type"):
        case _ if document.get("x-kubernetes-int-or-string"):
            return True
        case "array":
            return isinstance(document.get("items"), dict) and _is_known(document["items"])
        case "object":
            inner = document.get("additionalProperties")
            return not isinstance(inner, dict) or _is_known(inner)
        case kind:
            return kind in _SMALLEST


def _most(document: Object) -> int:
    kind, longest = document.get("type"), document.get("maxLength")
    if document.get("x-kubernetes-int-or-string"):
        return REQUEST - 2 if longest is None else max(0, longest) * 4
    if kind == "array":
        given = document.get("maxItems")
        return (REQUEST - 2) // (_least(document["items"]) + 1) if given is None else max(0, given)
    if kind == "object" and isinstance(inner := document.get("additionalProperties"), dict):
        given = document.get("maxProperties")
        return (REQUEST - 2) // (_least(inner) + 6) if given is None else max(0, given)
    return _longest(document) if kind == "string" else 0


def _longest(document: Object) -> int:
    form, most = document.get("format"), document.get("maxLength")
    if form in _LONGEST_TEXT:
        return _LONGEST_TEXT[str(form)]
    if most is not None:
        return max(0, int(most)) * (1 if form == "byte" else 4)       # signs are counted, and can take four bytes
    words = [len(each.encode()) for each in document.get("enum") or () if isinstance(each, str)]
    return max(words) if words and form != "byte" else REQUEST - 2


def _least(document: Any) -> int:
    """Bytes of the smallest value, as it is sent."""
    if not isinstance(document, dict):
        return 0
    kind = str(document.get("type"))
    if document.get("x-kubernetes-int-or-string"):
        return 1
    if kind == "string":
        return _SMALLEST_TEXT.get(str(document.get("format")), 2)
    if kind != "object" or isinstance(document.get("additionalProperties"), dict):
        return _SMALLEST.get(kind, 2)
    needed = document.get("required") or ()
    return 2 + sum(len(name.encode()) + _least(inner) + 4 for name, inner in (document.get("properties") or {}).items()
                   if name in needed and isinstance(inner, dict) and inner.get("default") is None and _is_known(inner))
