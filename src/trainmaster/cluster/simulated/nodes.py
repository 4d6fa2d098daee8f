"""The shell of simulated nodes: registers them, and says of every pod bound to one that it runs, or how it ended."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from trainmaster.api.core import NODES, PODS
from trainmaster.api.meta import Key, Object, key_of, labels_of, timestamp, uid_of
from trainmaster.cluster.simulated.life import step
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

MARK = "trainmaster.dev/simulated"


async def run(client: Client, clock: Clock, count: int, offers: Mapping[str, str]) -> None:
    """Keep `count` nodes with these offers until cancelled."""
    names = named(count)
    if not names:
        await asyncio.Event().wait()
    nodes = Simulated(client, clock, names)
    for name in names:
        await nodes.register(name, offers)
    async with asyncio.TaskGroup() as group:
        group.create_task(nodes.pods.run())
        group.create_task(nodes.controller.run())


def named(count: int) -> list[str]:
    return [f"simulated-{number}" for number in range(count)]


def is_simulated(node: Object) -> bool:
    return labels_of(node).get(MARK) == "true"


class Simulated:
    """All simulated nodes of a cluster, in one."""

    def __init__(self, client: Client, clock: Clock, names: list[str]) -> None:
        self._client = client
        self._clock = clock
        self._names = frozenset(names)
        self._given = 0
        self.pods = Informer(client, PODS, clock=clock)
        self.controller: Controller[Key] = Controller("simulated-nodes", self._look, clock=clock,
                                                      informers=[self.pods])
        self.pods.on_change(self._changed)

    async def register(self, name: str, offers: Mapping[str, str]) -> None:
        made: Object = {"apiVersion": "v1", "kind": "Node",
                        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, MARK: "true"}}}
        with suppress(AlreadyExists):      # of an earlier life; what it offers is brought up to date
            await self._client.create(NODES, made)
        now = timestamp(self._clock.now())
        ready = {"type": "Ready", "status": "True", "reason": "Simulated", "message": "pods here are only simulated",
                 "lastHeartbeatTime": now, "lastTransitionTime": now}
        offered = {"pods": "110", **offers}
        status = {"capacity": offered, "allocatable": offered, "conditions": [ready],
                  "addresses": [{"type": "InternalIP", "address": _address_of(name)},
                                {"type": "Hostname", "address": name}]}
        await self._client.patch(NODES, name, "", {"status": status}, subresource="status")

    def _changed(self, before: Object | None, after: Object | None) -> None:
        seen = after or before
        if seen is not None and seen["spec"].get("nodeName") in self._names:
            self.controller.queue.add(key_of(seen))

    async def _look(self, key: Key) -> datetime | None:
        pod = self.pods.copy.get(key.namespace, key.name)
        if pod is None:
            return None
        todo = step(pod, self._address(), self._clock.now())
        try:
            if todo.remove:
                await self._client.delete(PODS, key.name, key.namespace, uid=uid_of(pod), grace=0)
            elif todo.status is not None:
                body = {"metadata": {"uid": uid_of(pod)}, "status": todo.status}
                await self._client.patch(PODS, key.name, key.namespace, body, subresource="status")
        except (NotFound, Conflict):
            return None      # it changed under our hands; the watch tells
        return todo.again

    def _address(self) -> str:
        """From the range for benchmarks: it reaches nobody."""
        self._given = (self._given + 1) % (254 * 256)
        return f"198.18.{self._given // 254}.{self._given % 254 + 1}"


def _address_of(node: str) -> str:
    """From the other half of that range: clients expect a node to have an address."""
    number = int(node.rpartition("-")[2])
    return f"198.19.{number // 254}.{number % 254 + 1}"
