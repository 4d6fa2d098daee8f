"""How the control plane's process treats memory, set for a server that lives long and holds much.

Python looks through all containers again whenever their number has grown by a quarter. What is loaded at start never
goes, and objects of the API hold no cycles, so that look costs a tenth of a second for nothing, in the middle of
somebody's request. What start-up made is taken out of it, and the rest is looked at less often.

The C library keeps what large answers were made in, scattered between what lives on. From a size on it is told to ask
the system for such memory and give it back.
"""

import gc

# Containers made and not freed before the youngest are looked at, and how many such looks before the next older ones.
THRESHOLDS = (10_000, 20, 50)

# For the environment of the process: the C library reads it before anything of ours runs. One pool for all threads: the
# second thread only writes what the first one made.
ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(128 * 1024),
    "MALLOC_TRIM_THRESHOLD_": str(1024 * 1024),
}


def settle() -> None:
    """Call when everything is loaded: what is there now is there to stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
