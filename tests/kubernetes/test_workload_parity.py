"""Jobs, Deployments and StatefulSets beside Kubernetes' own controllers: the same story, status and events.

A real kube-apiserver with kube-controller-manager on one side, the embedded control plane on the other; nobody runs
pods, and the test says how they fare.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.kubernetes import clusters
from tests.kubernetes.access import connected
from tests.kubernetes.conftest import Binaries
from tests.kubernetes.control_plane import running

from trainmaster.api.core import EVENTS, NAMESPACES, PODS
from trainmaster.api.meta import Object, Resource, name_of, timestamp
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound

pytestmark = [pytest.mark.kubernetes, pytest.mark.full]

CONTROLLERS = ("job-controller", "deployment-controller", "replicaset-controller", "statefulset-controller",
               "ttl-after-finished-controller", "serviceaccount-controller")
JOBS = Resource("batch", "v1", "jobs", "Job")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class World:
    client: Client
    namespace: str

    async def create(self, resource: Resource, **spec: Any) -> None:
        labels = {"matchLabels": {"app": "w"}}
        pod: Object = {"containers": [{"name": "c", "image": "i:1"}], "automountServiceAccountToken": False}
        if resource is JOBS:
            pod["restartPolicy"] = "Never"
        template = {"metadata": {"labels": {"app": "w"}}, "spec": pod}
        thing = {"apiVersion": resource.api_version, "kind": resource.kind,
                 "metadata": {"name": "w", "namespace": self.namespace},
                 "spec": {"template": template, **({} if resource is JOBS else {"selector": labels}), **spec}}
        await self.client.create(resource, thing)

    async def pods(self) -> list[Object]:
        return (await self.client.list(PODS, self.namespace)).items

    async def report(self, phase: str, pattern: str = "*", code: int = 0) -> None:
        now = timestamp(datetime.now(UTC))
        for pod in await self.pods():
            if not fnmatch(name_of(pod), pattern) or pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            ended = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
                     "state": {"terminated": {"exitCode": code, "finishedAt": now, "startedAt": now}}}
            ready = {"type": "Ready", "status": "True" if phase == "Running" else "False", "lastTransitionTime": now}
            told = {"phase": phase, "conditions": [ready], **({} if phase == "Running" else {
                "containerStatuses": [ended]})}
            with suppress(NotFound):      # its set took it away meanwhile
                await self.client.patch(PODS, name_of(pod), self.namespace, {"status": told}, subresource="status")

    async def until(self, resource: Resource, fits: Callable[[Object], bool]) -> Object:
        thing: Object = {}
        async with asyncio.timeout(PATIENCE), aclosing(self.client.watch(
                resource, self.namespace, fields="metadata.name=w", bookmarks=False)) as events:
            async for event in events:      # the first is the object as it is
                thing = event.object
                if fits(thing.get("status") or {}):
                    return thing
        raise AssertionError(f"it never came to that: {thing.get('status')}")

    async def told(self) -> set[tuple[str, str, str]]:
        events = (await self.client.list(EVENTS, self.namespace)).items
        return {(each["type"], each["reason"], comparable(each["message"])) for each in events
                if each["involvedObject"]["name"] == "w"}


def comparable(text: str) -> str:
    """Without what is made up anew each time: hashes and the ends of generated names."""
    text = re.sub(r"w(-\d+)?-[a-z0-9]{8,10}(-[a-z0-9]{5})?\b", r"w\1-HASH", text)
    return re.sub(r"\bw(-\d+)?-[bcdfghjklmnpqrstvwxz2456789]{5}\b", r"w\1-NAME", text)


def shown(status: Object) -> Object:
    """A status without moments and made-up names, conditions by type."""
    text = orjson.dumps(status).decode()
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "MOMENT", comparable(text))
    found: Object = orjson.loads(text)
    found["conditions"] = sorted((each for each in found.get("conditions") or ()), key=lambda each: str(each["type"]))
    return found


Story = Callable[[World], Awaitable[Object]]


async def job_succeeds(it: World) -> Object:
    await it.create(JOBS, completions=2, parallelism=2)
    await it.until(JOBS, lambda status: status.get("active") == 2)
    await it.report("Running")
    await it.until(JOBS, lambda status: status.get("ready") == 2)
    await it.report("Succeeded")
    return await it.until(JOBS, lambda status: bool(status.get("completionTime")))


async def job_fails(it: World) -> Object:
    await it.create(JOBS, backoffLimit=0)
    await it.until(JOBS, lambda status: status.get("active") == 1)
    await it.report("Failed", code=3)
    return await it.until(JOBS, lambda status: any(each["type"] == "Failed" for each in status.get("conditions") or ()))


async def job_fails_by_policy(it: World) -> Object:
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [3]}}
    await it.create(JOBS, podFailurePolicy={"rules": [rule]})
    await it.until(JOBS, lambda status: status.get("active") == 1)
    await it.report("Failed", code=3)
    return await it.until(JOBS, lambda status: any(each["type"] == "Failed" for each in status.get("conditions") or ()))


async def indexed_job(it: World) -> Object:
    await it.create(JOBS, completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=0)
    await it.until(JOBS, lambda status: status.get("active") == 3)
    await it.report("Failed", "w-1-*", code=1)
    await it.until(JOBS, lambda status: status.get("failedIndexes") == "1")
    await it.report("Succeeded")
    return await it.until(JOBS, lambda status: any(each["type"] == "Failed" for each in status.get("conditions") or ()))


async def suspended_job(it: World) -> Object:
    await it.create(JOBS, parallelism=2)
    await it.until(JOBS, lambda status: status.get("active") == 2)
    await it.client.patch(JOBS, "w", it.namespace, {"spec": {"suspend": True}})
    await it.until(JOBS, lambda status: not status.get("active"))
    await it.client.patch(JOBS, "w", it.namespace, {"spec": {"suspend": False}})
    return await it.until(JOBS, lambda status: status.get("active") == 2 and not status.get("terminating"))


async def rollout(it: World) -> Object:
    def done(generation: int) -> Callable[[Object], bool]:
        return lambda status: (status.get("observedGeneration") == generation and status.get("updatedReplicas") == 2
                               and status.get("availableReplicas") == 2 and status.get("replicas") == 2
                               and any(each["reason"] == "NewReplicaSetAvailable" for each in status["conditions"]))

    await it.create(DEPLOYMENTS, replicas=2)
    await it.until(DEPLOYMENTS, lambda status: status.get("unavailableReplicas") == 2)
    ready = asyncio.create_task(keep_ready(it))
    await it.until(DEPLOYMENTS, done(1))
    change = {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}
    await it.client.patch(DEPLOYMENTS, "w", it.namespace, change)
    found = await it.until(DEPLOYMENTS, done(2))
    ready.cancel()
    return found


async def stateful_set(it: World) -> Object:
    await it.create(STATEFUL_SETS, replicas=2, serviceName="s")
    ready = asyncio.create_task(keep_ready(it))
    await it.until(STATEFUL_SETS, lambda status: status.get("availableReplicas") == 2)
    await it.client.patch(STATEFUL_SETS, "w", it.namespace, {"spec": {"replicas": 1}})
    found = await it.until(STATEFUL_SETS, lambda status: status.get("replicas") == 1)
    ready.cancel()
    return found


async def keep_ready(it: World) -> None:
    async with aclosing(it.client.watch(PODS, it.namespace, bookmarks=False)) as events:
        async for event in events:
            if event.type != "DELETED" and (event.object.get("status") or {}).get("phase") != "Running":
                await it.report("Running")


async def told_in_the_end(real: World, ours: World) -> set[tuple[str, str, str]]:
    """What the real controllers say. Events come after the status: it is waited until both said the same, if ever."""
    news = asyncio.Event()

    async def listen(world: World) -> None:
        async with aclosing(world.client.watch(EVENTS, world.namespace)) as events:
            async for _event in events:
                news.set()

    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            listening = [group.create_task(listen(world)) for world in (real, ours)]
            while await real.told() != await ours.told():
                await news.wait()
                news.clear()
            for each in listening:
                each.cancel()
    return await real.told()


@pytest.fixture(scope="module")
def kubeconfigs(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    folder = tmp_path_factory.mktemp("workloads")
    programs = binaries("etcd", "kube-apiserver", "kube-controller-manager")
    (folder / "ours").mkdir()
    with running(programs, folder) as plane, clusters.embedded(folder / "ours") as ours:
        plane.start_controllers(*CONTROLLERS)
        yield [plane.kubeconfig(), ours.kubeconfig]


@pytest.fixture
async def worlds(kubeconfigs: list[Path], request: pytest.FixtureRequest) -> AsyncIterator[list[World]]:
    namespace = re.sub(r"[^a-z]+", "-", request.node.name.partition("[")[2].lower()).strip("-")
    async with connected(kubeconfigs[0]) as real, connected(kubeconfigs[1]) as ours:
        for client in (real, ours):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        yield [World(real, namespace), World(ours, namespace)]


@pytest.mark.parametrize("story", [
    pytest.param(job_succeeds, id="a job succeeds"),
    pytest.param(job_fails, id="a job fails"),
    pytest.param(job_fails_by_policy, id="a policy fails a job"),
    pytest.param(indexed_job, id="an index fails"),
    pytest.param(suspended_job, id="a job is suspended and resumed"),
    pytest.param(rollout, id="a deployment is rolled out"),
    pytest.param(stateful_set, id="a stateful set comes up"),
])
async def test_the_same_story_ends_alike(story: Story, worlds: list[World]) -> None:
    real, ours = await asyncio.gather(*map(story, worlds))

    assert shown(real["status"]) == shown(ours["status"])
    assert await told_in_the_end(*worlds) == await worlds[1].told()
