"""Which kinds a server has, asked the way every server understands: one request per group and version."""

from collections.abc import Iterable
from dataclasses import dataclass

from trainmaster.api.meta import Object, Resource
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound


@dataclass(frozen=True, slots=True)
class Served:
    """A kind that the server has, and what can be done with it."""

    resource: Resource
    verbs: frozenset[str]

    def can(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)


async def served(client: Client) -> list[Served]:
    """Every kind in its preferred version, without subresources."""
    groups = (await client.request("GET", "/apis")).get("groups", [])
    found = list(_kinds(await client.request("GET", "/api/v1"), "", "v1"))
    for group in groups:
        version = group["preferredVersion"]["version"]
        try:
            document = await client.request("GET", f"/apis/{group['name']}/{version}")
        except NotFound:  # a CRD was removed between the two questions
            continue
        found += _kinds(document, group["name"], version)
    return found


def _kinds(document: Object, group: str, version: str) -> Iterable[Served]:
    for entry in document.get("resources", []):
        if "/" not in entry["name"]:
            resource = Resource(group, version, entry["name"], entry["kind"], namespaced=entry["namespaced"])
            yield Served(resource, frozenset(entry.get("verbs", ())))
