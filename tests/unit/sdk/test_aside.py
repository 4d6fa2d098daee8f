"""An asynchronous stream read from plain code: everything in order, failures too, and nothing left running."""

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from trainmaster.sdk.aside import HELD, aside


async def numbers(most: int) -> AsyncGenerator[int, None]:
    for number in range(most):
        yield number


def test_everything_comes_in_order_also_more_than_is_held() -> None:
    assert list(range(3 * HELD)) == list(aside(lambda: numbers(3 * HELD)))


def test_what_goes_wrong_is_raised_where_it_is_read() -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise ValueError("no more")

    reading = aside(broken)
    assert 1 == next(reading)
    with pytest.raises(ValueError, match="no more"):
        next(reading)


@pytest.mark.parametrize("most", [pytest.param(1, id="while it waits"), pytest.param(5 * HELD, id="while it is full")])
def test_leaving_early_stops_it(most: int) -> None:
    ended = threading.Event()

    async def endless() -> AsyncGenerator[int, None]:
        try:
            for number in range(most):
                yield number
            await asyncio.Event().wait()
        finally:
            ended.set()

    reading = aside(endless)
    assert 0 == next(reading)
    reading.close()

    assert ended.wait(60)
    assert "trainmaster-stream" not in [thread.name for thread in threading.enumerate()]


async def test_it_can_be_read_where_a_loop_runs_already() -> None:
    assert [0, 1] == list(aside(lambda: numbers(2)))
