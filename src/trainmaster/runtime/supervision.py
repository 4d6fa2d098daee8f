"""Parts of a process that run beside each other until the process ends: a bug in one takes no other along.

It is told and the part is started again, a moment later; one that fails each time ever more slowly, or it would fill
the log. Ending the process instead was rejected: the API server would go with a controller of no importance.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0     # seconds; a part that lived longer than the longest begins with the first

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
log = logger("supervision")


async def kept_running(name: str, work: Work, clock: Clock) -> None:
    """Run a part until cancelled, however often it ends."""
    pause = FIRST_PAUSE
    while True:
        began = clock.monotonic()
        try:
            await work()
        except Exception:  # this loop owns the part
            log.exception("a part failed and is started again", part=name)
        if clock.monotonic() - began > LONGEST_PAUSE:
            pause = FIRST_PAUSE
        await clock.sleep(pause)
        pause = min(LONGEST_PAUSE, 2 * pause)
