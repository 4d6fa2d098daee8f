"""The loop around `decide`: woken by any change, it decides, does, and says why. Nothing is polled.

A decision is made in slices; between two of them others run, and what the watches tell meanwhile is taken in later.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from trainmaster.api.meta import moment
from trainmaster.cluster.scheduler.decide import slices
from trainmaster.cluster.scheduler.dialects import DIALECTS, Dialect
from trainmaster.cluster.scheduler.gangs import INQUEUE
from trainmaster.cluster.scheduler.hands import Hands
from trainmaster.cluster.scheduler.mirror import Mirror
from trainmaster.cluster.scheduler.settings import DEFAULTS, Decision, Settings
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock

SLICE = 0.005         # seconds of deciding after which others get their turn


async def run(client: Client, clock: Clock, settings: Settings = DEFAULTS, served: Iterable[Dialect] = DIALECTS,
              ready: Callable[[], None] = lambda: None, *, singles: bool = True) -> None:
    """Schedule until cancelled. `served` are the dialects whose kinds the cluster has; without `singles` pods of the
    default scheduler are somebody else's."""
    scheduler = Scheduler(client, clock, replace(settings, singles=singles), tuple(served))
    async with asyncio.TaskGroup() as group:
        for informer in (*scheduler.mirror.informers, *scheduler.mirror.storage):
            group.create_task(informer.run())
        group.create_task(scheduler.mirror.learn_storage())
        group.create_task(scheduler.work(ready))


class Scheduler:
    """Looks, decides, acts, for ever."""

    def __init__(self, client: Client, clock: Clock, settings: Settings, served: tuple[Dialect, ...]) -> None:
        self._clock = clock
        self._settings = settings
        self._changed = asyncio.Event()
        self.mirror = Mirror(client, clock, served, settings.comeback, self._changed.set)
        self._hands = Hands(client, clock, served, self.mirror, self._changed.set)

    async def work(self, ready: Callable[[], None]) -> None:
        await self._hands.first_queues()
        for informer in self.mirror.informers:
            await informer.synced()
        ready()
        while True:
            await self._woken()
            self._changed.clear()
            self.mirror.fold(self._clock.now())
            await self._hands.do(await self._decide())

    async def _woken(self) -> None:
        """Until something changes, or a moment comes at which the same state means something else."""
        next_moment = self._next_moment()
        if next_moment is None:
            await self._changed.wait()
            return
        waits = (asyncio.ensure_future(self._changed.wait()),
                 asyncio.ensure_future(self._clock.sleep_until(next_moment)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _next_moment(self) -> datetime | None:
        """When a claim ends, or when a group has waited long enough to have room kept for it."""
        now, snapshot = self._clock.now(), self.mirror.snapshot
        moments = [datetime.fromtimestamp(claim.until, UTC) for claim in snapshot.claims]
        if self._settings.patience:
            moments += [moment(group.created) + timedelta(seconds=self._settings.patience)
                        for group in snapshot.groups.values() if group.phase == INQUEUE and group.created]
        return min((each for each in moments if each > now), default=None)

    async def _decide(self) -> Decision:
        deciding = slices(self.mirror.snapshot, self._clock.now(), self._settings)
        began = time.perf_counter()
        while True:
            try:
                next(deciding)
            except StopIteration as done:
                decision: Decision = done.value
                return decision
            if time.perf_counter() - began > SLICE:
                await asyncio.sleep(0)
                began = time.perf_counter()
