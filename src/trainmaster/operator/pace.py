"""How long to wait for more news about a job before looking at it.

News about the pods of a job comes in bursts. Waiting a moment shows a burst as one change: one status instead of one
for each pod, and what ends together is judged together. How long a moment is depends on the server: the slower it
answers, the further apart the news of one burst come, and the more it helps to ask less of it. A fixed moment was
rejected: what is long enough for a busy server would be felt on an idle one.

The same holds for writing: while the server is busy, what is not the end of a job is written once in a moment at most,
and mere counts of replicas, which nobody acts on, once in several.
"""

from collections import OrderedDict
from datetime import timedelta

from trainmaster.runtime.clock import Clock

NOW = timedelta()
SHORTEST = timedelta(milliseconds=20)   # shorter than anybody notices
LONGEST = timedelta(milliseconds=300)
ANSWERS = 5                             # a moment is as long as so many answers take
FOR_COUNTS = 4                          # moments that a change of counts alone waits for more
WEIGHT = 0.2                            # of the newest answer in the average
REMEMBERED = 10_000                     # jobs whose last write is known; of others it may be written again


class Pace:
    """The moment, after what was measured lately."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._last: OrderedDict[str, float] = OrderedDict()     # by UID: the last write, or when one was due first

    def answered(self, seconds: float) -> None:
        """The server took so long to answer a write, our own waiting for our turn included."""
        self._seconds += WEIGHT * (seconds - self._seconds)

    @property
    def moment(self) -> timedelta:
        return min(LONGEST, max(SHORTEST, timedelta(seconds=ANSWERS * self._seconds)))

    def until_due(self, uid: str, clock: Clock, *, counts: bool = False) -> timedelta:
        """How long a status that is not the end must wait. The first time is the beginning of the wait."""
        moment = self.moment
        if moment <= SHORTEST:
            return NOW
        last = self._last.get(uid)
        if last is None:
            self.wrote(uid, clock)
            return moment
        wait = moment * FOR_COUNTS if counts else moment
        return max(NOW, wait - timedelta(seconds=clock.monotonic() - last))

    def wrote(self, uid: str, clock: Clock) -> None:
        self._last[uid] = clock.monotonic()
        self._last.move_to_end(uid)
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
