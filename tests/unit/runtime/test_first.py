"""Whichever comes first."""

import asyncio

import pytest

from trainmaster.runtime.first import first
from trainmaster.testing.clock import VirtualClock


@pytest.mark.parametrize(("news_after", "passed"), [
    pytest.param(1.0, 1.0, id="the news"),
    pytest.param(9.0, 5.0, id="the time"),
])
async def test_what_comes_first_ends_the_waiting(news_after: float, passed: float) -> None:
    clock, news = VirtualClock(), asyncio.Event()
    began = clock.monotonic()
    waiting = asyncio.create_task(first(news.wait(), clock.sleep(5.0)))
    await clock.settle()
    await clock.advance(seconds=min(news_after, 5.0))
    if news_after < 5.0:
        news.set()
    await waiting

    assert passed == clock.monotonic() - began


async def test_nothing_goes_on_when_the_waiting_is_given_up() -> None:
    ended = []

    async def long() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("given up")

    waiting = asyncio.create_task(first(long(), long()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.sleep(0)

    assert ["given up", "given up"] == ended
