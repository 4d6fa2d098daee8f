"""Which key is worked on next: each once at a time, in the order they came, later ones when their time has come.

A key is queued once however often it is added, so that the queue is bounded by the number of objects, and a key that
is added all the time stands behind all others each time. There is no task of its own: one of those who wait for a key
also waits for the next timer, so that nothing outlives its owner and nothing polls.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from trainmaster.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)
T = TypeVar("T", float, datetime)

FIRST_DELAY, LONGEST_DELAY = 0.005, 1000.0


class Onlooker(Protocol):
    """Who counts what happens in a queue."""

    def added(self) -> None: ...

    def retried(self) -> None: ...

    def taken(self, waited: float) -> None: ...

    def done(self, worked: float) -> None: ...


class Workqueue(Generic[K]):
    """Keys to be worked on. Not for use from other threads."""

    def __init__(self, clock: Clock, onlooker: Onlooker | None = None) -> None:
        self._now = clock.monotonic
        self._onlooker = onlooker
        self._ready: deque[K] = deque()
        self._queued: dict[K, float] = {}     # since when
        self._working: dict[K, float] = {}    # since when
        self._again: dict[K, float] = {}      # added while in work, when first
        self._attempts: dict[K, int] = {}
        # Two time lines that never mix: moments, which follow the wall clock, and durations, which do not.
        self._moments: _Timers[K, datetime] = _Timers(clock.now, clock.sleep_until)
        self._delays: _Timers[K, float] = _Timers(clock.monotonic, lambda due: clock.sleep(due - clock.monotonic()))
        self._waiting: list[asyncio.Future[None]] = []
        self._timekeeper: asyncio.Future[None] | None = None

    def add(self, key: K) -> None:
        """Queue a key now. One that is in work is queued when it is done."""
        if key in self._queued or key in self._again:
            return
        if self._onlooker is not None:
            self._onlooker.added()
        if key in self._working:
            self._again[key] = self._now()
        else:
            self._append(key, self._now())

    def add_at(self, key: K, moment: datetime) -> None:
        """Queue a key at a moment. Of several moments the earliest counts."""
        if self._moments.set(key, moment):
            self._wake_timekeeper()

    def retry(self, key: K, at_least: float = 0.0) -> None:
        """Queue a key after a delay that doubles with each retry since the last `forget`."""
        if self._onlooker is not None:
            self._onlooker.retried()
        attempt = self._attempts[key] = self._attempts.get(key, 0) + 1
        delay = max(at_least, min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(attempt - 1, 30)))
        if self._delays.set(key, self._delays.now() + delay):
            self._wake_timekeeper()

    def attempts(self, key: K) -> int:
        """How often a key was retried since the last `forget`."""
        return self._attempts.get(key, 0)

    def forget(self, key: K) -> None:
        """Start over with the delays of `retry`: the key was worked on with success, or is gone."""
        self._attempts.pop(key, None)

    async def get(self) -> K:
        """The next key, which is then in work until `done`."""
        while True:
            for key in [*self._moments.due(), *self._delays.due()]:
                self.add(key)
            if self._ready:
                key = self._ready.popleft()
                now = self._working[key] = self._now()
                since = self._queued.pop(key)
                if self._onlooker is not None:
                    self._onlooker.taken(now - since)
                if self._timekeeper is None:
                    self._wake()      # we may have been the one who watched the timers
                return key
            await self._wait()

    def done(self, key: K) -> None:
        """The work on a key is over, well or not."""
        since = self._working.pop(key, None)
        if self._onlooker is not None and since is not None:
            self._onlooker.done(self._now() - since)
        if key in self._again:
            self._append(key, self._again.pop(key))

    def in_work(self) -> list[float]:
        """For how long each of the keys that are worked on has been."""
        now = self._now()
        return [now - since for since in self._working.values()]

    def __len__(self) -> int:
        """How many keys could be worked on now, if there were workers."""
        return len(self._ready)

    def _append(self, key: K, since: float) -> None:
        self._queued[key] = since
        self._ready.append(key)
        self._wake()

    def _wake(self) -> None:
        """Let one of those who wait look again; rather not the timekeeper, who would have to hand over."""
        idle = [waiter for waiter in self._waiting if not waiter.done()]
        if idle:
            next((waiter for waiter in idle if waiter is not self._timekeeper), idle[0]).set_result(None)

    def _wake_timekeeper(self) -> None:
        if self._timekeeper is None:
            self._wake()
        elif not self._timekeeper.done():
            self._timekeeper.set_result(None)

    async def _wait(self) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        try:
            if self._timekeeper is None and (self._moments or self._delays):
                self._timekeeper = woken
                await self._watch_timers(woken)
            else:
                await woken
        except asyncio.CancelledError:
            self._leave(woken)
            self._wake()    # what we were woken for, or the timers, are another's now
            raise
        self._leave(woken)

    def _leave(self, woken: asyncio.Future[None]) -> None:
        self._waiting.remove(woken)
        if self._timekeeper is woken:
            self._timekeeper = None

    async def _watch_timers(self, woken: asyncio.Future[None]) -> None:
        sleepers = [asyncio.ensure_future(timers.sleep()) for timers in (self._moments, self._delays) if timers]
        try:
            await asyncio.wait([woken, *sleepers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for sleeper in sleepers:
                sleeper.cancel()


@dataclass(slots=True)
class _Timers(Generic[K, T]):
    """Keys by the time they are due, the earliest of each."""

    now: Callable[[], T]
    sleep_until: Callable[[T], Awaitable[None]]
    _due: dict[K, T] = field(default_factory=dict)
    _heap: list[tuple[T, int, K]] = field(default_factory=list)   # may hold later times of a key, which do not count
    _count: int = 0
    _slept: T | None = None    # as far as we slept; a clock that wakes a moment too early must not make us spin

    def __bool__(self) -> bool:
        return bool(self._due)

    def set(self, key: K, due: T) -> bool:
        """Note a time; whether the next timer to fire changed."""
        if key in self._due and self._due[key] <= due:
            return False
        self._due[key] = due
        self._count += 1
        heappush(self._heap, (due, self._count, key))
        return self._heap[0][2] is key

    def due(self) -> list[K]:
        """Take out the keys whose time has come."""
        now, found = self.now(), []
        if self._slept is not None:
            now, self._slept = max(now, self._slept), None
        while self._heap and (self._heap[0][0] <= now or not self._counts(self._heap[0])):
            entry = heappop(self._heap)
            if self._counts(entry):
                del self._due[entry[2]]
                found.append(entry[2])
        return found

    async def sleep(self) -> None:
        due = self._heap[0][0]
        await self.sleep_until(due)
        self._slept = due

    def _counts(self, entry: tuple[T, int, K]) -> bool:
        return self._due.get(entry[2]) == entry[0]
