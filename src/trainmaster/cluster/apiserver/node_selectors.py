"""Node selectors: the terms of a PersistentVolume, and of a pod's affinity, that say which nodes will do.

A term asks for labels of the node, with operators, or for its name. The label selectors of other kinds are `labels`.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, names
from trainmaster.cluster.apiserver.causes import Cause

_NOT_AN_OPERATOR = "not a valid selector operator"
_NAME = "metadata.name"      # the one field that can be asked for


def rules(selector: Object, path: str) -> Iterator[Cause]:
    """The faults of a whole NodeSelector."""
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        yield causes.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from term_rules(term, f"{path}.nodeSelectorTerms[{index}]")


def term_rules(term: Object, path: str, *, values: bool = True) -> Iterator[Cause]:
    """The faults of one term; without `values`, those of label values are let pass, as in preferences of pods."""
    for index, wanted in enumerate(term.get("matchExpressions") or ()):
        yield from _label_rules(wanted, f"{path}.matchExpressions[{index}]", values=values)
    for index, wanted in enumerate(term.get("matchFields") or ()):
        yield from _field_rules(wanted, f"{path}.matchFields[{index}]")


def _label_rules(wanted: Object, path: str, *, values: bool) -> Iterator[Cause]:
    operator, found, key = wanted.get("operator") or "", wanted.get("values") or [], wanted.get("key") or ""
    if operator in {"In", "NotIn"}:
        if not found:
            yield causes.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"}:
        if found:
            yield causes.forbidden(f"{path}.values",
                                   "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in {"Gt", "Lt"}:
        if len(found) != 1:
            yield causes.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield causes.invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR)
    yield from names.refused(f"{path}.key", key, names.qualified(key))
    for index, value in enumerate(found if values else ()):
        yield from names.refused(f"{path}.values[{index}]", value, names.label_value(value))


def _field_rules(wanted: Object, path: str) -> Iterator[Cause]:
    operator, found, key = wanted.get("operator") or "", wanted.get("values") or [], wanted.get("key") or ""
    if operator not in {"In", "NotIn"}:
        yield causes.invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR)
    elif len(found) != 1:
        yield causes.required(f"{path}.values",
                              "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
    if key != _NAME:
        yield causes.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(found):
        yield from names.refused(f"{path}.values[{index}]", value, names.subdomain(value))
