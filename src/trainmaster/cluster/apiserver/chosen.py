"""What the server makes up for a new object: its UID, and a name with the beginning that was asked for.

Neither is a secret, only unlike all others; so neither asks the system for its chance, which is a call for each.
"""

import random
from collections.abc import Callable

from trainmaster.cluster.apiserver import lifecycle

NAMES = 8                                 # that are tried
_CHANCE = random.Random()  # noqa: S311   seeded by the system


def name(prefix: str, taken: Callable[[str], bool]) -> str:
    """A free name with this beginning, or "" for none; the last of those that were tried, if all are taken."""
    prefix, found = prefix[:lifecycle.LONGEST_PREFIX], ""
    for _ in range(NAMES if prefix else 0):
        found = prefix + suffix()
        if not taken(found):
            break
    return found


def suffix() -> str:
    """What comes after the beginning."""
    return "".join(_CHANCE.choices(lifecycle.SUFFIX_SIGNS, k=lifecycle.SUFFIX_LENGTH))


def uid() -> str:
    """A UUID of version 4, as `uuid.uuid4` says it, in a quarter of the time."""
    signs = f"{_CHANCE.getrandbits(128):032x}"
    return f"{signs[:8]}-{signs[8:12]}-4{signs[13:16]}-{'89ab'[int(signs[16], 16) & 3]}{signs[17:20]}-{signs[20:]}"
