"""The schema of a custom resource as OpenAPI publishes it: completed by what every object has, and fit for its version.

Version 3 says all that a definition says. Version 2 has no words for combinations, nullable values and fields of any
kind, and kubectl up to 1.28 refuses by it what the server would take; so there a place that its words do not fit is
left open, as a real server leaves it.
"""

from collections.abc import Callable

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin
from trainmaster.cluster.apiserver.schema_parts import EMBEDDED, PRESERVE

API_VERSION = "APIVersion defines the version of the schema by which this object is read."
KIND = "Kind says what this object is, in CamelCase."
METADATA = "Standard object's metadata: its name, its labels and what else every object has."

_UNSAYABLE = frozenset({"default", "allOf", "anyOf", "oneOf", "not", "nullable"})
_SHAPE = frozenset({"type", "items", "properties", "additionalProperties"})


def published(document: Object, place: str) -> Object:
    """For version 3. References point to `place`."""
    reference: Object = {"allOf": [{"$ref": f"{place}{builtin.NAME_PREFIX}{builtin.METADATA}"}]}
    return _completed(_embedded(document, reference), reference, required=False)


def published_2(document: Object, place: str) -> Object:
    """For version 2."""
    if document.get(PRESERVE):
        return {"type": "object"}
    reference: Object = {"$ref": f"{place}{builtin.NAME_PREFIX}{builtin.METADATA}"}
    return _completed(_sayable(_embedded(document, reference)), reference, required=False)


def _completed(schema: Object, reference: Object, *, required: bool) -> Object:
    own = {"apiVersion": {"type": "string", "description": API_VERSION},
           "kind": {"type": "string", "description": KIND}, "metadata": {**reference, "description": METADATA}}
    found = {**schema, "type": "object", "properties": {**(schema.get("properties") or {}), **own}}
    return {**found, "required": sorted({*(schema.get("required") or ()), "kind", "apiVersion"})} if required else found


def _embedded(schema: Object, reference: Object) -> Object:
    """The schema with the fields of embedded objects that go without saying."""
    found = {key: _mapped(key, value, lambda inner: _embedded(inner, reference)) for key, value in schema.items()}
    return _completed(found, reference, required=True) if schema.get(EMBEDDED) else found


def _sayable(schema: Object) -> Object:
    left = _UNSAYABLE | (_SHAPE if schema.get("nullable") or schema.get(PRESERVE) else frozenset())
    if schema.get(PRESERVE):
        left |= {"required"}
    return {key: _mapped(key, value, _sayable) for key, value in schema.items() if key not in left}


def _mapped(key: str, value: Json, change: Callable[[Object], Object]) -> Json:
    if key == "properties":
        return {name: change(inner) for name, inner in value.items()}
    if key in {"items", "additionalProperties", "not"} and isinstance(value, dict):
        return change(value)
    return value
