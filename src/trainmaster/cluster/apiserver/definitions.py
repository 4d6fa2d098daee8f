"""Custom resource definitions: what one must look like, and the kinds it makes the server serve.

A definition is accepted, established and served with the write that stores it: there is no controller in between that
could lag behind, so a client that reads `Established` can use the kind with its next request.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from trainmaster.api.meta import Json, Object, Resource, timestamp
from trainmaster.cluster.apiserver import causes, jsonpath, names, rule_costs, schema_rules, schemas, structural
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.columns import AGE, NAME, NONE, Since
from trainmaster.cluster.apiserver.kind import SUB_VERBS, Column, Kind, Renewal, Scale, Subresource

# All verbs, in the order in which a real server lists them for custom kinds.
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
SCOPES = ("Cluster", "Namespaced")
_SCALE_PATHS = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
_IMMUTABLE = ("group", "scope")
_IMMUTABLE_NAMES = ("plural", "kind")


def begin(definition: Object) -> None:
    definition["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}


def defaults(definition: Object) -> None:
    spec = definition.setdefault("spec", {})
    spec.setdefault("conversion", {"strategy": "None"})
    given = spec.setdefault("names", {})
    if given.get("kind"):
        given.setdefault("singular", str(given["kind"]).lower())
        given.setdefault("listKind", f"{given['kind']}List")
    status = definition.get("status") or {}
    known = list(status.get("storedVersions") or ())
    new = [version.get("name") for version in spec.get("versions") or () if version.get("storage")]
    stored = [*known, *(name for name in new if name not in known)]
    definition["status"] = {**status, "storedVersions": stored}      # a copy: the old object may share it


def rules(definition: Object, old: Object | None) -> Iterator[Cause]:
    spec = definition["spec"]
    given = spec["names"]
    plural, group = given.get("plural") or "", spec.get("group") or ""
    for field, value in (("spec.group", group), ("spec.names.plural", plural), ("spec.names.kind", given.get("kind"))):
        if not value:
            yield causes.required(field)
    if group:
        yield from names.refused("spec.group", group, names.subdomain(group))
    if plural:
        yield from names.refused("spec.names.plural", plural, names.label_1035(plural))
    if definition["metadata"].get("name") != f"{plural}.{group}":
        yield causes.invalid("metadata.name", definition["metadata"].get("name"),
                             'must be spec.names.plural+"."+spec.group')
    for field in ("kind", "listKind"):
        if given.get(field):
            yield from names.refused(f"spec.names.{field}", given[field], names.label_1035(given[field].lower()))
    if spec.get("scope") not in SCOPES:
        yield causes.unsupported("spec.scope", spec.get("scope") or "", SCOPES)
    before = ((old or {}).get("spec") or {}).get("versions") or []
    yield from _version_rules(spec.get("versions") or [], [each.get("schema") for each in before])
    if old is not None:
        yield from _immutable(spec, old.get("spec") or {})


def accepted(definition: Object, others: Iterable[Object], now: datetime) -> Object:
    """The status of a definition beside the others: its names are taken, or somebody else has them."""
    spec, moment = definition["spec"], timestamp(now)
    taken = _taken(spec["group"], [other for other in others
                                   if other["metadata"]["name"] != definition["metadata"]["name"]])
    clash = next((name for name in _all_names(spec["names"]) if name in taken), "")
    status = dict(definition.get("status") or {})
    if clash:
        news = [("NamesAccepted", "False", "NameConflict", f'"{clash}" is already in use'),
                ("Established", "False", "NotAccepted", "not all names are accepted")]
    else:
        status["acceptedNames"] = dict(spec["names"])
        news = [("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
                ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")]
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    if not (clash and established(definition)):
        for kind, value, reason, message in news:
            conditions[kind] = _condition(conditions.get(kind), kind, value, reason, message, moment)
    status["conditions"] = list(conditions.values())
    return status


def ending(definition: Object, now: datetime) -> Object:
    """The definition at the beginning of its end: it keeps its instances reachable until they are gone."""
    status = dict(definition.get("status") or {})
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    conditions["Terminating"] = _condition(
        conditions.get("Terminating"), "Terminating", "True", "InstanceDeletionInProgress",
        "CustomResource deletion is in progress", timestamp(now))
    meta = definition["metadata"]
    finalizers = [*(name for name in meta.get("finalizers") or () if name != CLEANUP), CLEANUP]
    return {**definition, "metadata": {**meta, "finalizers": finalizers},
            "status": {**status, "conditions": list(conditions.values())}}


def unenforced(definition: Object) -> list[str]:
    """What whoever writes a definition should know: rules in it that this server cannot evaluate."""
    documents = ((version.get("schema") or {}).get("openAPIV3Schema")
                 for version in (definition.get("spec") or {}).get("versions") or ())
    found = (told for document in documents for told in schema_rules.unenforced(document))
    return [f"the rule {text!r} is not enforced by this server: {' '.join(why.split())[:200]}"
            for text, why in islice(found, schemas.MOST_FAULTS)]


def established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)


def kinds_of(definition: Object, since: int = 0) -> list[Kind]:
    """The kinds a definition serves, one per served version, the storage version first.

    `since` is the revision that brought the schema that objects are stored by.
    """
    if not established(definition):
        return []
    renewal = Renewal(schemas.StructuralSchema(storage_schema(definition)), since)
    versions = [version for version in definition["spec"]["versions"] if version.get("served")]
    versions.sort(key=lambda version: not version.get("storage"))
    return [_kind(definition["spec"], version, renewal) for version in versions]


def storage_schema(definition: Object) -> Object | None:
    """The schema of the version that objects are stored in."""
    found: Object = next((version for version in definition["spec"]["versions"] if version.get("storage")), {})
    schema: Object | None = (found.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _kind(spec: Object, version: Object, renewal: Renewal) -> Kind:
    given = spec["names"]
    parts = version.get("subresources") or {}
    scale = parts.get("scale")
    resource = Resource(spec["group"], version["name"], given["plural"], given["kind"], spec["scope"] == "Namespaced")
    warned = version.get("deprecationWarning") or f"{resource.api_version} {resource.kind} is deprecated"
    return Kind(
        resource, tuple(given.get("shortNames") or ()), tuple(given.get("categories") or ()), verbs=_VERBS,
        singular=given.get("singular") or "", list_kind=given.get("listKind") or "",
        status="status" in parts, generation=True, unconditional=False, custom=True,
        subresources=(Subresource("scale", "Scale", SUB_VERBS, "autoscaling", "v1"),) if scale else (),
        selectable=tuple(str(each.get("jsonPath", "")).lstrip(".") for each in version.get("selectableFields") or ()),
        columns=tuple(_columns(version.get("additionalPrinterColumns") or ())),
        schema=schemas.StructuralSchema((version.get("schema") or {}).get("openAPIV3Schema")),
        renewal=renewal,
        scale=None if scale is None else Scale(*(_steps(scale.get(field)) for field in _SCALE_PATHS)),
        warning=warned if version.get("deprecated") else "")


def _columns(given: Iterable[Object]) -> Iterator[Column]:
    listed = list(given)
    yield NAME
    if not listed:
        yield AGE
    for each in listed:
        kind = str(each.get("type") or "string")
        yield Column(str(each.get("name") or ""), _cell(jsonpath.compiled(each.get("jsonPath") or "."), kind), kind,
                     str(each.get("format") or ""), int(each.get("priority") or 0), str(each.get("description") or ""))


def _cell(path: jsonpath.Path, kind: str) -> "_Cell":
    return _Cell(path, kind)


class _Cell:
    """A printer column: what a path finds, as the column's type wants it."""

    __slots__ = ("_kind", "_path")

    def __init__(self, path: jsonpath.Path, kind: str) -> None:
        self._path = path
        self._kind = kind

    def __call__(self, thing: Object) -> Json:
        found = self._path(thing)
        if not found:
            return None
        if self._kind == "string":
            return " ".join(each if isinstance(each, str) else causes.quoted(each) for each in found)
        if self._kind == "date":
            return Since(found[0], other="<invalid>") if isinstance(found[0], str) else NONE
        return found[0] if isinstance(found[0], _FITTING.get(self._kind, (object,))) else None


