"""Replicas of a job that are gone, and whose node still has what they printed.

When a job has ended the replicas that still run are removed. The nodes of the embedded cluster keep their logs for a
while; those of other clusters do not, and are not asked.
"""

from collections.abc import Sequence

from trainmaster.api.core import NODES
from trainmaster.api.meta import Object, controller_of, name_of, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError
from trainmaster.sdk.jobs import Job
from trainmaster.sdk.replicas import replica_of

RUNTIME = "trainmaster://"      # what our nodes say that they run containers by


async def former(client: Client, job: Job, pods: Sequence[Object]) -> list[tuple[Object, str]]:
    """Of each replica that has no pod now, the last pod that it had, and the path of its logs on the server."""
    found = await last_pods(client, job, pods)
    return [(record, f"{NODES.path('', node)}/proxy/formerPods/{job.namespace}/{uid_of(record)}")
            for record, node in found]


async def last_pods(
    client: Client, job: Job, pods: Sequence[Object], *, files: bool = False
) -> list[tuple[Object, str]]:
    """Of each replica that has no pod now, the last pod that left a log (or files), and the node that has it."""
    if len(pods) >= sum(role.replicas for role in job.roles()):
        return []
    there = {replica_of(pod).name for pod in pods}
    found: dict[str, tuple[Object, str]] = {}
    for node in await _ours(client):
        where = f"{NODES.path('', node)}/proxy/formerPods/{job.namespace}"
        try:
            asked = [("files", "true")] if files else []
            records = (await client.request("GET", where, query=asked)).get("items") or ()
        except KubeError:
            continue      # it is not up, or does not let us
        for record in records:
            name = replica_of(record).name
            if name not in there and (controller_of(record) or {}).get("uid") == job.uid and (
                    name not in found or found[name][0]["gone"] < record["gone"]):
                found[name] = record, node
    return list(found.values())


async def _ours(client: Client) -> list[str]:
    try:
        nodes = (await client.list(NODES)).items
    except KubeError:
        return []
    return [name_of(node) for node in nodes if is_ours(node)]


def is_ours(node: Object) -> bool:
    """Whether a Node is one of an embedded cluster, with real pods."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return str(info.get("containerRuntimeVersion", "")).startswith(RUNTIME)
