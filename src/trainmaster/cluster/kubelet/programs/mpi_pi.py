#!/usr/bin/env python
"""π by throwing darts: every rank throws its own, and rank 0 says what all of them found."""

import random
import sys

from mpi4py import MPI

DARTS = 200_000

world = MPI.COMM_WORLD
chance = random.Random(world.rank)
hits = sum(chance.random() ** 2 + chance.random() ** 2 <= 1 for _ in range(DARTS))
print(f"rank {world.rank} of {world.size} on {MPI.Get_processor_name()}", flush=True)
total = world.reduce(hits, MPI.SUM, 0)
if world.rank == 0:
    pi = 4 * total / (DARTS * world.size)
    print(f"pi is approximately {pi:.5f}", flush=True)
    sys.exit(0 if abs(pi - 3.14159) < 0.02 else 1)
