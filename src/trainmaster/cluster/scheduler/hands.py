"""What a decision asks for, done: bindings, evictions, words on pods, groups and queues. Each can be repeated.

Everything is told once, and again only when it changes: a cluster with a thousand waiting pods must not write a
thousand events a second. Events go through an outbox: a pod that has a place must not wait for the words about another.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, Resource, metadata, timestamp, uid_of
from trainmaster.cluster.scheduler import census, dialects, tenure, writing
from trainmaster.cluster.scheduler.adoption import Adoption
from trainmaster.cluster.scheduler.amounts import add
from trainmaster.cluster.scheduler.decide import DEFAULT
from trainmaster.cluster.scheduler.dialects import T9K, VOLCANO, Dialect
from trainmaster.cluster.scheduler.mirror import Mirror
from trainmaster.cluster.scheduler.provisioning import PodGone, Provisioning, Unprovided
from trainmaster.cluster.scheduler.settings import Binding, Decision, Eviction, Told, Verdict, Waiting
from trainmaster.cluster.scheduler.tenure import Overdue
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, ApiError, Conflict, KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger
from trainmaster.runtime.outbox import Outbox
from trainmaster.runtime.recorder import Recorder

log = logger("scheduler")

AT_ONCE = 16          # requests in flight; a job of a thousand pods must not open a thousand
RETRY_SECONDS = 1.0   # after a request that got no answer
FOLD_SECONDS = 0.5    # for which news that nobody waits for becomes one write: less than people notice
FIRST_QUEUES: dict[str, tuple[Object, ...]] = {
    "volcano": ({"metadata": {"name": "root"}, "spec": {"weight": 1, "reclaimable": False}},
                {"metadata": {"name": "default"}, "spec": {"weight": 1, "parent": "root"}}),
    "kube-batch": ({"metadata": {"name": "default"}, "spec": {"weight": 1}},),
}


class Hands:
    """Does what decisions say, and remembers what it has said."""

    def __init__(self, client: Client, clock: Clock, served: tuple[Dialect, ...], mirror: Mirror,
                 changed: Callable[[], None], lull: float = 0.0, lacks: Collection[Resource] = ()) -> None:
        self._client = client
        self._clock = clock
        self._served = served
        self._mirror = mirror
        self._changed = changed                           # asks for another decision
        self._gate = asyncio.Semaphore(AT_ONCE)           # first come, first served
        self.outbox = Outbox(clock, at_once=AT_ONCE, lull=lull, gate=self._gate)
        self._doing: set[asyncio.Task[None]] = set()
        self._provisioning = Provisioning(client, clock, mirror, self._gate)
        self._provided: set[asyncio.Task[None]] = set()   # bindings that wait for volumes: no decision waits for them
        self._writing: dict[str, bool] = {}               # UID of what is being written -> it has changed again
        self._told: dict[str, tuple[str, str]] = {}       # pod UID -> why it waits, as last said
        self._told_groups: dict[str, frozenset[Told]] = {}
        self._known: dict[str, Verdict] = {}              # group UID -> the verdict that says what is written already
        self._evicted: set[str] = set()
        self._ended: set[str] = set()                     # pods that were too old
        self._unsaid: dict[str, float] = {}               # UID -> since when there is news that nobody waits for
        self._retrying: asyncio.Task[None] | None = None
        self._folding: asyncio.Task[None] | None = None
        self._lacks = lacks
        self._adoption = Adoption(client, served, lacks, self._gate, self._again_later)
        self._recorders = {name: Recorder(client, name, clock)
                           for name in (DEFAULT, *(dialect.scheduler for dialect in served))}

    def begin(self, decision: Decision, group: asyncio.TaskGroup) -> Generator[None, None, None]:
        """Begin with all of it, piece by piece: bindings first, then who is sent away, words last."""
        self._forget()
        for binding in decision.bindings:
            self._mirror.assume(binding.uid, binding.node)
            if self._provisioning.needed(binding):
                _into(self._provided, group.create_task(self._bind_with_volumes(binding)))
            else:
                _into(self._doing, group.create_task(self._bind(binding)))
            yield
        for work in self._work(decision):
            if work is not None:
                _into(self._doing, group.create_task(work))
            yield

    def leave_volumes(self) -> None:
        """Wait for volumes no more. What was asked for is noted in the API for whoever is next."""
        for task in self._provided:
            task.cancel()

    def _work(self, decision: Decision) -> Iterator[Coroutine[Any, Any, None] | None]:
        for eviction in decision.evictions:
            if eviction.uid not in self._evicted:
                self._evicted.add(eviction.uid)
                yield self._evict(eviction)
        for nomination in decision.nominations:
            if self._free(nomination.uid):
                yield self._alone_with(nomination.uid, self._nominate(nomination))
        for waiting in decision.waiting:
            if self._told.get(waiting.uid) != (waiting.reason, waiting.message) and self._due(
                    waiting.uid, urgent=waiting.scheduler == DEFAULT):
                self._told[waiting.uid] = (waiting.reason, waiting.message)
                yield self._tell(waiting)
        name = str(uuid.uuid4())
        for verdict in decision.verdicts:
            if self._known.get(verdict.group.uid) is not verdict:
                yield from self._say(verdict, name)
                if self._adoption.emptied(verdict):
                    yield self._adoption.clear(verdict)
            yield None
        yield from self._queues(decision.verdicts, name)
        for late in tenure.overdue(self._mirror.snapshot, self._clock.now()):
            if late.pod.uid not in self._ended:
                self._ended.add(late.pod.uid)
                yield self._put_to_rest(late)
        for pod in self._adoption.alone(self._mirror.snapshot):
            if self._free(uid_of(pod)):
                yield self._alone_with(uid_of(pod), self._adoption.give_group(pod))

    async def idle(self) -> None:
        """Return when nothing is being done; Events may still be on their way."""
        while self._doing:
            await asyncio.wait(self._doing)

    async def empty(self) -> None:
        """Return when everything is done and told."""
        await self.idle()
        await self.outbox.emptied()

    def _free(self, uid: str) -> bool:
        """Whether nothing is being written about it. What a write in hand will change is not known yet: it is looked at
        again afterwards."""
        if uid in self._writing:
            self._writing[uid] = True
        return uid not in self._writing

    def _alone_with(self, uid: str, work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        async def written() -> None:
            try:
                await work
            finally:
                if self._writing.pop(uid, False):
                    self._changed()

        self._writing[uid] = False
        return written()

    def _due(self, uid: str, *, urgent: bool) -> bool:
        """Whether to say now what is new about an object, or with what else will be new in a moment: the members of a
        gang appear and start one by one."""
        now = self._clock.monotonic()
        since = self._unsaid.setdefault(uid, now)
        if urgent or now - since >= FOLD_SECONDS:
            del self._unsaid[uid]
            return True
        if self._folding is None or self._folding.done():
            self._folding = asyncio.ensure_future(self._wake(since + FOLD_SECONDS - now))
        return False

    def _again_later(self) -> None:
        """Decide again in a moment. Nobody waits for it: what one object is refused must not slow the others down."""
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.ensure_future(self._wake(RETRY_SECONDS))

    async def _wake(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._changed()

    def _forget(self) -> None:
        """What was said of objects that are no more."""
        snapshot = self._mirror.snapshot
        if len(self._told) + len(self._evicted) + len(self._ended) > 2 * len(snapshot.pods) + 100:
            self._told = {uid: said for uid, said in self._told.items() if uid in snapshot.pods}
            self._evicted &= snapshot.pods.keys()
            self._ended &= snapshot.pods.keys()
        if len(self._unsaid) > 2 * (len(snapshot.pods) + len(snapshot.groups) + len(snapshot.queues)) + 100:
            self._unsaid.clear()
        if len(self._told_groups) > 2 * len(snapshot.groups) + 100:
            known = {group.uid for group in snapshot.groups.values()}
            self._adoption.forget(known)
            self._told_groups = {uid: said for uid, said in self._told_groups.items() if uid in known}
            self._known = {uid: verdict for uid, verdict in self._known.items() if uid in known}

    async def _bind_with_volumes(self, binding: Binding) -> None:
        """In the words of kube-scheduler, whose plugin does this."""
        try:
            await self._provisioning.provided(binding)
        except PodGone:
            self._mirror.mistaken(binding.uid)
            return
        except (Unprovided, KubeError) as problem:
            self._mirror.mistaken(binding.uid)
            log.warning("no volumes", pod=binding.pod, node=binding.node, problem=problem)
            text = f'running PreBind plugin "VolumeBinding": binding volumes: {problem}'
            await self._tell(Waiting(binding.pod, binding.uid, text, reason="SchedulerError"))
            self._again_later()
            return
        await self._bind(binding)

    async def _bind(self, binding: Binding) -> None:
        key = binding.pod
        body = {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": binding.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
        }
        try:
            async with self._gate:
                await self._client.create(PODS, body, namespace=key.namespace, name=key.name, subresource="binding")
        except (NotFound, Conflict):
            self._mirror.mistaken(binding.uid)      # gone or bound by another hand: the watch tells
            return
        except KubeError as problem:
            self._mirror.mistaken(binding.uid)
            log.warning("could not bind", pod=key, node=binding.node, problem=problem)
            self._again_later()
            return
        log.info("bound", pod=key, node=binding.node)
        if (pod := self._mirror.pods.copy.get(key.namespace, key.name)) is not None:
            await self.outbox.put(self._recorder(pod), pod, "Normal", "Scheduled",
                                  f"Successfully assigned {key} to {binding.node}")

    async def _evict(self, eviction: Eviction) -> None:
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
        await self.outbox.put(recorder, pod, "Warning", "Evict", text)
        group = self._mirror.snapshot.groups.get(eviction.group) if eviction.group is not None else None
        if group is not None:
            await self.outbox.put(recorder, group.raw, "Normal", "Evict", eviction.why)

    async def _nominate(self, nomination: Binding) -> None:
        """Say where room is being made for a pod. Whoever comes after us keeps to it."""
        key = nomination.pod
        body = {"metadata": {"uid": nomination.uid}, "status": {"nominatedNodeName": nomination.node or None}}
        try:
            async with self._gate:
                await self._client.patch(PODS, key.name, key.namespace, body, subresource="status")
        except (NotFound, Conflict):
            return
        except KubeError as problem:
            log.warning("could not nominate", pod=key, node=nomination.node, problem=problem)
            self._again_later()

    async def _put_to_rest(self, late: Overdue) -> None:
        pod = late.pod.raw
        try:
            async with self._gate:
                about, done = await tenure.put_to_rest(self._client, pod)
        except (NotFound, Conflict):
            return
        except KubeError as problem:
            log.warning("could not end what is too old", pod=late.pod.key, problem=problem)
            self._ended.discard(late.pod.uid)
            self._again_later()
            return
        text = f"Pod {late.pod.key} is older than queue {late.queue} allows ({late.longest:g} seconds): {done}"
        for each in (pod, about) if about is not pod else (pod,):
            await self.outbox.put(self._recorder(pod), each, "Warning", "MaxDurationExceeded", text)

    async def _tell(self, waiting: Waiting) -> None:
        """Once per change of the reason: the condition on the pod, then the event."""
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
        await self.outbox.put(self._recorder(pod), pod, "Warning", "FailedScheduling", waiting.message)

    async def _condition(self, pod: Object, type_: str, status: str, reason: str, message: str) -> None:
        condition = {
            "type": type_, "status": status, "reason": reason, "message": message, "lastProbeTime": None,
            "lastTransitionTime": timestamp(self._clock.now()),
            **({"observedGeneration": generation} if (generation := metadata(pod).get("generation")) else {}),
        }
        others = [each for each in pod.get("status", {}).get("conditions") or () if each["type"] != type_]
        meta = metadata(pod)
        body = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [*others, condition]}}
        await self._client.patch(PODS, meta["name"], meta["namespace"], body, subresource="status")

    def _say(self, verdict: Verdict, decision: str) -> Iterator[Coroutine[Any, Any, None]]:
        uid = verdict.group.uid
        dialect = dialects.by_name(verdict.group.key.dialect)
        fresh = [each for each in verdict.events if each not in self._told_groups.get(uid, ())]
        self._told_groups[uid] = frozenset(verdict.events)
        if fresh:
            yield self._announce(verdict.group.raw, self._recorders[dialect.scheduler], fresh)
        status = writing.status_patch(verdict, dialect, self._clock.now(), decision)
        why = writing.why_patch(verdict)
        if status is None and why is None:
            self._known[uid] = verdict
        if (status is not None or why is not None) and self._due(uid, urgent=writing.urgent(status)) \
                and self._free(uid):
            yield self._alone_with(uid, self._write_group(verdict, dialect, status, why))

    async def _announce(self, raw: Object, recorder: Recorder, events: Iterable[Told]) -> None:
        for event in events:
            await self.outbox.put(recorder, raw, event.type, event.reason, event.message)

    async def _write_group(self, verdict: Verdict, dialect: Dialect, status: Object | None, why: Object | None) -> None:
        raw = verdict.group.raw
        if dialect.status_part:
            if status is not None:
                await self._write(dialect.kind_of(raw), raw, status, "status")
            if why is not None:
                await self._write(dialect.kind_of(raw), raw, why)
        else:
            await self._write(dialect.kind_of(raw), raw, {**(status or {}), **(why or {})})

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

    def _queues(self, verdicts: Iterable[Verdict], decision: str) -> Iterator[Coroutine[Any, Any, None] | None]:
        """Write to the queues whose status says something else now."""
        held: dict[tuple[str, str], dict[str, int]] = {}
        of_queue: dict[tuple[str, str], list[Verdict]] = {}
        for verdict in verdicts:
            key = (verdict.group.key.dialect, verdict.group.queue)
            of_queue.setdefault(key, []).append(verdict)
            add(held.setdefault(key, {}), census.taken(self._mirror.snapshot, verdict.group.key, None).held)
            yield None
        for (dialect, name), queue in self._mirror.snapshot.queues.items():
            resource, has, there = dialects.by_name(dialect).queues, held.get((dialect, name), {}), of_queue.get(
                (dialect, name), [])
            if queue.raw is None or resource is None or dialect not in (VOLCANO.name, T9K.name):
                continue
            if dialect == T9K.name:
                patch = writing.t9k_queue_status(queue.raw, has, queue.capability or {}, there, self._clock.now(),
                                                 decision)
            else:
                patch = writing.queue_status(queue.raw, has, Counter(verdict.phase.lower() for verdict in there))
            uid = uid_of(queue.raw)
            if patch is not None and self._due(uid, urgent=writing.urgent(patch)) and self._free(uid):
                yield self._alone_with(uid, self._write(resource, queue.raw, patch, "status"))

    async def first_queues(self) -> None:
        for dialect in self._served:
            if all(each in self._lacks for each in dialect.queue_kinds):
                continue
            for queue in FIRST_QUEUES.get(dialect.name, ()):
                kind = next(each for each in dialect.queue_kinds if each not in self._lacks)
                body = {"apiVersion": kind.api_version, "kind": "Queue", **queue}
                while True:
                    try:
                        with suppress(AlreadyExists):
                            await self._client.create(kind, body)
                    except KubeError as problem:
                        log.warning("could not make a queue", queue=queue, problem=problem)
                        await self._clock.sleep(RETRY_SECONDS)
                        continue
                    break

    def _recorder(self, pod: Object) -> Recorder:
        return self._recorders.get(pod["spec"].get("schedulerName") or DEFAULT) or self._recorders[DEFAULT]


def _into(tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
    """Keep a task for as long as it runs."""
    tasks.add(task)
    task.add_done_callback(tasks.discard)