_FITTING: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "boolean": (bool,)}


def _steps(path: str | None) -> tuple[str, ...]:
    return tuple(part for part in (path or "").split(".") if part)


def _version_rules(versions: list[Object], before: list[Json]) -> Iterator[Cause]:
    """`before` are schemas that were taken once: what their rules cost is not asked again."""
    if not versions:
        yield causes.required("spec.versions", "must have at least one version")
        return
    if sum(1 for version in versions if version.get("storage")) != 1:
        yield causes.invalid("spec.versions", [version.get("name") for version in versions],
                             "must have exactly one version marked as storage version")
    seen: set[str] = set()
    # Versions of one schema are one thing to Kubernetes, which then names the place where it used to be.
    shared = bool(versions[0].get("schema")) and all(each.get("schema") == versions[0].get("schema")
                                                     for each in versions)
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", version.get("name") or ""
        if not name:
            yield causes.required(f"{path}.name")
        elif name in seen:
            yield causes.duplicate(f"{path}.name", name)
        else:
            yield from names.refused(f"{path}.name", name, names.label_1035(name))
        seen.add(name)
        if index == 0 or not shared:
            place = "spec.validation.openAPIV3Schema" if shared else f"{path}.schema.openAPIV3Schema"
            yield from _schema_rules((version.get("schema") or {}).get("openAPIV3Schema"), place,
                                     costs=version.get("schema") not in before)
        for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
            try:
                jsonpath.compiled(column.get("jsonPath") or ".")
            except ValueError as error:
                yield causes.invalid(f"{path}.additionalPrinterColumns[{at}].jsonPath", column.get("jsonPath"),
                                     str(error))


