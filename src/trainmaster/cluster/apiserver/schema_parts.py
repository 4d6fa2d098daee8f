"""The parts of a schema in a definition, as Go reads them: what is null or empty is as good as absent. Pure."""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object

COMBINED = ("allOf", "anyOf", "oneOf")
PRESERVE, INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
EMBEDDED, MAP_TYPE = "x-kubernetes-embedded-resource", "x-kubernetes-map-type"
LIST_TYPE, LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
RULES = "x-kubernetes-validations"
META = ("apiVersion", "kind", "metadata")

# Keywords that no schema of a definition has, and what they are called.
_UNSUPPORTED = {"id": "id", "$schema": "schema", "$ref": "$ref", "patternProperties": "patternProperties",
                "dependencies": "dependencies", "additionalItems": "additionalItems", "definitions": "definitions"}


def is_set(value: Json) -> bool:
    """Whether a value is anything but what Go fields have to begin with."""
    return value is not None and value is not False and value != ""


def type_of(document: Object) -> str:
    return str(document.get("type") or "")


def properties(document: Object) -> dict[str, Object]:
    return _schemas(document.get("properties"))


def definitions(document: Object) -> dict[str, Object]:
    return _schemas(document.get("definitions"))


def dependencies(document: Object) -> dict[str, Object]:
    """Those that are schemas."""
    found = document.get("dependencies")
    return {name: inner for name, inner in found.items() if isinstance(inner, dict)} if isinstance(found, dict) else {}


def items(document: Object) -> Object | None:
    """The one schema of all items; a list of schemas is `item_list`."""
    return _one(document.get("items"))


def item_list(document: Object) -> list[Object]:
    return listed(document, "items")


def others(document: Object) -> Object | None:
    """The schema of additional properties, if it is more than true or false."""
    return _one(document.get("additionalProperties"))


def negated(document: Object) -> Object | None:
    return _one(document.get("not"))


def listed(document: Object, name: str) -> list[Object]:
    """Schemas, or rules."""
    found = document.get(name)
    return [each if isinstance(each, dict) else {} for each in found] if isinstance(found, list) else []


def words(document: Object, name: str) -> list[str]:
    return [str(each or "") for each in document.get(name) or ()]


def nested(document: Object) -> Iterator[tuple[str, Object]]:
    """Schemas that only say more about the same value, by their places."""
    for name in COMBINED:
        for at, inner in enumerate(listed(document, name)):
            yield f"{name}[{at}]", inner
    if (found := negated(document)) is not None:
        yield "not", found


def below(document: Object) -> Iterator[tuple[str, Object]]:
    """Schemas of values inside the value, by their places."""
    for name, inner in properties(document).items():
        yield f"properties[{name}]", inner
    for name in ("items", "additionalProperties"):
        if (found := _one(document.get(name))) is not None:
            yield name, found


def unusable(document: Object) -> str:
    """Why a schema cannot be structural whatever its fields are, or ""."""
    for name, told in _UNSUPPORTED.items():
        value = document.get(name)
        if value if name != "additionalItems" else value is not None:
            return f"OpenAPIV3Schema '{told}' is not supported"
    if document.get(PRESERVE) is False:
        return f"internal error: '{PRESERVE}' must be true or undefined"
    if item_list(document):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return next(filter(None, (unusable(inner) for _, inner in (*nested(document), *below(document)))), "")


def _one(value: Json) -> Object | None:
    return value if isinstance(value, dict) else None


def _schemas(found: Json) -> dict[str, Object]:
    if not isinstance(found, dict):
        return {}
    return {name: inner if isinstance(inner, dict) else {} for name, inner in found.items()}
