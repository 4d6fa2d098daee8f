"""The token bucket: a burst at once, then a steady rate, in order."""

import asyncio

import pytest

from trainmaster.kube.limits import Limits
from trainmaster.testing.clock import VirtualClock


async def admitted(limits: Limits, clock: VirtualClock, count: int) -> list[float]:
    """When each of `count` requests that come at once is let through."""
    times: list[float] = []

    async def ask() -> None:
        await limits.admit()
        times.append(round(clock.monotonic(), 3))

    tasks = [asyncio.create_task(ask()) for _ in range(count)]
    await clock.advance(seconds=100)
    await asyncio.gather(*tasks)
    return times


@pytest.mark.parametrize(
    ("rate", "burst", "expected"),
    [
        pytest.param(0, 1, [0, 0, 0, 0], id="no rate: no limit"),
        pytest.param(2, 1, [0, 0.5, 1.0, 1.5], id="a steady rate"),
        pytest.param(2, 3, [0, 0, 0, 0.5], id="a burst, then the rate"),
    ],
)
async def test_when_requests_are_let_through(rate: float, burst: int, expected: list[float]) -> None:
    clock = VirtualClock()

    assert expected == await admitted(Limits(rate, burst, clock=clock), clock, 4)


async def test_the_bucket_fills_while_nobody_asks_but_not_above_the_burst() -> None:
    clock = VirtualClock()
    limits = Limits(2, 3, clock=clock)
    await admitted(limits, clock, 4)
    start = clock.monotonic()

    assert [0, 0, 0, 0.5, 1.0] == [round(second - start, 3) for second in await admitted(limits, clock, 5)]