def _schema_rules(document: Object | None, path: str, *, costs: bool) -> Iterator[Cause]:
    if document is None:
        yield causes.required(path, "schemas are required")
        return
    if document.get("type") != "object":
        yield causes.required(f"{path}.type", "must be object at the root")
    forms: dict[str, bytes] = {}
    found = [*structural.faults(document, path, forms=forms)] or [*structural.typeless(document, path)]
    if not found and costs and forms:
        found = [*rule_costs.excessive(document, path, forms), *schema_rules.uncorrelated(document, path)]
    if not found:
        try:
            schemas.validator(document)
            found = [*structural.wrong_defaults(document, path)]
        except ValueError as error:
            found = [causes.invalid(path, "schema", " ".join(str(error).split())[:200])]
    yield from found[:schemas.MOST_FAULTS]


def _immutable(spec: Object, old: Object) -> Iterator[Cause]:
    for field in _IMMUTABLE:
        if spec.get(field) != old.get(field):
            yield causes.invalid(f"spec.{field}", spec.get(field), "field is immutable")
    for field in _IMMUTABLE_NAMES:
        if spec["names"].get(field) != (old.get("names") or {}).get(field):
            yield causes.invalid(f"spec.names.{field}", spec["names"].get(field), "field is immutable")


def _condition(known: Object | None, kind: str, value: str, reason: str, message: str, moment: str) -> Object:
    since = known["lastTransitionTime"] if known and known.get("status") == value else moment
    return {"type": kind, "status": value, "lastTransitionTime": since, "reason": reason, "message": message}


def _taken(group: str, others: list[Object]) -> set[str]:
    return {name for other in others if other["spec"]["group"] == group
            for name in _all_names((other.get("status") or {}).get("acceptedNames") or {})}


def _all_names(given: Object) -> list[str]:
    """Everything a kind answers to. Kinds and resource names live apart, so a kind is marked with its case."""
    found = [given.get("plural"), given.get("singular"), *(given.get("shortNames") or ()),
             f"kind {given.get('kind')}" if given.get("kind") else "",
             f"kind {given.get('listKind')}" if given.get("listKind") else ""]
    return [str(name) for name in found if name]
