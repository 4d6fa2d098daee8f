"""How long to wait for more news about a job before looking at it.

News about the pods of a job comes in bursts. Waiting a moment shows a burst as one change: one status instead of one
for each pod, and what ends together is judged together. How long a moment is depends on the server: the slower it
answers, the further apart the news of one burst come, and the more it helps to ask less of it. A fixed moment was
rejected: what is long enough for a busy server would be felt on an idle one.
"""

from datetime import timedelta

SHORTEST = timedelta(milliseconds=20)   # shorter than anybody notices
LONGEST = timedelta(seconds=1)
ANSWERS = 5                             # a moment is as long as so many answers take
WEIGHT = 0.2                            # of the newest answer in the average


class Pace:
    """The moment, after what was measured lately."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def answered(self, seconds: float) -> None:
        """The server took so long to answer a write, our own waiting for our turn included."""
        self._seconds += WEIGHT * (seconds - self._seconds)

    @property
    def moment(self) -> timedelta:
        return min(LONGEST, max(SHORTEST, timedelta(seconds=ANSWERS * self._seconds)))
