"""Short names for templates: the same template always gets the same one, so that making it twice is a conflict. Pure.

The letters are those that Kubernetes uses for generated names (no vowels, so no words). Its hash cannot be computed
outside Go, and nothing depends on it: whether two templates are the same is decided by comparing them.
"""

import zlib

import orjson

from trainmaster.api.meta import Json

LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def short_hash(value: Json, collisions: int | None = None) -> str:
    """Up to ten letters. `collisions` is how often the name was found taken by something else."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if collisions is not None:
        text += collisions.to_bytes(4, "little", signed=False)
    return "".join(LETTERS[ord(digit) % len(LETTERS)] for digit in str(zlib.crc32(text)))
