"""Time as an argument. The real clock is here; tests bring a virtual one (`testing.clock`)."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Moments are for storing and may jump; durations are measured on the monotonic side. Never subtract across."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...

    async def sleep_until(self, moment: datetime) -> None: ...


class RealClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    async def sleep_until(self, moment: datetime) -> None:
        # In steps of a minute, so that a machine that slept or a clock that was set wakes us late by no more than that.
        while (left := (moment - self.now()).total_seconds()) > 0:  # noqa: ASYNC110  nothing signals a clock change
            await asyncio.sleep(min(left, 60.0))
