"""Waiting for whichever comes first: news or the time, an end or a sign. What did not come is given up, always."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first(*waits: Coroutine[Any, Any, object]) -> None:
    """Return when one of these has ended, and cancel the rest, also when we are cancelled ourselves."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
