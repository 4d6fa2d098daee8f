"""Defaults in the schema of a definition: each must be a value that the schema takes. Pure."""

import copy
from collections.abc import Iterator, Sequence

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, embedded, schema_parts, schemas
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.schema_keywords import TYPES
from trainmaster.cluster.apiserver.schema_parts import EMBEDDED, META, PRESERVE, items, others, properties

_TYPE: Object = {"apiVersion": "validation/v1", "kind": "Validation"}


def faults(document: Object, path: str) -> Iterator[Cause]:
    """Of a schema of whole objects that is structural."""
    yield from _faults({**document, EMBEDDED: True}, path, None)


def _faults(document: Object, path: str, within: Sequence[str] | None) -> Iterator[Cause]:
    """`within`: the steps from the object whose type or metadata this is a part of."""
    if document.get(EMBEDDED):
        within = None
    value = document.get("default")
    if value is not None:
        yield from _default_faults(document, value, f"{path}.default", within)
    if (inner := items(document)) is not None:
        yield from _faults(inner, f"{path}.items", None if within is None else [*within, ""])
    for name, inner in properties(document).items():
        first: list[str] | None = [] if document.get(EMBEDDED) and name in META else None
        steps = first if within is None else within
        yield from _faults(inner, f"{path}.properties[{name}]", None if steps is None else [*steps, name])


def _default_faults(document: Object, value: Json, path: str, within: Sequence[str] | None) -> Iterator[Cause]:
    if within is None and not _is_pruned(value, document):
        yield causes.invalid(path, value, "must not have unknown fields")
    yield from [*(_whole_faults(copy.deepcopy(value), document, path) if within is None else
                  _meta_faults(value, path, within))] or _unfit(document, value, path)


def _unfit(document: Object, value: Json, path: str) -> list[Cause]:
    """What the schema itself does not take; nothing of one that cannot be compiled, which is said of it as a whole."""
    if found := [*_of_no_type(document, value, path)]:
        return found
    try:
        return [*schemas.broken_by(document, value, path)]
    except ValueError:
        return []


def _of_no_type(document: Object | None, value: Json, path: str, below: str = "") -> Iterator[Cause]:
    """Values of types that there are not, which is said of the types besides."""
    if document is None:
        return
    kind = schema_parts.type_of(document)
    if kind and kind not in TYPES:
        found = causes.mistyped(below, value, kind)
        yield Cause(f"{path}{'.' * bool(below)}{below}", found.reason, found.message)
    elif isinstance(value, dict):
        known = properties(document)
        for name, each in value.items():
            yield from _of_no_type(known.get(name, others(document)), each, path, f"{below}.{name}".lstrip("."))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _of_no_type(items(document), each, path, f"{below}[{at}]")


def _meta_faults(value: Json, path: str, within: Sequence[str]) -> Iterator[Cause]:
    """Of a part of metadata: with it, there must be metadata."""
    whole: Json = copy.deepcopy(value)
    for step in reversed(within):
        whole = {step: whole} if step else [whole]
    whole = {**_TYPE, **whole}
    wrong = embedded.settled(whole, "", [])
    told = [wrong] if wrong else [str(each) for each in embedded.faults(whole, "")]
    if told:
        listed = [each.lstrip(".") for each in told]
        said = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
        yield causes.invalid(path, value, f"must result in valid metadata: {said}")


def _is_pruned(value: Json, document: Object | None) -> bool:
    """Whether nothing would be dropped from a value."""
    if document is None:
        return not value if isinstance(value, dict) else \
            all(_is_pruned(each, None) for each in value) if isinstance(value, list) else True
    preserve = bool(document.get(PRESERVE))
    if isinstance(value, list):
        inner = items(document)
        if preserve:
            inner = {PRESERVE: True} if inner is None else {**inner, PRESERVE: True}
        return all(_is_pruned(each, inner) for each in value)
    if not isinstance(value, dict):
        return True
    known, extra = properties(document), document.get("additionalProperties") is not None
    for name, each in value.items():
        if document.get(EMBEDDED) and name in META:
            continue
        if name in known:
            kept = _is_pruned(each, known[name])
        elif extra:
            kept = _is_pruned(each, others(document))
        else:
            kept = preserve
        if not kept:
            return False
    return True


def _whole_faults(value: Json, document: Object | None, path: str) -> Iterator[Cause]:
    """The types and the metadata of objects in a value."""
    if document is None:
        return
    if isinstance(value, dict):
        if document.get(EMBEDDED):
            if wrong := embedded.settled(value, path, []):
                place, _, message = wrong.partition(": ")
                yield Cause(place, "FieldValueInvalid", message)
                return
            yield from embedded.faults(value, path)
        known = properties(document)
        for name, each in value.items():
            yield from _whole_faults(each, known.get(name, others(document)), f"{path}.{name}")
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _whole_faults(each, items(document), f"{path}[{at}]")
