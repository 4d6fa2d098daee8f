"""Parts of a process that run beside each other until the process ends: a bug in one takes no other along.

It is told and the part is started again, a moment later. Ending the process instead was rejected: the API server would
go with a controller of no importance.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

RESTART_SECONDS = 1.0

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
log = logger("supervision")


async def kept_running(name: str, work: Work, clock: Clock) -> None:
    """Run a part until cancelled, however often it ends."""
    while True:
        try:
            await work()
        except Exception:  # this loop owns the part
            log.exception("a part failed and is started again", part=name)
        await clock.sleep(RESTART_SECONDS)
