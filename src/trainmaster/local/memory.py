"""How the control plane's process treats memory, set for a server that lives long and holds much.

Python looks for rings of garbage among all containers that are not long known to it: a tenth of a second for some ten
thousand objects of the API, in the middle of somebody's request. These hold no rings and go by themselves. So the young
are looked at twenty thousand at a time, which takes a few milliseconds, and what outlives that look is put aside, as is
what start-up made. What becomes a ring of garbage later than that, such as an old connection, waits for the one long
look in an hour. Rejected: never to look at the old again, which loses those for good.

The C library keeps what large answers were made in, scattered between what lives on. From a size on it is told to ask
the system for such memory and give it back. That costs three calls and a fault per page, so the size is above what
every request needs for a moment: uvloop reads TLS into 256 KiB at a time.
"""

import gc
from collections.abc import Mapping
from typing import Any

from trainmaster.runtime.clock import Clock

# Containers made and not freed before the youngest are looked at; the older ones are not there to be looked at.
THRESHOLDS = (20_000, 1_000_000, 1_000_000)
LONG_LOOK_SECONDS = 3600.0

# For the environment of the process: the C library reads it before anything of ours runs. One pool for all threads: the
# second thread only writes what the first one made.
ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(512 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(1024 * 1024),
}


def settle() -> None:
    """Call when everything is loaded: what is there now is there to stay."""
    look_at_all()
    gc.set_threshold(*THRESHOLDS)
    if put_aside not in gc.callbacks:
        gc.callbacks.append(put_aside)


def look_at_all() -> None:
    gc.unfreeze()
    gc.collect()
    gc.freeze()


async def tend(clock: Clock) -> None:
    """Take a long look every now and then, until cancelled."""
    while True:
        await clock.sleep(LONG_LOOK_SECONDS)
        look_at_all()


def put_aside(phase: str, _found: Mapping[str, Any]) -> None:
    if phase == "stop":
        gc.freeze()
