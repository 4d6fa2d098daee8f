"""How fast we may ask: a rate of our own, and the server's wish when it says 429.

A request that was answered 429 was not carried out, so that any method may be sent again. The wait is per request:
others go on, as the server counts by flow and may well take them.
"""

from typing import Protocol

from trainmaster.kube.errors import TooManyRequests


class Timer(Protocol):
    """The part of `runtime.clock.Clock` that is needed here."""

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class LoopTimer:
    """The event loop's own time. Loaded when needed: those who have no loop need no asyncio."""

    def monotonic(self) -> float:
        import asyncio

        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)


class Limits:
    """A token bucket of `rate` requests a second and `burst` at once; a rate of 0 does not limit.

    `attempts` bounds how often one request is sent when the server keeps answering 429 with a Retry-After of at most
    `patience` seconds; a longer wait is the caller's to plan.
    """

    def __init__(
        self, rate: float = 0, burst: int = 1, *, clock: Timer | None = None, attempts: int = 5, patience: float = 30.0
    ) -> None:
        self._interval = 1 / rate if rate > 0 else 0.0
        self._slack = self._interval * max(0, burst - 1)
        self._clock = clock or LoopTimer()
        self._attempts = attempts
        self._patience = patience
        self._next: float | None = None   # when the bucket would be full again, seen from the emptiest it has been

    async def admit(self) -> None:
        """Return when the next request may be sent. Waiters are served in the order they came."""
        if not self._interval:
            return
        now = self._clock.monotonic()
        turn = max(now, self._next if self._next is not None else now)
        self._next = turn + self._interval
        wait = turn - self._slack - now
        if wait > 0:
            await self._clock.sleep(wait)

    async def wait_as_asked(self, error: TooManyRequests, attempt: int) -> bool:
        """Wait as the server asked after the `attempt`-th try (from 1); False if it is not to be tried again."""
        # Only the header is the server's overload protection; a 429 without it (an eviction that a disruption budget
        # forbids) is an answer for the caller.
        seconds = error.retry_after_header
        if seconds is None or seconds > self._patience or attempt >= self._attempts:
            return False
        await self._clock.sleep(seconds)
        return True
