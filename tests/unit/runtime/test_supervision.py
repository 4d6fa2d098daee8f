"""What runs beside each other goes on without each other."""

import asyncio
from itertools import pairwise

from trainmaster.runtime.supervision import LONGEST_PAUSE, kept_running
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
    await clock.advance(seconds=7.5)
    for part in parts:
        part.cancel()

    assert (4, 1) == (lives.count("fails"), lives.count("goes on"))


async def test_a_part_that_fails_each_time_is_tried_ever_more_slowly_until_it_has_lived_for_a_while() -> None:
    clock = VirtualClock()
    began: list[float] = []

    async def fails() -> None:
        began.append(clock.monotonic())
        if len(began) == 10:
            await clock.sleep(LONGEST_PAUSE + 1)
        raise RuntimeError("a bug")

    part = asyncio.create_task(kept_running("fails", fails, clock))
    await clock.advance(seconds=500)
    part.cancel()

    pauses = [later - earlier for earlier, later in pairwise(began)]
    assert [1, 2, 4, 8, 16, 32, 60, 60, 60, LONGEST_PAUSE + 1 + 1] == pauses[:10]
