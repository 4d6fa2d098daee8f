"""What a decision asks for, done: bindings, evictions, words on pods, groups and queues. Each can be repeated.

Everything is told once, and again only when it changes: a cluster with a thousand waiting pods must not write a
thousand events a second.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, Resource, controller_of, metadata, name_of, timestamp, uid_of
from trainmaster.cluster.scheduler import dialects, writing
from trainmaster.cluster.scheduler.amounts import plus
from trainmaster.cluster.scheduler.decide import DEFAULT
from trainmaster.cluster.scheduler.dialects import VOLCANO, Dialect
from trainmaster.cluster.scheduler.gangs import ALLOCATED
from trainmaster.cluster.scheduler.mirror import Mirror
from trainmaster.cluster.scheduler.settings import Binding, Decision, Eviction, Told, Verdict, Waiting
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, ApiError, Conflict, KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger
from trainmaster.runtime.recorder import Recorder

log = logger("scheduler")

AT_ONCE = 16          # requests in flight; a job of a thousand pods must not open a thousand
RETRY_SECONDS = 1.0   # after a request that got no answer
FIRST_QUEUES: dict[str, tuple[Object, ...]] = {
    "volcano": ({"metadata": {"name": "root"}, "spec": {"weight": 1, "reclaimable": False}},
                {"metadata": {"name": "default"}, "spec": {"weight": 1}}),
    "kube-batch": ({"metadata": {"name": "default"}, "spec": {"weight": 1}},),
}


class Hands:
    """Does what decisions say, and remembers what it has said."""

    def __init__(self, client: Client, clock: Clock, served: tuple[Dialect, ...], mirror: Mirror,
                 changed: Callable[[], None]) -> None:
        self._client = client
        self._clock = clock
        self._served = served
        self._mirror = mirror
        self._changed = changed                           # asks for another decision
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._told: dict[str, tuple[str, str]] = {}       # pod UID -> why it waits, as last said
        self._told_groups: dict[str, frozenset[Told]] = {}
        self._evicted: set[str] = set()
        self._retrying: asyncio.Task[None] | None = None
        self._recorders = {name: Recorder(client, name, clock)
                           for name in (DEFAULT, *(dialect.scheduler for dialect in served))}

    async def do(self, decision: Decision) -> None:
        self._forget()
        async with asyncio.TaskGroup() as group:
            for binding in decision.bindings:
                group.create_task(self._bind(binding))
            for eviction in decision.evictions:
                if eviction.uid not in self._evicted:
                    group.create_task(self._evict(eviction))
            for waiting in decision.waiting:
                if self._told.get(waiting.uid) != (waiting.reason, waiting.message):
                    group.create_task(self._tell(waiting))
            name = str(uuid.uuid4())
            for verdict in decision.verdicts:
                if (work := self._say(verdict, name)) is not None:
                    group.create_task(work)
            for raw, resource, patch in self._queues(decision.verdicts):
                group.create_task(self._write(resource, raw, patch, "status"))
            for pod in self._alone():
                group.create_task(self._give_group(pod))

    def _again_later(self) -> None:
        """Decide again in a moment. Nobody waits for it: what one object is refused must not slow the others down."""
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.ensure_future(self._wake())

    async def _wake(self) -> None:
        await self._clock.sleep(RETRY_SECONDS)
        self._changed()

    def _forget(self) -> None:
        """What was said of objects that are no more."""
        snapshot = self._mirror.snapshot
        if len(self._told) + len(self._evicted) > 2 * len(snapshot.pods) + 100:
            self._told = {uid: said for uid, said in self._told.items() if uid in snapshot.pods}
            self._evicted &= snapshot.pods.keys()
        if len(self._told_groups) > 2 * len(snapshot.groups) + 100:
            known = {group.uid for group in snapshot.groups.values()}
            self._told_groups = {uid: said for uid, said in self._told_groups.items() if uid in known}

    async def _bind(self, binding: Binding) -> None:
        key = binding.pod
        body = {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": binding.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
        }
        self._mirror.assume(binding.uid, binding.node)
        try:
            async with self._gate:
                await self._client.create(PODS, body, namespace=key.namespace, name=key.name, subresource="binding")
        except (NotFound, Conflict):
            self._mirror.assume(binding.uid, "")      # gone or bound by another hand: the watch tells
            return
        except KubeError as problem:
            self._mirror.assume(binding.uid, "")
            log.warning("could not bind", pod=key, node=binding.node, problem=problem)
            self._again_later()
            return
        log.info("bound", pod=key, node=binding.node)
        if (pod := self._mirror.pods.copy.get(key.namespace, key.name)) is not None:
            await self._recorder(pod).event(pod, "Normal", "Scheduled",
                                            f"Successfully assigned {key} to {binding.node}")

    async def _evict(self, eviction: Eviction) -> None:
        self._evicted.add(eviction.uid)
        key = eviction.pod
        pod = self._mirror.pods.copy.get(key.namespace, key.name)
        if pod is None or uid_of(pod) != eviction.uid:
            return
        recorder = self._recorder(pod)
        text = f"Pod is evicted, because of {eviction.why}"
        try:
            async with self._gate:
                with suppress(Conflict):
                    await self._condition(pod, "DisruptionTarget", "True", "PreemptionByScheduler", text)
                await self._client.delete(PODS, key.name, key.namespace, uid=eviction.uid)
        except (NotFound, Conflict):
            return
        except KubeError as problem:
            log.warning("could not evict", pod=key, problem=problem)
            self._evicted.discard(eviction.uid)
            self._again_later()
            return
        await recorder.event(pod, "Warning", "Evict", text)
        group = self._mirror.snapshot.groups.get(eviction.group) if eviction.group is not None else None
        if group is not None:
            await recorder.event(group.raw, "Normal", "Evict", eviction.why)

    async def _tell(self, waiting: Waiting) -> None:
        """Once per change of the reason: the condition on the pod, then the event."""
        self._told[waiting.uid] = (waiting.reason, waiting.message)
        pod = self._mirror.pods.copy.get(waiting.pod.namespace, waiting.pod.name)
        if pod is None or uid_of(pod) != waiting.uid:
            return
        try:
            async with self._gate:
                await self._condition(pod, "PodScheduled", "False", waiting.reason, waiting.message)
        except ApiError:
            return  # gone, or replaced: whoever comes next is told on its own
        except KubeError:
            self._told.pop(waiting.uid, None)
            self._again_later()
            return
        await self._recorder(pod).event(pod, "Warning", "FailedScheduling", waiting.message)

    async def _condition(self, pod: Object, type_: str, status: str, reason: str, message: str) -> None:
        condition = {
            "type": type_, "status": status, "reason": reason, "message": message, "lastProbeTime": None,
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        others = [each for each in pod.get("status", {}).get("conditions") or () if each["type"] != type_]
        meta = metadata(pod)
        body = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [*others, condition]}}
        await self._client.patch(PODS, meta["name"], meta["namespace"], body, subresource="status")

    def _say(self, verdict: Verdict, decision: str) -> Coroutine[Any, Any, None] | None:
        dialect = dialects.by_name(verdict.group.key.dialect)
        status = writing.status_patch(verdict, dialect, self._clock.now(), decision)
        why = writing.why_patch(verdict)
        fresh = [each for each in verdict.events if each not in self._told_groups.get(verdict.group.uid, ())]
        self._told_groups[verdict.group.uid] = frozenset(verdict.events)
        if status is None and why is None and not fresh:
            return None
        return self._write_group(verdict, dialect, status, why, fresh)

    async def _write_group(self, verdict: Verdict, dialect: Dialect, status: Object | None, why: Object | None,
                           fresh: list[Told]) -> None:
        raw = verdict.group.raw
        if dialect.status_part:
            if status is not None:
                await self._write(dialect.groups, raw, status, "status")
            if why is not None:
                await self._write(dialect.groups, raw, why)
        elif status is not None or why is not None:
            await self._write(dialect.groups, raw, {**(status or {}), **(why or {})})
        for event in fresh:
            await self._recorders[dialect.scheduler].event(raw, event.type, event.reason, event.message)

    async def _write(self, resource: Resource, raw: Object, patch: Object, part: str = "") -> None:
        meta = metadata(raw)
        body = {**patch, "metadata": {**(patch.get("metadata") or {}), "uid": meta["uid"]}}
        try:
            async with self._gate:
                await self._client.patch(resource, meta["name"], meta.get("namespace", ""), body, subresource=part)
        except (NotFound, Conflict):
            return      # gone, or another of its name
        except KubeError as problem:
            log.warning("could not write", kind=resource.kind, name=meta["name"], problem=problem)
            self._again_later()

    def _queues(self, verdicts: Iterable[Verdict]) -> list[tuple[Object, Resource, Object]]:
        """The queues whose status says something else now."""
        held: dict[tuple[str, str], dict[str, int]] = {}
        counts: dict[tuple[str, str], Counter[str]] = {}
        for verdict in verdicts:
            key = (verdict.group.key.dialect, verdict.group.queue)
            counts.setdefault(key, Counter())[verdict.phase.lower()] += 1
            for pod in self._mirror.snapshot.pods_of(verdict.group.key):
                if pod.state in ALLOCATED:
                    held[key] = plus(held.get(key, {}), pod.requests)
        found = []
        for (dialect, name), queue in self._mirror.snapshot.queues.items():
            resource = dialects.by_name(dialect).queues
            patch = writing.queue_status(queue.raw or {}, held.get((dialect, name), {}),
                                         counts.get((dialect, name), Counter()))
            if patch is not None and resource is not None and dialect == VOLCANO.name:
                found.append((queue.raw or {}, resource, patch))
        return found

    def _alone(self) -> list[Object]:
        """Pods of a group-wise scheduler that name no group: each owner's get one."""
        return [pod.raw for dialect in self._served
                for pod in list(self._mirror.snapshot.waiting.get(dialect.scheduler, {}).values()) if pod.group is None]

    async def _give_group(self, pod: Object) -> None:
        """Make the group, then name it on the pod; both can be repeated."""
        dialect = dialects.serving(pod["spec"]["schedulerName"])
        assert dialect is not None
        group = dialects.group_for(pod, dialect, controller_of(pod))
        try:
            async with self._gate:
                with suppress(AlreadyExists):
                    await self._client.create(dialect.groups, group)
                meta = metadata(pod)
                body = {"metadata": {"uid": meta["uid"], **dialects.tied(dialect, name_of(group))}}
                await self._client.patch(PODS, meta["name"], meta["namespace"], body)
        except (NotFound, Conflict):
            return
        except KubeError as problem:
            log.warning("could not make a group", pod=name_of(pod), problem=problem)
            self._again_later()

    async def first_queues(self) -> None:
        for dialect in self._served:
            for queue in FIRST_QUEUES.get(dialect.name, ()):
                assert dialect.queues is not None
                body = {"apiVersion": dialect.queues.api_version, "kind": "Queue", **queue}
                while True:
                    try:
                        with suppress(AlreadyExists):
                            await self._client.create(dialect.queues, body)
                    except KubeError as problem:
                        log.warning("could not make a queue", queue=queue, problem=problem)
                        await self._clock.sleep(RETRY_SECONDS)
                        continue
                    break

    def _recorder(self, pod: Object) -> Recorder:
        return self._recorders.get(pod["spec"].get("schedulerName") or DEFAULT) or self._recorders[DEFAULT]
