"""Which kinds a server has, asked the way every server understands: one request per group and version."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.api.meta import Object, Resource
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError, NotFound


@dataclass(frozen=True, slots=True)
class Served:
    """A kind that the server has, and what can be done with it."""

    resource: Resource
    verbs: frozenset[str]

    def can(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a server said about itself, and which groups it could not say anything about."""

    kinds: tuple[Served, ...] = ()
    failed: Mapping[str, KubeError] = field(default_factory=dict)     # by group and version, as `metrics.k8s.io/v1`


async def served(client: Client) -> list[Served]:
    """Every kind in its preferred version, without subresources. Raises what goes wrong."""
    found = await survey(client)
    for error in found.failed.values():
        raise error
    return list(found.kinds)


async def survey(client: Client) -> Survey:
    """The same, as far as it can be found out: one group that fails hides no other. Raises if nothing can be."""
    groups = (await client.request("GET", "/apis")).get("groups") or ()
    kinds: list[Served] = []
    failed: dict[str, KubeError] = {}
    for group, version in [("", "v1"), *((each["name"], each["preferredVersion"]["version"]) for each in groups)]:
        try:
            document = await client.request("GET", f"/apis/{group}/{version}" if group else f"/api/{version}")
        except NotFound:  # a CRD was removed between the two questions
            continue
        except KubeError as error:
            failed[f"{group}/{version}" if group else version] = error
            continue
        kinds += _kinds(document, group, version)
    return Survey(tuple(kinds), failed)


def _kinds(document: Object, group: str, version: str) -> Iterable[Served]:
    for entry in document.get("resources", []):
        if "/" not in entry["name"]:
            resource = Resource(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"])
            yield Served(resource, frozenset(entry.get("verbs", ())))
