"""Where chance comes from: a seed that is printed, and that `SEED=... pytest ...` plays again."""

import os
import random


def seeded(name: str = "") -> random.Random:
    """Chance for one test; the seed is in what a failed test prints."""
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed}")
    return random.Random(f"{seed}/{name}" if name else seed)
