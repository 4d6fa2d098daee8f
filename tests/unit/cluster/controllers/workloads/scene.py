"""Workloads on the embedded server, on virtual time: controllers in one life after the other, and a kubelet."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

from tests.unit.cluster.controllers.stage import at_work

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, Resource, being_deleted, name_of, timestamp
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.cluster.controllers.workloads import main
from trainmaster.kube.client import Client
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import Faults, Plan, Write, is_death, nothing


async def controllers(client: Client, clock: VirtualClock) -> None:
    inventory = Inventory(client, clock)
    async with at_work(inventory.run()):
        await main.run(client, clock, inventory)


@dataclass(slots=True)
class Scene:
    clock: VirtualClock
    cluster: Cluster
    client: Client
    lives: list[Faults] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None

    def begin(self, dies_after: int | None = None, plan: Plan = nothing) -> None:
        """A life of the controllers."""
        transport = self.cluster.transport("controllers", plan, dies_after)
        self.lives.append(transport)
        self._task = asyncio.create_task(self._live(transport))

    async def _live(self, transport: Faults) -> None:
        try:
            await controllers(Client(transport, user_agent="controllers"), self.clock)
        except BaseExceptionGroup as ended:
            if not is_death(ended):
                raise
        # The next life begins where this one ended, without a fault.
        self.begin()

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def writes(self) -> list[Write]:
        return self.lives[0].writes

    async def settle(self, seconds: float = 2) -> None:
        await self.clock.advance(seconds=seconds)

    async def pods(self) -> list[Object]:
        found = (await self.client.list(PODS, "default")).items
        return sorted(found, key=name_of)

    async def report(self, pattern: str = "*", phase: str = "Running", *, ready: bool = True, **status: Any) -> None:
        """What the kubelet says of pods that have not ended."""
        for pod in await self.pods():
            if not fnmatch(name_of(pod), pattern) or pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            truth = "True" if ready and phase == "Running" else "False"
            now = timestamp(self.clock.now())
            told = {**pod["status"], "phase": phase, **status,
                    "conditions": [{"type": "Ready", "status": truth, "lastTransitionTime": now}]}
            await self.client.replace(PODS, {**pod, "status": told}, subresource="status")

    async def bind(self) -> None:
        """Pods get a node; from then on it takes a kubelet to end one."""
        for pod in await self.pods():
            if not pod["spec"].get("nodeName"):
                there = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name_of(pod)},
                         "target": {"kind": "Node", "name": "n"}}
                await self.client.create(PODS, there, namespace="default", name=name_of(pod), subresource="binding")

    async def bury(self) -> None:
        """The kubelet lets go of pods that are being deleted."""
        for pod in await self.pods():
            if being_deleted(pod):
                await self.client.delete(PODS, name_of(pod), "default", grace=0)

    async def run(self, rounds: int = 6) -> None:
        """Let everything happen: pods get ready, and go when they are deleted."""
        for _ in range(rounds):
            await self.settle()
            await self.report()
            await self.bury()
        await self.settle()

    async def counts(self, resource: Resource, *names: str) -> dict[str, int]:
        """How many replicas each object of a kind has."""
        found = (await self.client.list(resource, "default")).items
        return {name_of(one): one["spec"]["replicas"] for one in found if not names or name_of(one) in names}


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        it = Scene(clock, cluster, cluster.client())
        try:
            yield it
        finally:
            await it.end()


def template(**labels: str) -> Object:
    return {"metadata": {"labels": {"app": "web", **labels}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


def workload(kind: str, api_version: str = "apps/v1", name: str = "web", **spec: Any) -> Object:
    selector: Object = {"app": "web"} if kind == "ReplicationController" else {"matchLabels": {"app": "web"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": selector, "template": template(), **spec}}
