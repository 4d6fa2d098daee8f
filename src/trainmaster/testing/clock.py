"""Virtual time, which moves only when a test says so and only after everything that can run has run.

`settle()` lets the event loop work until nothing is ready; `advance()` then moves time, stopping at every sleeper on
the way, earliest first, and settling after each, so that what one of them does is seen by the next at the right
moment.

What it sees: callbacks and tasks that are ready in this loop, sockets and pipes of this process that can be read now,
and whatever outside work it was told of by `outside()`. What it cannot see: work in threads and other processes,
bytes that are still under way in the kernel, timers of the loop itself (`asyncio.sleep`, `call_later`,
`asyncio.timeout`). Code that sleeps by the loop instead of the Clock is real time to a test; give it the Clock, or
wait for its result instead.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from typing import TypeVar

T = TypeVar("T")

NOON = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
SECOND = 1_000_000
# Rounds of the loop in a row with nothing ready. Between two of them the loop asks the kernel for input: more than one,
# so that both ends of a connection inside this process get their turn.
QUIET_ROUNDS = 4
# Far more rounds than any test needs: tasks that wake each other for ever would otherwise hang it without a word.
MOST_ROUNDS = 1_000_000


class NeverQuiet(AssertionError):
    """Something runs all the time, so that no moment can be called settled."""


class VirtualClock:
    """A Clock for tests. Starts at noon; both sides of time move together unless `jump` sets the wall clock alone."""

    def __init__(self, now: datetime = NOON) -> None:
        self._start = now
        self._elapsed = 0    # whole microseconds, as a datetime has them: fractions would make sleepers miss each other
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0
        self._outside: list[Callable[[], bool]] = []
        self._jumped: list[asyncio.Future[None]] = []

    def now(self) -> datetime:
        return self._start + timedelta(microseconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed / SECOND

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        self._count += 1
        heappush(self._sleepers, (self._elapsed + max(1, round(seconds * SECOND)), self._count, woken))
        await woken

    async def sleep_until(self, moment: datetime) -> None:
        while (left := (moment - self.now()).total_seconds()) > 0:
            # A jump of the wall clock has to be noticed, as the real clock does within a minute.
            jumped = asyncio.get_running_loop().create_future()
            self._jumped.append(jumped)
            asleep = asyncio.ensure_future(self.sleep(left))
            try:
                await asyncio.wait([jumped, asleep], return_when=asyncio.FIRST_COMPLETED)
            finally:
                asleep.cancel()
                self._jumped.remove(jumped)

    def next_wake(self) -> float | None:
        """Seconds until the earliest sleeper is due, None if nobody sleeps."""
        self._drop_cancelled()
        return (self._sleepers[0][0] - self._elapsed) / SECOND if self._sleepers else None

    def outside(self, busy: Callable[[], bool]) -> None:
        """Tell of work that the loop cannot see; nothing is settled while `busy()` is true."""
        self._outside.append(busy)

    def jump(self, change: timedelta) -> None:
        """Set the wall clock, as an administrator or a time server does. Durations are not touched."""
        self._start += change
        for jumped in self._jumped:
            if not jumped.done():
                jumped.set_result(None)

    async def settle(self) -> None:
        """Return when nothing can run without time moving."""
        loop = asyncio.get_running_loop()
        quiet = 0
        for _ in range(MOST_ROUNDS):
            await asyncio.sleep(0)
            if any(busy() for busy in self._outside):
                await asyncio.sleep(0.0005)    # real, and short: the work is in a thread or another process
                quiet = 0
            elif _ready(loop):
                quiet = 0
            else:
                quiet += 1
                if quiet >= QUIET_ROUNDS:
                    return
        raise NeverQuiet(f"after {MOST_ROUNDS} rounds something still runs; is there a loop without a wait?")

    async def advance(self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0) -> None:
        """Move time on, waking every sleeper on the way at its own moment. Settled before and after."""
        await self.settle()
        end = self._elapsed + round((seconds + 60 * minutes + 3600 * hours) * SECOND)
        while self.next_wake() is not None and self._sleepers[0][0] <= end:
            await self._wake_next()
        self._elapsed = end
        await self.settle()

    async def run(self, wanted: Awaitable[T], *, within: float = 86_400.0) -> T:
        """The result of something, with time moving from sleeper to sleeper whenever nothing can run.

        Raises TimeoutError if it is not there `within` seconds of virtual time, or if nobody sleeps any more.
        """
        task = asyncio.ensure_future(wanted)
        end = self.monotonic() + within
        try:
            await self.settle()
            while not task.done():
                wait = self.next_wake()
                if wait is None or self.monotonic() + wait > end:
                    why = "nothing is left that could bring it" if wait is None else f"{within} seconds are over"
                    raise TimeoutError(f"waited in vain: {why}")
                await self._wake_next()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _wake_next(self) -> None:
        """Go to the earliest sleeper and wake all that are due with it."""
        due = self._sleepers[0][0]
        self._elapsed = due
        while self._sleepers and self._sleepers[0][0] <= due:
            _, _, woken = heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
        await self.settle()

    def _drop_cancelled(self) -> None:
        while self._sleepers and self._sleepers[0][2].done():
            heappop(self._sleepers)


def _ready(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a callback waits for its turn.

    asyncio offers no public way to ask. A loop that is not its own (uvloop) would need one that it has; we use none.
    """
    return bool(loop._ready)  # type: ignore[attr-defined]  # no public way to ask
