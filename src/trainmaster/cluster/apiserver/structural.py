"""What the schema in a definition must look like: the rules of structural schemas.

They make pruning, defaults and merging possible: every field has one type, lists say what their items are and how they
are told apart. The words and the places of the findings are those of Kubernetes.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, schema_rules, schemas
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.schemas import INT_OR_STRING, LIST_KEYS, LIST_TYPE, PRESERVE

TYPES = ("array", "boolean", "integer", "number", "object", "string")
LIST_TYPES = ("atomic", "set", "map")
DEEPEST = 100
_COMBINED = ("allOf", "anyOf", "oneOf")


def faults(document: Json, path: str, depth: int = 0, *, forms: dict[str, bytes] | None = None) -> Iterator[Cause]:
    """What is wrong with a schema, and with those in it; `forms` gets the compiled rules by their places."""
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
    if document.get("uniqueItems"):
        yield causes.forbidden(f"{path}.uniqueItems",
                               "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
    if kind == "array" and document.get("items") is None:
        yield causes.required(f"{path}.items", "must be specified")
    yield from _list_faults(document, path)
    yield from schema_rules.malformed(document, path, forms)
    yield from _inner_faults(document, path, depth, forms)


def typeless(document: Json, path: str) -> Iterator[Cause]:
    """Fields without a type, which is allowed in combinations only."""
    if not isinstance(document, dict):
        return
    for key, inner in _objects(document.get("properties")):
        place = f"{path}.properties[{key}]"
        if not inner.get("type") and not inner.get(INT_OR_STRING) and not inner.get(PRESERVE):
            yield causes.required(f"{place}.type", "must not be empty for specified object fields")
        yield from typeless(inner, place)
    for name in ("items", "additionalProperties"):
        if isinstance(document.get(name), dict):
            yield from typeless(document[name], f"{path}.{name}")


def wrong_defaults(document: Json, path: str) -> Iterator[Cause]:
    """Defaults that their own schema would refuse. Raises ValueError for a schema that cannot be compiled."""
    if not isinstance(document, dict):
        return
    if document.get("default") is not None:
        for cause in schemas.causes_of(document, document["default"]):
            yield Cause(f"{path}.default{'.' if cause.field else ''}{cause.field}", cause.reason, cause.message)
    for key, inner in _objects(document.get("properties")):
        yield from wrong_defaults(inner, f"{path}.properties[{key}]")
    for name in ("items", "additionalProperties"):
        yield from wrong_defaults(document.get(name), f"{path}.{name}")


def _list_faults(document: Object, path: str) -> Iterator[Cause]:
    found, keys = document.get(LIST_TYPE), document.get(LIST_KEYS) or []
    if found is None:
        return
    if found not in LIST_TYPES:
        yield causes.unsupported(f"{path}.{LIST_TYPE}", found, LIST_TYPES)
    elif document.get("type") != "array":
        yield causes.invalid(f"{path}.type", document.get("type") or "",
                             f"must be array if {LIST_TYPE} is specified")
    elif found == "map" and not keys:
        yield causes.required(f"{path}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    elif found == "map" and isinstance(items := document.get("items"), dict):
        known = dict(_objects(items.get("properties")))
        for key in keys:
            if key not in known:
                yield causes.invalid(f"{path}.{LIST_KEYS}", keys, "entries must all be names of item properties")
            elif key not in (items.get("required") or ()) and known[key].get("default") is None:
                yield causes.required(
                    f"{path}.items.properties[{key}].default",
                    f"this property is in {LIST_KEYS}, so it must have a default or be a required property")


def _inner_faults(document: Object, path: str, depth: int, forms: dict[str, bytes] | None) -> Iterator[Cause]:
    for name in ("properties", "definitions"):
        inner = document.get(name) or {}
        if not isinstance(inner, dict):
            yield causes.invalid(f"{path}.{name}", causes.type_name(inner), "must be an object")
            continue
        for key, value in inner.items():
            yield from faults(value, f"{path}.{name}[{key}]", depth + 1, forms=forms)
    for name in ("items", "not"):
        if document.get(name) is not None:
            yield from faults(document[name], f"{path}.{name}", depth + 1, forms=forms)
    if isinstance(document.get("additionalProperties"), dict):
        yield from faults(document["additionalProperties"], f"{path}.additionalProperties", depth + 1, forms=forms)
    for name in _COMBINED:
        inner = document.get(name) or []
        if not isinstance(inner, list):
            yield causes.invalid(f"{path}.{name}", causes.type_name(inner), "must be an array")
            continue
        for index, value in enumerate(inner):
            yield from faults(value, f"{path}.{name}[{index}]", depth + 1, forms=forms)


def _objects(found: Json) -> Iterator[tuple[str, Object]]:
    if isinstance(found, dict):
        for key, inner in found.items():
            if isinstance(inner, dict):
                yield key, inner
