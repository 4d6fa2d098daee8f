"""What the training programs beside this file share: data that ships in a package, and how they say what they learned.

The data are scikit-learn's handwritten digits and irises, so that nothing is downloaded. Every replica learns from a
share of its own and is examined on what nobody has seen. Shown next to each program, since programs find neighbours.
"""

import hashlib
import os

# Replicas share one machine here, and each would take all its cores. Before numpy, which reads this once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn import datasets


def digits(me, everyone, held_back=297):
    """Images and labels of this replica's share, then those of the examination. An image is 64 numbers from 0 to 1."""
    return _shared(datasets.load_digits(), 16.0, me, everyone, held_back)


def irises(me, everyone, held_back=30):
    return _shared(datasets.load_iris(), 1.0, me, everyone, held_back)


def _shared(data, scale, me, everyone, held_back):
    order = np.random.default_rng(0).permutation(len(data.target))
    x, y = (data.data[order] / scale).astype(np.float32), data.target[order].astype(np.int64)
    # All shares are equally large: replicas that wait for each other in every step must take equally many.
    mine = slice(held_back + me, held_back + (len(y) - held_back) // everyone * everyone, everyone)
    return x[mine], y[mine], x[:held_back], y[:held_back]


def digest(parameters):
    """A few characters that are equal if and only if all parameters are, to the last bit."""
    found = hashlib.sha256()
    for one in parameters:
        found.update(one.encode() if isinstance(one, str) else np.ascontiguousarray(one).tobytes())
    return found.hexdigest()[:16]


def verdict(who, losses, parameters="", accuracy=None):
    """Print the last line and give the exit code: 0 if the loss fell."""
    ends = max(1, len(losses) // 5)
    first, last = float(np.mean(losses[:ends])), float(np.mean(losses[-ends:]))
    examined = f", test accuracy {accuracy:.3f}" if accuracy is not None else ""
    known = f", parameters {parameters}" if parameters else ""
    print(f"{who} done: loss {first:.4f} -> {last:.4f}{examined}{known}", flush=True)
    return 0 if last < first else 1
