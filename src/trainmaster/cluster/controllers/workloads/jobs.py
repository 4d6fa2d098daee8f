"""Does what `job_plan` decides, step by step: pods, status, finalizers, and again until nothing is left to count."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from trainmaster.api.core import BATCH_JOBS, PODS
from trainmaster.api.meta import (
    Key,
    Object,
    controller_of,
    metadata,
    name_of,
    namespace_of,
    revision_of,
    uid_of,
)
from trainmaster.cluster.controllers.workloads.claims import claim
from trainmaster.cluster.controllers.workloads.completion import FINALIZER, is_tracked
from trainmaster.cluster.controllers.workloads.following import BURST, OF_JOB, Dependents, Followed, workloads
from trainmaster.cluster.controllers.workloads.hands import AT_ONCE, Hands, later
from trainmaster.cluster.controllers.workloads.job_plan import Plan, plan, without_made
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Conflict, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.recorder import Recorder

# Name, take off, count: more rounds only where more pods ended than a status may name.
ROUNDS = 4


def selector_of(job: Object) -> Object:
    return (job.get("spec") or {}).get("selector") or {}


class Jobs:
    """A key is that of a Job."""

    def __init__(self, client: Client, clock: Clock, pods: Dependents) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._hands = Hands(client, PODS, pods.recent, Recorder(client, "job-controller", clock))
        self.followed = Followed(
            BATCH_JOBS, workloads(client, BATCH_JOBS, clock), pods, clock, selector_of, self.reconcile
        )

    async def reconcile(self, key: Key) -> datetime | None:
        job = self.followed.get(key)
        await self._let_go(key, uid_of(job) if job is not None else "")
        if job is None:
            return None
        try:
            for _ in range(ROUNDS):
                job, todo = await self._step(job)
                if not todo.release:
                    return todo.look_again_at
        except NotFound:
            return None    # it went while we looked at it, or its namespace did
        return self._clock.now() + BURST

    async def _step(self, job: Object) -> tuple[Object, Plan]:
        selector = selector_of(job)
        pods = await claim(
            self._client, BATCH_JOBS, job, selector, PODS, self._pods.candidates(job, selector), self._pods.recent,
            FINALIZER,
        )
        todo = plan(job, pods, self._clock.now())
        failure = await self._hands.delete(job, todo.delete)
        if todo.withdraw:
            await self._release(todo.withdraw)
            failure = await self._hands.delete(job, todo.withdraw) or failure
        made, refused = await self._hands.create(job, todo.create)
        if todo.status is not None:
            job = await self._write(job, without_made(todo.status, len(todo.create) - made))
        for event in todo.events:
            await self._hands.tell(job, event.type, event.reason, event.message)
        if (failure := failure or refused) is not None:
            raise later(failure)
        await self._release(todo.release)
        if todo.expired:
            await self._expire(job)
        return job, todo

    async def _write(self, job: Object, status: Object) -> Object:
        if status == (job.get("status") or {}):
            return job
        stored = await self._client.replace(BATCH_JOBS, {**job, "status": status}, subresource="status")
        return self.followed.written(stored)

    async def _release(self, pods: Sequence[Object]) -> None:
        """Take the finalizer off, of many at once."""
        for start in range(0, len(pods), AT_ONCE):
            results = await asyncio.gather(*map(self._release_one, pods[start:start + AT_ONCE]), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result

    async def _release_one(self, pod: Object) -> None:
        if not is_tracked(pod):
            return
        left = [each for each in metadata(pod).get("finalizers") or () if each != FINALIZER]
        change = {"metadata": {"uid": uid_of(pod), "resourceVersion": revision_of(pod), "finalizers": left or None}}
        try:
            self._pods.recent.written(await self._client.patch(PODS, name_of(pod), namespace_of(pod), change))
        except NotFound:
            return    # its watch is about to tell
        except Conflict:
            # It changed since: what was decided on it stands, but who else has a finalizer may be new.
            await self._release_newest(pod)

    async def _release_newest(self, pod: Object) -> None:
        with suppress(NotFound):
            found = await self._client.get(PODS, name_of(pod), namespace_of(pod))
            if uid_of(found) == uid_of(pod) and revision_of(found) != revision_of(pod):
                await self._release_one(found)

    async def _let_go(self, key: Key, uid: str) -> None:
        """Pods of a job that is gone, or of one that had its name before: nobody counts them any more."""
        for pod in self._pods.informer.copy.by(OF_JOB, str(key)):
            if is_tracked(pod) and (controller_of(pod) or {}).get("uid") != uid:
                with suppress(NotFound):
                    await self._release_one(self._pods.recent.newest(pod))

    async def _expire(self, job: Object) -> None:
        with suppress(NotFound, Conflict):    # a conflict: it changed, and is looked at again
            await self._client.delete(
                BATCH_JOBS, name_of(job), namespace_of(job), uid=uid_of(job), revision=revision_of(job),
                propagation="Foreground",
            )
