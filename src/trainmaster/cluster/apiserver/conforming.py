"""Whether a configuration that is applied fits its type: nothing unknown, nothing of a wrong kind, no item twice. Pure.

An ordinary write drops what its type does not have; apply refuses it, because who owns a field that is not there? The
words are those of Kubernetes, down to the Go in them: clients show them as they come.
"""

from collections.abc import Callable, Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin, fieldsets, go_values
from trainmaster.cluster.apiserver.builtin import Field, Many
from trainmaster.cluster.apiserver.mergeable import Fields, Items, Shape, Unmergeable
from trainmaster.cluster.apiserver.schema_parts import EMBEDDED, PRESERVE

MOST_FAULTS = 100
UNDECLARED = "field not declared in schema"
_SCALARS = {"string": "string", "bytes": "string", "bool": "boolean", "int32": "numeric", "int64": "numeric",
            "double": "numeric"}
_FREE = frozenset({"raw", "json", "fields", "schema-or-list", "schema-or-bool", "schema-or-names"})
_TYPES = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}


def faults_of_type(value: Json, name: str, shape: Shape) -> list[str]:
    """What is wrong with an object of a built-in type."""
    return [str(fault) for fault, _ in zip(_object(value, name, shape, ""), range(MOST_FAULTS), strict=False)]


def faults_of_schema(value: Object, document: Object, shape: Fields) -> list[str]:
    """What is wrong with a custom object."""
    top = {key: inner for key, inner in value.items() if key not in {"apiVersion", "kind", "metadata"}}
    meta = _object(value.get("metadata"), builtin.METADATA, shape.inner("metadata"), ".metadata")
    found = [*meta, *_by_schema(top, document, shape, "", free=False)]
    return [str(fault) for fault in found[:MOST_FAULTS]]


def text(faults: list[str]) -> str:
    """Several faults as one text."""
    return faults[0] if len(faults) == 1 else "\n  ".join(["errors:", *faults])


def _object(value: Json, name: str, shape: Shape, path: str) -> Iterator[Unmergeable]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield Unmergeable(f"expected map, got {_pointed(value)}", path)
        return
    known = builtin.type_named(name).fields
    for key, item in value.items():
        field = known.get(key)
        if field is None:
            yield Unmergeable(UNDECLARED, f"{path}.{key}")
            return
        inner = shape.inner(key) if isinstance(shape, Fields) else shape
        yield from _field(item, field, inner, f"{path}.{key}")


def _field(value: Json, field: Field, shape: Shape, path: str) -> Iterator[Unmergeable]:
    if value is None:
        return
    if field.many is Many.LIST:
        yield from _list(value, shape, path, lambda item, inner, at: _one(item, field, inner, at))
    elif field.many is Many.MAP:
        if not isinstance(value, dict):
            yield Unmergeable(f"expected map, got {_pointed(value)}", path)
            return
        for key, item in value.items():
            inner = shape.inner(key) if isinstance(shape, Fields) else shape
            yield from _one(item, field, inner, f"{path}.{key}")
    else:
        yield from _one(value, field, shape, path)


def _one(value: Json, field: Field, shape: Shape, path: str) -> Iterator[Unmergeable]:
    if field.type_name:
        yield from _object(value, field.type_name, shape, path)
    elif field.word not in _FREE and value is not None:
        yield from _scalar(value, _SCALARS.get(field.word, ""), path)


def _scalar(value: Json, wanted: str, path: str) -> Iterator[Unmergeable]:
    if isinstance(value, dict | list) and not wanted:
        yield Unmergeable(f"expected any scalar, got {_pointed(value)}", path)
    elif wanted == "string" and not isinstance(value, str):
        yield Unmergeable(f"expected string, got &value.valueUnstructured{{Value:{go_values.syntax(value)}}}", path)
    elif wanted == "boolean" and not isinstance(value, bool):
        yield Unmergeable(f"expected boolean, got {_pointed(value)}", path)
    elif wanted == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield Unmergeable(f"expected numeric (int or float), got {go_values.type_name(value)}", path)


def _list(
    value: Json, shape: Shape, path: str, each: Callable[[Json, Shape, str], Iterator[Unmergeable]]
) -> Iterator[Unmergeable]:
    if not isinstance(value, list):
        yield Unmergeable(f"expected list, got {_pointed(value)}", path)
        return
    inner = shape.item if isinstance(shape, Items) else shape
    for step, item in _items(value, shape):
        if isinstance(step, Unmergeable):
            yield step.below(path)
        else:
            yield from each(item, inner, path + step)


def _items(values: list[Json], shape: Shape) -> Iterator[tuple[str | Unmergeable, Json]]:
    """The items of a list with their steps as they are printed; one without a step ends it."""
    seen: set[str] = set()
    for at, item in enumerate(values):
        if not isinstance(shape, Items):
            yield f"[{at}]", item
            continue
        try:
            step = shape.step(item)
        except Unmergeable as error:
            yield Unmergeable(f"element {at}: {error.message}"), item
            return
        shown = fieldsets.shown(step)
        if step in seen:
            yield Unmergeable(f"duplicate entries for key {shown}"), item
        seen.add(step)
        yield shown, item


def _by_schema(value: Json, document: Json, shape: Shape, path: str, *, free: bool) -> Iterator[Unmergeable]:
    if value is None or not isinstance(document, dict):
        return
    free = free or bool(document.get(PRESERVE))
    match document.get("type"):
        case "array":
            yield from _list(value, shape, path, lambda item, inner, at: _by_schema(
                item, document.get("items"), inner, at, free=free))
        case "object":
            yield from _object_by_schema(value, document, shape, path, free=free)
        case "string":
            yield from _scalar(value, "string" if document.get("format") in {None, "", "byte"} else "", path)
        case "integer" | "number" | "boolean" as type_:
            yield from _scalar(value, _TYPES[type_], path)


def _object_by_schema(value: Json, document: Object, shape: Shape, path: str, *, free: bool) -> Iterator[Unmergeable]:
    if not isinstance(value, dict):
        yield Unmergeable(f"expected map, got {_pointed(value)}", path)
        return
    properties, more = document.get("properties") or {}, document.get("additionalProperties")
    others = more is True or (more is None and (free or not properties))
    for key, item in value.items():
        inner = shape.inner(key) if isinstance(shape, Fields) else shape
        if key in properties or isinstance(more, dict):
            yield from _by_schema(item, properties.get(key, more), inner, f"{path}.{key}", free=free)
        elif document.get(EMBEDDED) and key == "metadata":
            yield from _object(item, builtin.METADATA, inner, f"{path}.{key}")
        elif not others and not (document.get(EMBEDDED) and key in {"apiVersion", "kind"}):
            yield Unmergeable(UNDECLARED, f"{path}.{key}")
            return


def _pointed(value: Json) -> str:
    """As Go prints a pointer to it."""
    return "&{" + go_values.plain(value) + "}"
