"""Waiting for what a real server does when it comes to it, and of which it tells nobody."""

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE = 60.0
LOOK_EVERY = 0.05


async def until(holds: Callable[[], Awaitable[object]], what: str) -> None:
    """Ask again and again until it holds; `what` is said of it when it never does."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not await holds():  # noqa: ASYNC110  nobody tells
                await asyncio.sleep(LOOK_EVERY)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE:.0f} seconds: {what}") from None
