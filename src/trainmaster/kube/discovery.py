"""Which kinds a server has.

Asked in two requests where the server knows aggregated discovery (Kubernetes from 1.27, the embedded server), else with
one request per group and version, which every server understands. One group that fails hides no other.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from trainmaster.api.meta import Object, Resource
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError, KubeError, NotFound, Unreachable

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


@dataclass(frozen=True, slots=True)
class Served:
    """A kind that the server has, and what can be done with it."""

    resource: Resource
    verbs: frozenset[str]
    names: frozenset[str] = frozenset()      # what else people call it: the singular, short names

    def can(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a server said about itself, and which groups it could not say anything about."""

    kinds: tuple[Served, ...] = ()
    failed: Mapping[str, KubeError] = field(default_factory=dict)     # by group and version, as `metrics.k8s.io/v1`


async def survey(client: Client) -> Survey:
    """Every kind once, in the version its group prefers, without subresources, as far as it can be found out.

    Raises if nothing can be.
    """
    kinds: list[Served] = []
    failed: dict[str, KubeError] = {}
    for root in ("/api", "/apis"):
        document = await _root(client, root)
        if document.get("kind") == "APIGroupDiscoveryList":
            each: Iterable[Served] = _aggregated(document, failed)
        else:
            each = [kind async for kind in _one_by_one(client, document, failed)]
        kinds += _once(each)
    return Survey(tuple(kinds), failed)


async def _root(client: Client, path: str) -> Object:
    try:
        return await client.request("GET", path, accept=AGGREGATED)
    except ApiError as error:
        if error.code != 406:    # an old server that has no form we asked for, not even the plain one
            raise
    return await client.request("GET", path)


def _once(kinds: Iterable[Served]) -> Iterator[Served]:
    """The first of each kind: versions come with the preferred one first, and not every kind is in that."""
    seen: set[tuple[str, str]] = set()
    for kind in kinds:
        place = (kind.resource.group, kind.resource.plural)
        if place not in seen:
            seen.add(place)
            yield kind


def _aggregated(document: Object, failed: dict[str, KubeError]) -> Iterator[Served]:
    for group in document.get("items") or ():
        name = (group.get("metadata") or {}).get("name") or ""
        for version in group.get("versions") or ():
            place = _place(name, version["version"])
            if version.get("freshness") == "Stale":
                failed[place] = Unreachable(f"{place}: the server that has it does not answer")
            for entry in version.get("resources") or ():
                kind = (entry.get("responseKind") or {}).get("kind") or ""
                resource = Resource(
                    name, version["version"], entry["resource"], kind, namespaced=entry.get("scope") == "Namespaced"
                )
                yield Served(resource, frozenset(entry.get("verbs") or ()), _names(entry, "singularResource"))


async def _one_by_one(client: Client, document: Object, failed: dict[str, KubeError]) -> AsyncIterator[Served]:
    for group, version in _versions(document):
        try:
            found = await client.request("GET", f"/apis/{group}/{version}" if group else f"/api/{version}")
        except NotFound:  # a CRD was removed between the two questions
            continue
        except KubeError as error:
            failed[_place(group, version)] = error
            continue
        for entry in found.get("resources") or ():
            if "/" not in entry["name"]:
                resource = Resource(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"])
                yield Served(resource, frozenset(entry.get("verbs") or ()), _names(entry, "singularName"))


def _names(entry: Object, singular: str) -> frozenset[str]:
    return frozenset(name for name in (entry.get(singular), *(entry.get("shortNames") or ())) if name)


def _versions(document: Object) -> Iterator[tuple[str, str]]:
    """The groups and versions that the answer to /api or /apis names, the preferred version of a group first."""
    for version in document.get("versions") or ():
        yield "", version
    for group in document.get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions = [each["version"] for each in group.get("versions") or ()]
        for version in sorted(versions, key=lambda version: version != preferred):
            yield group["name"], version


def _place(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
