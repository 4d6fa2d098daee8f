"""Custom resource definitions: what is filled in, and the kinds one makes the server serve.

A definition is accepted, established and served with the write that stores it: there is no controller in between that
could lag behind, so a client that reads `Established` can use the kind with its next request. What a definition must
look like is in `definition_rules`.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice

from trainmaster.api.meta import Json, Object, Resource, timestamp
from trainmaster.cluster.apiserver import causes, jsonpath, schema_rules, schemas
from trainmaster.cluster.apiserver.columns import AGE, NAME, NONE, Since
from trainmaster.cluster.apiserver.definition_rules import established
from trainmaster.cluster.apiserver.kind import SUB_VERBS, Column, Kind, Renewal, Scale, Subresource

# All verbs, in the order in which a real server lists them for custom kinds.
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_SCALE_PATHS = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")


def begin(definition: Object) -> None:
    definition["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}


def defaults(definition: Object) -> None:
    spec = definition.setdefault("spec", {})
    conversion = spec.setdefault("conversion", {"strategy": "None"}) or {}
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)
    given = spec.setdefault("names", {})
    for field, word in (("singular", str.lower), ("listKind", "{}List".format)):
        if given.get("kind") and not given.get(field):
            given[field] = word(given["kind"])
    status = definition.get("status") or {}
    known = list(status.get("storedVersions") or ())
    new = [version.get("name") or "" for version in spec.get("versions") or () if version.get("storage")][:1]
    stored = [*known, *(name for name in new if name not in known)]
    definition["status"] = {**status, "storedVersions": stored}      # a copy: the old object may share it


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
        try:
            path = jsonpath.compiled(each.get("jsonPath") or ".")
        except ValueError:      # any path is taken, and what cannot be read ends the columns
            return
        yield Column(str(each.get("name") or ""), _cell(path, kind), kind,
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
