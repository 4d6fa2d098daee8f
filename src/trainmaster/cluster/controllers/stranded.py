"""Pods whose node is no more are let go: nobody would ever run, end or remove them, and their owners would wait.

As the pod garbage collector of Kubernetes: a node that is missing has a while to come back (`QUARANTINE`), then the
server itself is asked once more, and what was bound to it is removed at once. Two things are otherwise. Pods that have
ended are results: they stay, with the node's name in them. And only a pod that something holds, as a Job does until it
has counted it, is said to have failed before it is removed: the others are gone with that very word, and whether their
owner read it in between would be chance.

Nothing is looked for in turns, as Kubernetes does every 20 seconds: the watches of pods and nodes tell.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from trainmaster.api.core import NODES, PODS
from trainmaster.api.meta import Object, metadata, name_of, namespace_of, timestamp, uid_of
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.kube.client import STRATEGIC_PATCH, Client
from trainmaster.kube.errors import Conflict, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

QUARANTINE = timedelta(seconds=40)      # as in Kubernetes
ON = "node"                             # index: pods that have not ended, by the node they are bound to
ENDED = ("Succeeded", "Failed")

log = logger("pod-garbage-collector")


async def run(client: Client, clock: Clock) -> None:
    """Let them go until cancelled."""
    collector = Collector(client, clock)
    async with asyncio.TaskGroup() as group:
        for informer in (collector.pods, collector.nodes):
            group.create_task(informer.run())
        group.create_task(collector.controller.run())


class Collector:
    """A key is the name of a node."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._missing: dict[str, datetime] = {}      # since when
        self.pods = Informer(Reduced(client, _kept), PODS, clock=clock, indexes={ON: _bound_to})
        self.nodes = Informer(Reduced(client, _named, bare=True), NODES, clock=clock)
        self.controller: Controller[str] = Controller(
            "pod-garbage-collector", self.reconcile, clock=clock, workers=1, informers=[self.pods, self.nodes])
        self.pods.on_change(self._pod_changed)
        self.nodes.on_change(self._node_changed)

    def _pod_changed(self, _before: Object | None, after: Object | None) -> None:
        for node in _bound_to(after) if after is not None else ():
            if self.nodes.copy.get("", node) is None:
                self.controller.queue.add(node)

    def _node_changed(self, before: Object | None, after: Object | None) -> None:
        if after is not None:
            self._missing.pop(name_of(after), None)
        elif before is not None:
            self.controller.queue.add(name_of(before))

    async def reconcile(self, node: str) -> datetime | None:
        if self.nodes.copy.get("", node) is not None or not self.pods.copy.holds(ON, node):
            self._missing.pop(node, None)
            return None
        due = self._missing.setdefault(node, self._clock.now()) + QUARANTINE
        if due > self._clock.now():
            return due
        with suppress(NotFound):
            await self._client.get(NODES, node)
            return None      # it came back this moment; its watch is about to tell
        for pod in self.pods.copy.by(ON, node):
            log.info("a pod's node is no more", pod=name_of(pod), namespace=namespace_of(pod), node=node)
            with suppress(NotFound, Conflict):      # it went, or another has its name; the watch is about to tell
                await self._let_go(pod)
        self._missing.pop(node, None)
        return None

    async def _let_go(self, pod: Object) -> None:
        if metadata(pod).get("finalizers"):
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                         "message": "PodGC: node no longer exists", "lastTransitionTime": timestamp(self._clock.now())}
            await self._client.patch(PODS, name_of(pod), namespace_of(pod), {
                "metadata": {"uid": uid_of(pod)}, "status": {"phase": "Failed", "conditions": [condition]},
            }, kind=STRATEGIC_PATCH, subresource="status")
        await self._client.delete(PODS, name_of(pod), namespace_of(pod), uid=uid_of(pod), grace=0)


def _bound_to(pod: Object) -> Iterable[str]:
    """The node that is to run it, of a pod that has not ended."""
    return [pod["node"]] if pod["node"] and not pod["ended"] else []


def _kept(pod: Object) -> Object:
    about = metadata(pod)
    fields = ("name", "namespace", "uid", "resourceVersion", "finalizers")
    return {"metadata": {field: about[field] for field in fields if field in about},
            "node": (pod.get("spec") or {}).get("nodeName", ""),
            "ended": (pod.get("status") or {}).get("phase") in ENDED}


def _named(node: Object) -> Object:
    about = metadata(node)
    return {"metadata": {field: about[field] for field in ("name", "uid", "resourceVersion") if field in about}}
