"""The shell around `decide`: sees pods and nodes, decides when something changed, binds, and says why a pod waits.

Any change of a pod or node wakes it; nothing is polled. Between two decisions it never assumes that its own bindings
are already visible: a pod that it has just bound is left alone until the watch confirms or the binding failed.
"""

import asyncio

from trainmaster.api.core import NODES, PODS
from trainmaster.api.meta import Object, timestamp
from trainmaster.cluster.scheduler.decide import Binding, Waiting, decide
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError, Conflict, KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger
from trainmaster.runtime.recorder import Recorder

log = logger("scheduler")

AT_ONCE = 16          # bindings in flight; a job of a thousand pods must not open a thousand requests
RETRY_SECONDS = 1.0   # after a request that got no answer


async def run(client: Client, clock: Clock) -> None:
    """Schedule until cancelled."""
    scheduler = Scheduler(client, clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(scheduler.pods.run())
        group.create_task(scheduler.nodes.run())
        group.create_task(scheduler.work())


class Scheduler:
    """Local copies of pods and nodes, and the loop over them."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._changed = asyncio.Event()
        self._bound: dict[str, str] = {}       # pod UID -> node: bindings the watch has not shown us yet
        self._told: dict[str, str] = {}        # pod UID -> why it waits, as last said
        self._recorder = Recorder(client, "default-scheduler", clock)
        self.pods = Informer(client, PODS, clock=clock)
        self.nodes = Informer(client, NODES, clock=clock)
        self.pods.on_change(self._pod_changed)
        self.nodes.on_change(lambda _before, _after: self._changed.set())

    async def work(self) -> None:
        await self.pods.synced()
        await self.nodes.synced()
        gate = asyncio.Semaphore(AT_ONCE)
        while True:
            await self._changed.wait()
            self._changed.clear()
            decision = decide(self.nodes.copy.all(), [self._as_bound(pod) for pod in self.pods.copy.all()])
            async with asyncio.TaskGroup() as group:
                for binding in decision.bindings:
                    group.create_task(self._bind(binding, gate))
                for waiting in decision.waiting:
                    if self._told.get(waiting.uid) != waiting.message:
                        group.create_task(self._tell(waiting, gate))

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        seen = after or before
        if seen is not None and (after is None or after["spec"].get("nodeName")):
            self._bound.pop(seen["metadata"]["uid"], None)
            self._told.pop(seen["metadata"]["uid"], None)
        self._changed.set()

    def _as_bound(self, pod: Object) -> Object:
        node = self._bound.get(pod["metadata"]["uid"])
        return pod if node is None else {**pod, "spec": {**pod["spec"], "nodeName": node}}

    async def _bind(self, binding: Binding, gate: asyncio.Semaphore) -> None:
        key = binding.pod
        body = {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": binding.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
        }
        self._bound[binding.uid] = binding.node
        try:
            async with gate:
                await self._client.create(PODS, body, namespace=key.namespace, name=key.name, subresource="binding")
        except (NotFound, Conflict):
            self._bound.pop(binding.uid, None)  # gone or bound by another hand: the watch tells
            return
        except KubeError as problem:
            self._bound.pop(binding.uid, None)
            log.warning("could not bind", pod=key, node=binding.node, problem=problem)
            await self._clock.sleep(RETRY_SECONDS)
            self._changed.set()
            return
        log.info("bound", pod=key, node=binding.node)
        if (pod := self.pods.copy.get(key.namespace, key.name)) is not None:
            await self._recorder.event(
                pod, "Normal", "Scheduled", f"Successfully assigned {key} to {binding.node}"
            )

    async def _tell(self, waiting: Waiting, gate: asyncio.Semaphore) -> None:
        """Once per change of the reason: the condition on the pod, then the event."""
        self._told[waiting.uid] = waiting.message
        pod = self.pods.copy.get(waiting.pod.namespace, waiting.pod.name)
        if pod is None or pod["metadata"]["uid"] != waiting.uid:
            return
        now = timestamp(self._clock.now())
        condition = {
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": waiting.message,
            "lastProbeTime": None, "lastTransitionTime": now,
        }
        others = [c for c in pod.get("status", {}).get("conditions") or () if c["type"] != "PodScheduled"]
        body = {"metadata": {"uid": waiting.uid}, "status": {"conditions": [*others, condition]}}
        try:
            async with gate:
                await self._client.patch(PODS, waiting.pod.name, waiting.pod.namespace, body, subresource="status")
        except ApiError:
            return  # gone, or replaced: whoever comes next is told on its own
        except KubeError:
            self._told.pop(waiting.uid, None)
            await self._clock.sleep(RETRY_SECONDS)
            self._changed.set()
            return
        await self._recorder.event(pod, "Warning", "FailedScheduling", waiting.message)
