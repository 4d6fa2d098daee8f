"""One training job from its creation to its last trace, on a real control plane and on the embedded one.

Both runs must leave the same record: the job, its pods and services are compared as the two servers show them, once
while it runs and once when it has succeeded, after what cannot be equal (UIDs, times, revisions) is taken out.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest
from tests.kubernetes.access import connected
from tests.kubernetes.clusters import NAMESPACE, Cluster
from tests.kubernetes.fake_kubelet import end

from trainmaster.api.core import DEFINITIONS, PODS, SERVICES
from trainmaster.api.kubeflow_v1 import KINDS
from trainmaster.api.meta import Json, Object, Resource, name_of
from trainmaster.api.schema import definitions
from trainmaster.kube.client import Client

pytestmark = pytest.mark.kubernetes

PATIENCE = 60.0
JOBS = next(kind.resource for kind in KINDS if kind.resource.kind == "TFJob")
NAME = "life"
OURS = f"training.kubeflow.org/job-name={NAME}"
TEMPLATE = {"spec": {"containers": [{"name": "tensorflow", "image": "example.com/mnist:1"}]}}
PODS_OF_JOB = [f"{NAME}-ps-{n}" for n in range(2)] + [f"{NAME}-worker-{n}" for n in range(4)]

# Different on every run, or decided by the cluster and not by us. Accounts are turned off on the real control plane;
# tolerations of lost nodes mean nothing on one machine.
VARYING = re.compile(
    r"uid|resourceVersion|managedFields|.*Timestamp|.*[tT]ime|startedAt|finishedAt|clusterIPs?|serviceAccount(Name)?|tolerations"
)


def job() -> Object:
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "Running"},
            "tfReplicaSpecs": {
                "PS": {"replicas": 2, "restartPolicy": "Never", "template": TEMPLATE},
                "Worker": {"replicas": 4, "restartPolicy": "Never", "template": TEMPLATE},
            },
        },
    }


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with connected(cluster.kubeconfig) as client:
        yield client


async def reached(client: Client, wanted: Callable[[Object], bool]) -> Object:
    """The job once it is as wanted."""
    page = await client.list(JOBS, NAMESPACE, fields=f"metadata.name={NAME}")
    for thing in page.items:
        if wanted(thing):
            return thing
    watch = client.watch(JOBS, NAMESPACE, fields=f"metadata.name={NAME}", revision=page.revision)
    async with asyncio.timeout(PATIENCE), aclosing(watch) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED") and wanted(event.object):
                return event.object
    raise AssertionError("the watch ended")


async def gone(client: Client, resource: Resource, *names: str) -> None:
    """Return once none of the named objects is there."""
    page = await client.list(resource, NAMESPACE)
    left = {name_of(thing) for thing in page.items} & set(names)
    if not left:
        return
    watch = client.watch(resource, NAMESPACE, revision=page.revision)
    async with asyncio.timeout(PATIENCE), aclosing(watch) as events:
        async for event in events:
            if event.type == "DELETED":
                left.discard(name_of(event.object))
            if not left:
                return


def replicas(thing: Object, state: str) -> dict[str, int]:
    found = (thing.get("status") or {}).get("replicaStatuses") or {}
    return {role: counts[state] for role, counts in found.items() if counts.get(state)}


def holds(thing: Object, condition: str) -> bool:
    found = (thing.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in found)


async def life(cluster: Cluster) -> list[Json]:
    """Let the job live, and return what could be seen of it while it ran and when it had succeeded."""
    seen: list[Json] = []
    async with connected(cluster.kubeconfig) as client:

        async def look(thing: Object) -> None:
            pods = (await client.list(PODS, NAMESPACE, labels=OURS)).items
            services = (await client.list(SERVICES, NAMESPACE, labels=OURS)).items
            seen.append(comparable({"job": thing, "pods": pods, "services": services}))

        await client.create(JOBS, job())
        await look(await reached(client, lambda thing: replicas(thing, "active") == {"PS": 2, "Worker": 4}))
        for number in (3, 2, 1, 0):  # the job has succeeded as soon as worker 0 has
            await end(client, f"{NAME}-worker-{number}", NAMESPACE)
        await reached(client, lambda thing: holds(thing, "Succeeded"))
        await gone(client, PODS, f"{NAME}-ps-0", f"{NAME}-ps-1")
        await look(await reached(client, lambda thing: not replicas(thing, "active")))
        await client.delete(JOBS, NAME, NAMESPACE)
        await gone(client, PODS, *PODS_OF_JOB)
        await gone(client, SERVICES, *PODS_OF_JOB)
    return seen


def comparable(value: Json) -> Json:
    """What is left when everything is taken out that two clusters cannot agree on."""
    if isinstance(value, dict):
        return {key: comparable(part) for key, part in value.items() if not VARYING.fullmatch(key)}
    if isinstance(value, list):
        return [comparable(part) for part in value]
    return value


async def test_our_definitions_are_accepted_and_established(client: Client) -> None:
    for wanted in definitions():
        found = await client.get(DEFINITIONS, name_of(wanted))

        conditions = {one["type"]: one["status"] for one in found["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}, name_of(wanted)


async def test_a_job_lives_and_dies(cluster: Cluster) -> None:
    running, succeeded = await life(cluster)

    assert [name_of(pod) for pod in running["pods"]] == PODS_OF_JOB
    assert [name_of(service) for service in running["services"]] == PODS_OF_JOB
    assert [name_of(pod) for pod in succeeded["pods"]] == PODS_OF_JOB[2:]
    # Upstream parity: what still runs when the job succeeds is counted as succeeded, also the parameter servers.
    assert replicas(succeeded["job"], "succeeded") == {"PS": 2, "Worker": 4}


async def test_both_clusters_show_the_same(real_cluster: Cluster, embedded_cluster: Cluster) -> None:
    real, embedded = await asyncio.gather(life(real_cluster), life(embedded_cluster))

    for ours, theirs in zip(embedded, real, strict=True):
        assert ours == theirs
