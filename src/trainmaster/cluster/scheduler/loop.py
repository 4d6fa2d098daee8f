"""The loop around `decide`: woken by any change, it decides, does, and says why. Nothing is polled.

Everything is done in slices: taking in what the watches told, deciding, beginning to act. Between two of them others
run, and what the watches tell meanwhile is taken in later.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Generator, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from trainmaster.api.groups import VOLCANO_COMMANDS
from trainmaster.api.meta import Resource, moment
from trainmaster.cluster.scheduler.commands import Orders
from trainmaster.cluster.scheduler.decide import SCHEDULING, TOO_LONG, slices
from trainmaster.cluster.scheduler.dialects import DIALECTS, VOLCANO, Dialect
from trainmaster.cluster.scheduler.gangs import INQUEUE, PENDING
from trainmaster.cluster.scheduler.hands import Hands
from trainmaster.cluster.scheduler.mirror import Mirror
from trainmaster.cluster.scheduler.settings import DEFAULTS, Settings
from trainmaster.cluster.scheduler.tenure import next_end
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.first import first

T = TypeVar("T")
SLICE = 0.005         # seconds of deciding after which others get their turn
LATEST = 1.0          # seconds after which the next decision is made even though much of the last is still to be done
STORAGE = 5.0         # seconds for which claims and volumes are waited for at the start, as they may be forbidden to us
GRACE = 10.0          # seconds for what is in hand, after being told to stop


async def in_turns(work: Generator[None, None, T]) -> T:
    """Work that comes in small pieces, done without holding up the others of this event loop."""
    began = time.perf_counter()
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        if time.perf_counter() - began > SLICE:
            await asyncio.sleep(0)
            began = time.perf_counter()


async def run(client: Client, clock: Clock, settings: Settings = DEFAULTS, served: Iterable[Dialect] = DIALECTS,
              ready: Callable[[], None] = lambda: None, *, singles: bool = True,
              lacks: Collection[Resource] = (), stop: asyncio.Event | None = None, lull: float = 0.0) -> None:
    """Schedule until told to `stop`, which leaves nothing half told, or until cancelled. `served` are the dialects
    whose kinds the cluster has, `lacks` those of their kinds that it has not; without `singles` pods of the default
    scheduler are somebody else's. Events wait for a `lull` where those who start the pods are on the same machine."""
    scheduler = Scheduler(client, clock, replace(settings, singles=singles), tuple(served), lull, lacks)
    async with asyncio.TaskGroup() as group:
        helping = [group.create_task(informer.run())
                   for informer in (*scheduler.mirror.informers, *scheduler.mirror.beside)]
        helping += [group.create_task(scheduler.hands.outbox.run()),
                    group.create_task(scheduler.mirror.learn_storage())]
        if VOLCANO in scheduler.served and VOLCANO_COMMANDS not in lacks:
            helping.append(group.create_task(Orders(client, clock).run()))
        working = group.create_task(scheduler.work(ready, group))
        await (stop or asyncio.Event()).wait()
        working.cancel()
        scheduler.hands.leave_volumes()
        await first(scheduler.hands.empty(), clock.sleep(GRACE))
        for task in helping:
            task.cancel()


class Scheduler:
    """Looks, decides, acts, for ever."""

    def __init__(self, client: Client, clock: Clock, settings: Settings, served: tuple[Dialect, ...],
                 lull: float = 0.0, lacks: Collection[Resource] = ()) -> None:
        self._clock = clock
        self._settings = settings
        self.served = served
        self._changed = asyncio.Event()
        self.mirror = Mirror(client, clock, served, settings.comeback, self._changed.set, lacks)
        self.mirror.snapshot.storage.disk = settings.disk
        self.hands = Hands(client, clock, served, self.mirror, self._changed.set, lull, lacks)

    async def work(self, ready: Callable[[], None], group: asyncio.TaskGroup) -> None:
        await self.hands.first_queues()
        for informer in self.mirror.informers:
            await informer.synced()
        await first(self.mirror.learned(), self._clock.sleep(STORAGE))
        ready()
        while True:
            await self._woken()
            self._changed.clear()
            await in_turns(self.mirror.fold(self._clock.now()))
            decision = await in_turns(slices(self.mirror.snapshot, self._clock.now(), self._settings))
            await in_turns(self.hands.begin(decision, group))
            # What is being done counts as done already. Waiting for it makes one decision of many changes; waiting
            # long would keep those waiting who came meanwhile.
            await first(self.hands.idle(), self._clock.sleep(LATEST))

    async def _woken(self) -> None:
        """Until something changes, or a moment comes at which the same state means something else."""
        next_moment = self._next_moment()
        if next_moment is None:
            await self._changed.wait()
            return
        await first(self._changed.wait(), self._clock.sleep_until(next_moment))

    def _next_moment(self) -> datetime | None:
        """When a claim ends, when a group has waited long enough to be let in or to have room kept for it, when it is
        to be said that it has waited for days, or when a pod has been there for too long."""
        now, snapshot = self._clock.now(), self.mirror.snapshot
        moments = [datetime.fromtimestamp(claim.until, UTC) for claim in snapshot.claims]
        for group in snapshot.groups.values():
            if group.created and group.phase in {"", PENDING, INQUEUE}:
                moments += [moment(group.created) + timedelta(seconds=patience)
                            for patience in (self._settings.patience, group.patience) if patience]
            if group.tried_since and group.phase in {PENDING, SCHEDULING}:
                moments.append(moment(group.tried_since) + TOO_LONG)
        if (end := next_end(snapshot, now)) is not None:
            moments.append(end)
        return min((each for each in moments if each > now), default=None)
