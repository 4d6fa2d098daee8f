"""The schema of one version of a definition: all that is asked of it, in the order of Kubernetes. Pure.

What is asked later assumes what was asked before: defaults are held against a schema that is structural, rules are
compiled where nothing at or below them is wrong.
"""

from collections.abc import Iterator
from itertools import islice

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import (
    causes,
    rule_costs,
    schema_defaults,
    schema_keywords,
    schema_parts,
    schema_rules,
    schemas,
    structural,
)
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.schema_parts import RULES, is_set
from trainmaster.cluster.apiserver.schemas import MOST_FAULTS

# Beside a status of its own, the schema of an object is what its parts are, and little more.
_AT_ROOT = {
    "description": "Description", "type": "Type", "format": "Format", "title": "Title", "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum", "minimum": "Minimum", "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength", "minLength": "MinLength", "pattern": "Pattern", "maxItems": "MaxItems",
    "minItems": "MinItems", "uniqueItems": "UniqueItems", "multipleOf": "MultipleOf", "required": "Required",
    "items": "Items", "properties": "Properties", "externalDocs": "ExternalDocs", "example": "Example",
    schema_parts.PRESERVE: "XPreserveUnknownFields", RULES: "XValidations",
}
_BEFORE_TYPE = ("id", "$schema", "$ref")      # in the order of Go's fields


def faults(document: Object, path: str, *, status: bool, known: bool) -> Iterator[Cause]:
    """`status`: it is a subresource. A schema that is `known` was taken once, and is not asked again what it is."""
    found = [*_root_faults(document, path, status=status)]
    yield from found
    if not known:
        yield from islice(_schema_faults(document, path, alone=not found), MOST_FAULTS)


def _root_faults(document: Object, path: str, *, status: bool) -> Iterator[Cause]:
    if status:
        kind = schema_parts.type_of(document)
        more = [name for name, value in document.items() if name not in _AT_ROOT and _is_there(name, document)]
        if kind not in {"", "object"} and not any(name in _BEFORE_TYPE for name in more):
            yield causes.invalid(f"{path}.type", kind, 'only "object" is allowed as the type at the root of the schema '
                                                       "if the status subresource is enabled")
        elif more:
            yield causes.invalid(path, document, f"only [{' '.join(_AT_ROOT.values())}] fields are allowed at the root "
                                                 "of the schema if the status subresource is enabled")
    if document.get("nullable"):
        yield causes.forbidden(f"{path}.nullable", "nullable cannot be true at the root")


def _is_there(name: str, document: Object) -> bool:
    value = document[name]
    return is_set(value) or (value is False and name in {"additionalProperties", "additionalItems"}) or (
        value == "" and name in {"$ref", schema_parts.LIST_TYPE, schema_parts.MAP_TYPE})


def _schema_faults(document: Object, path: str, *, alone: bool) -> Iterator[Cause]:
    unusable = schema_parts.unusable(document)
    shape = [] if unusable else [*islice(_shape_faults(document, path), MOST_FAULTS)]
    said = [*islice(schema_keywords.faults(document, path), MOST_FAULTS)]
    yield from shape
    yield from said
    ruled = [] if unusable or shape else [*islice(_rule_faults(document, path, said), MOST_FAULTS)]
    yield from ruled
    if not alone or shape or said or ruled:
        return
    if unusable:
        yield causes.invalid(path, "", unusable)
        return
    try:
        schemas.validator(document)
    except ValueError as error:
        yield causes.invalid(path, "schema", " ".join(str(error).split())[:200])


def _shape_faults(document: Object, path: str) -> Iterator[Cause]:
    found = structural.faults(document, path)
    yield from found or schema_defaults.faults(document, path)


def _rule_faults(document: Object, path: str, said: list[Cause]) -> Iterator[Cause]:
    forms: dict[str, bytes] = {}
    for place, inner in _ruled(document, path):
        if not any(cause.field.startswith((f"{place}.", f"{place}[")) for cause in said):
            yield from schema_rules.malformed(inner, place, forms)
    if forms:
        yield from rule_costs.excessive(document, path, forms)
        yield from (cause for cause in schema_rules.uncorrelated(document, path) if cause.field in forms)


def _ruled(document: Object, path: str) -> Iterator[tuple[str, Object]]:
    """Schemas that have rules, by their places."""
    if document.get(RULES):
        yield path, document
    for name, inner in schema_parts.below(document):
        yield from _ruled(inner, f"{path}.{name}")
