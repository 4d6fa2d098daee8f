"""What runs beside each other goes on without each other."""

import asyncio

from trainmaster.runtime.supervision import kept_running
from trainmaster.testing.clock import VirtualClock


async def test_a_part_that_fails_is_started_again_and_the_others_go_on() -> None:
    clock = VirtualClock()
    lives: list[str] = []

    async def fails() -> None:
        lives.append("fails")
        raise RuntimeError("a bug")

    async def goes_on() -> None:
        lives.append("goes on")
        await clock.sleep(1000)

    parts = [asyncio.create_task(kept_running(work.__name__, work, clock)) for work in (fails, goes_on)]
    await clock.advance(seconds=3.5)
    for part in parts:
        part.cancel()

    assert (4, 1) == (lives.count("fails"), lives.count("goes on"))
