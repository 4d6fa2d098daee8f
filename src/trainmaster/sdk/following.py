"""Follows the logs of a job: a reader for each life of each container, as pods come and go, until the job has ended.

Apart from `sdk.logs`, since only this part needs an event loop, and those who read what was printed need none.
"""

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self, cast

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, uid_of
from trainmaster.runtime.informer import Informer
from trainmaster.sdk.jobs import Job
from trainmaster.sdk.logs import LINGER, Batch, Life, Wanted, life_of, read_on, sources
from trainmaster.sdk.replicas import Attempt
from trainmaster.sdk.session import Session

if TYPE_CHECKING:
    from trainmaster.runtime.clock import Clock


class Following:
    """Fills `batches`, with None at the end."""

    def __init__(self, session: Session, job: Job, wanted: Wanted, batches: "asyncio.Queue[Batch | None]") -> None:
        self.batches = batches
        self._session, self._job, self._wanted = session, job, wanted
        clock = cast("Clock", session.clock)      # an asynchronous session has the whole of it
        self._watched = Informer(session.client, job.resource, clock=clock, namespace=job.namespace,
                                 fields=f"metadata.name={job.name}")
        self._pods = Informer(session.client, PODS, clock=clock, namespace=job.namespace, labels=job.pods)
        self._readers: dict[tuple[Attempt, str], asyncio.Task[None]] = {}
        self._over = asyncio.Event()
        self._begun = False
        self._running: list[asyncio.Task[None]] = []
        self._watched.on_change(self._job_changed)
        self._pods.on_change(self._pod_changed)

    async def __aenter__(self) -> Self:
        self._running = [asyncio.create_task(work) for work in (self._watched.run(), self._pods.run(), self._end())]
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._running, *self._readers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _job_changed(self, _before: Object | None, after: Object | None) -> None:
        if after is None or uid_of(after) != self._job.uid or Job(self._job.resource, after).finished:
            self._over.set()

    def _pod_changed(self, _before: Object | None, after: Object | None) -> None:
        # A life that began while we follow is read from its first line, whatever was asked of those before it.
        asked = replace(self._wanted, tail=None, since=None) if self._begun else self._wanted
        for source in sources([after], self._wanted) if after is not None else ():
            key = (source.attempt, source.name)
            if key not in self._readers:
                self._readers[key] = asyncio.create_task(read_on(
                    self._session, self._job, source, asked, self.batches, partial(self._life, source.attempt)))

    def _life(self, attempt: Attempt) -> Life:
        """How that life of the container is, as far as is known."""
        return life_of(self._pods.copy.get(self._job.namespace, attempt.pod), attempt)

    async def _end(self) -> None:
        await self._watched.synced()
        if self._watched.copy.get(self._job.namespace, self._job.name) is None:
            self._over.set()
        await self._pods.synced()
        self._begun = True
        await self._over.wait()
        await self._pods.catch_up()
        # Servers that outlive the job (cleanPodPolicy None) are not waited for.
        ending = [task for (attempt, _), task in self._readers.items()
                  if not task.done() and self._life(attempt) != "running"]
        if ending:
            await asyncio.wait(ending, timeout=LINGER)
        await self.batches.put(None)
