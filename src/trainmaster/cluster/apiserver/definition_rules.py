"""What a custom resource definition must say: its names, its versions, who converts between them. Pure.

Kubernetes reads a definition into an older form, in which what all versions have alike is said once for all of them,
and it names the places that things have there: `spec.validation` is the schema of every version.
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import (
    causes,
    checks,
    definition_schemas,
    names,
    schema_parts,
    version_rules,
    webhooks,
)
from trainmaster.cluster.apiserver.causes import Cause

SCOPES = ("Cluster", "Namespaced")
APPROVED = "api-approved.kubernetes.io"
_STRATEGIES = ("None", "Webhook")
_PROTECTED = ("k8s.io", "kubernetes.io")
_ENHANCEMENTS = "see https://github.com/kubernetes/enhancements/pull/1111"
_MIXED = "may have mixed case, but should otherwise match: "
# Parts of versions, and where they are if all versions have the same.
_SHARED = {"subresources": "subresources", "schema": "validation",
           "additionalPrinterColumns": "additionalPrinterColumns", "selectableFields": "selectableFields"}
# A version as Go prints it.
_GO_VERSION = ("name", "served", "storage", "deprecated", "deprecationWarning", "schema", "subresources",
               "additionalPrinterColumns", "selectableFields")
_GO_EMPTY: Object = {"name": "", "served": False, "storage": False, "deprecated": False}


def rules(definition: Object, old: Object | None) -> Iterator[Cause]:
    spec, before = definition["spec"], (old or {}).get("spec") or {}
    plural, group = spec["names"].get("plural") or "", spec.get("group") or ""
    if old is None and definition["metadata"].get("name") != f"{plural}.{group}":
        yield causes.invalid("metadata.name", definition["metadata"].get("name"),
                             'must be spec.names.plural+"."+spec.group')
    yield from _group_faults(group)
    yield from _word_faults(spec.get("scope") or "", "spec.scope", SCOPES)
    yield from _version_faults(spec, [each.get("schema") for each in before.get("versions") or ()])
    yield from _conversion_faults(spec.get("conversion") or {}, spec)
    if old is not None:
        yield from _immutable(spec, before, established(old))
    yield from _stored_faults((definition.get("status") or {}).get("storedVersions"), spec.get("versions") or [])
    yield from _approval_faults(definition, old)
    if spec.get("preserveUnknownFields") and not before.get("preserveUnknownFields"):
        yield causes.invalid("spec.preserveUnknownFields", True, "cannot set to true, set "
                             f"{schema_parts.PRESERVE} to true in spec.versions[*].schema instead")


def established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)


def _group_faults(group: str) -> Iterator[Cause]:
    if not group:
        yield causes.required("spec.group")
    elif faults := names.subdomain(group):
        yield causes.invalid("spec.group", group, ",".join(faults))
    elif "." not in group:
        yield causes.invalid("spec.group", group, "should be a domain with at least one dot")


def _word_faults(value: str, path: str, choices: tuple[str, ...]) -> Iterator[Cause]:
    if not value:
        yield causes.required(path)
    else:
        yield from checks.choice(value, path, choices)


def _version_faults(spec: Object, before: list[Json]) -> Iterator[Cause]:
    """`before` are schemas that were taken once."""
    given = spec.get("versions") or []
    whole, versions = _gathered(given)
    for index, version in enumerate(versions):
        if (version.get("schema") or whole.get("schema") or {}).get("openAPIV3Schema") is None:
            yield causes.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if spec.get("preserveUnknownFields") and any(_has_defaults((each.get("schema") or {}).get("openAPIV3Schema"))
                                                 for each in given):
        yield causes.invalid("spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema")
    first_named = {version.get("name") or "": version for version in reversed(versions)}
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        yield from _label_faults(version.get("name") or "", f"{path}.name")
        parts = whole.get("subresources") or first_named[version.get("name") or ""].get("subresources") or {}
        yield from version_rules.deprecation_faults(version, path)
        yield from _part_faults(version, path, "schema", before, status=parts.get("status") is not None)
    yield from _count_faults(given, versions, spec)
    first = (given[0].get("name") or "") if given else ""
    if first:
        yield from _label_faults(first, "spec.version")
    yield from _name_faults(spec["names"])
    status = any((each.get("subresources") or {}).get("status") is not None for each in given)
    yield from _part_faults(whole, "spec", "validation", before, status=status)


def _gathered(given: list[Object]) -> tuple[Object, list[Object]]:
    """What all versions have alike, and the versions without it."""
    if not given:
        return {}, []
    whole = {part: given[0].get(part) for part in _SHARED
             if all(_same(each.get(part), given[0].get(part)) for each in given)}
    return whole, [{name: value for name, value in each.items() if name not in whole} for each in given]


def _same(one: Json, other: Json) -> bool:
    return one == other or (one in (None, []) and other in (None, []))


def _part_faults(holder: Object, path: str, schema: str, before: list[Json], *, status: bool) -> Iterator[Cause]:
    """The parts that a version has, or all versions together."""
    found = holder.get("schema")
    document = (found or {}).get("openAPIV3Schema")
    if document is not None:
        yield from definition_schemas.faults(document, f"{path}.{schema}.openAPIV3Schema", status=status,
                                             known=found in before)
    yield from version_rules.scale_faults(holder.get("subresources") or {}, f"{path}.subresources")
    for at, column in enumerate(holder.get("additionalPrinterColumns") or ()):
        yield from version_rules.column_faults(column or {}, f"{path}.additionalPrinterColumns[{at}]")
    if fields := holder.get("selectableFields"):
        yield from version_rules.selectable_faults(fields, document, path, whole=schema == "validation")


def _count_faults(given: list[Object], versions: list[Object], spec: Object) -> Iterator[Cause]:
    shown = None if spec.get("versions") is None else [
        {name[0].upper() + name[1:]: each.get(name, _GO_EMPTY.get(name)) for name in _GO_VERSION} for each in versions]
    if len({each.get("name") or "" for each in given}) < len(given):
        yield causes.invalid("spec.versions", shown, "must contain unique version names")
    if sum(1 for each in given if each.get("storage")) != 1:
        yield causes.invalid("spec.versions", shown, "must have exactly one version marked as storage version")


def _name_faults(given: Object) -> Iterator[Cause]:
    path = "spec.names"
    for field in ("plural", "singular", "kind", "listKind"):
        if not given.get(field):
            yield causes.required(f"{path}.{field}")
    for field in ("plural", "singular"):
        if given.get(field):
            yield from _label_faults(given[field], f"{path}.{field}")
    for field in ("kind", "listKind"):
        if given.get(field) and (faults := names.older_label_1035(given[field].lower())):
            yield causes.invalid(f"{path}.{field}", given[field], f"{_MIXED}{','.join(faults)}")
    yield from _each_faults(given.get("shortNames") or [], f"{path}.shortNames")
    if given.get("kind") and given["kind"] == given.get("listKind"):
        yield causes.invalid(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same")
    yield from _each_faults(given.get("categories") or [], f"{path}.categories")


def _each_faults(found: list[str], path: str) -> Iterator[Cause]:
    for at, each in enumerate(found):
        yield from _label_faults(each or "", f"{path}[{at}]")


def _label_faults(value: str, path: str) -> Iterator[Cause]:
    if faults := names.older_label_1035(value):
        yield causes.invalid(path, value, ",".join(faults))


def _has_defaults(document: Json) -> bool:
    if not isinstance(document, dict):
        return False
    inner = (*schema_parts.nested(document), *schema_parts.below(document))
    return document.get("default") is not None or any(_has_defaults(each) for _, each in inner)


def _conversion_faults(conversion: Object, spec: Object) -> Iterator[Cause]:
    path, strategy = "spec.conversion", conversion.get("strategy") or ""
    if strategy != "None" and spec.get("preserveUnknownFields"):
        yield causes.invalid(f"{path}.strategy", strategy, "must be None if spec.preserveUnknownFields is true")
    yield from _word_faults(strategy, f"{path}.strategy", _STRATEGIES)
    hook = conversion.get("webhook") or {}
    client, versions = hook.get("clientConfig"), hook.get("conversionReviewVersions") or []
    if strategy != "Webhook":
        for field, value in (("webhookClientConfig", client), ("conversionReviewVersions", versions or None)):
            if value is not None:
                yield causes.forbidden(f"{path}.{field}", "should not be set when strategy is not set to Webhook")
        return
    if client is None:
        yield causes.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
    else:
        yield from webhooks.client_faults(client, f"{path}.webhookClientConfig")
    if not versions:
        yield causes.required(f"{path}.conversionReviewVersions")
    else:
        yield from webhooks.review_version_faults(versions, f"{path}.conversionReviewVersions")


def _immutable(spec: Object, old: Object, served: bool) -> Iterator[Cause]:
    given, known = spec["names"], old.get("names") or {}
    if served:
        yield from checks.unchanged(spec.get("scope"), old.get("scope"), "spec.scope")
        yield from checks.unchanged(given.get("kind"), known.get("kind"), "spec.names.kind")
    yield from checks.unchanged(spec.get("group"), old.get("group"), "spec.group")
    yield from checks.unchanged(given.get("plural"), known.get("plural"), "spec.names.plural")


def _stored_faults(stored: list[str] | None, versions: list[Object]) -> Iterator[Cause]:
    path = "status.storedVersions"
    if not stored:
        yield causes.invalid(path, None, "must have at least one stored version")
        return
    missing = set(stored)
    for version in versions:
        name = version.get("name") or ""
        if version.get("storage") and name not in missing:
            yield causes.invalid(path, stored, f"must have the storage version {name}")
        missing.discard(name)
    for at, name in enumerate(stored):
        if name in missing:
            yield causes.invalid(
                f"{path}[{at}]", name, f"missing from spec.versions; {name} was previously a storage version, and must "
                f"remain in spec.versions until a storage migration ensures no data remains persisted in {name} and "
                f"removes {name} from status.storedVersions")


def _approval_faults(definition: Object, old: Object | None) -> Iterator[Cause]:
    """Groups of the community are for what it approved of."""
    group = str(definition["spec"].get("group") or "")
    if group not in _PROTECTED and not group.endswith(tuple(f".{each}" for each in _PROTECTED)):
        return
    given = _approval(definition)
    if old is not None and _approval_state(_approval(old)) == _approval_state(given):
        return
    path, told = f"metadata.annotations[{APPROVED}]", f'protected groups must have approval annotation "{APPROVED}"'
    match _approval_state(given):
        case "missing":
            yield causes.required(path, f"{told}, {_ENHANCEMENTS}")
        case "invalid":
            yield causes.invalid(path, given, f'{told} with either a URL or a reason starting with "unapproved", '
                                              f"{_ENHANCEMENTS}")


def _approval(definition: Object) -> str:
    return str((definition["metadata"].get("annotations") or {}).get(APPROVED) or "")


def _approval_state(given: str) -> str:
    if not given or given.startswith("unapproved"):
        return "bypassed" if given else "missing"
    try:
        parts = urlsplit(given)
    except ValueError:
        return "invalid"
    return "approved" if parts.scheme and parts.netloc else "invalid"
