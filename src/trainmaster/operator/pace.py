"""How long to wait for more news about a job before looking at it.

News about the pods of a job comes in bursts. Waiting a moment shows a burst as one change: one status instead of one
for each pod, and what ends together is judged together. How long a moment is depends on the server: the slower it
answers, the further apart the news of one burst come, and the more it helps to ask less of it. A fixed moment was
rejected: what is long enough for a busy server would be felt on an idle one.

The same holds for writing: while the server is busy, what is not the end of a job is written once in a moment at most.
Slight changes (counts of replicas, which nobody acts on) of many jobs wait as long as writing them one after the other
would take: by then most jobs have something better to say. One job among few is never delayed for that.
"""

from collections import OrderedDict
from datetime import timedelta

from trainmaster.runtime.clock import Clock

NOW = timedelta()
SHORTEST = timedelta(milliseconds=20)   # shorter than anybody notices
LONGEST = timedelta(milliseconds=300)
ANSWERS = 5                             # a moment is as long as so many answers take
FEW = 20                                # jobs that change at the same time without waiting for each other
LONGEST_TURN = timedelta(seconds=15)    # that a slight change waits for those of other jobs
WEIGHT = 0.2                            # of the newest answer in the average
REMEMBERED = 10_000                     # jobs whose last write is known; of others it may be written again


class Pace:
    """The moment, after what was measured lately."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._last: OrderedDict[str, float] = OrderedDict()     # by UID: the last write, or when one was due first
        self._slight: OrderedDict[str, float] = OrderedDict()  # by UID: since when a slight change waits

    def answered(self, seconds: float) -> None:
        """The server took so long to answer a write, our own waiting for our turn included."""
        self._seconds += WEIGHT * (seconds - self._seconds)

    @property
    def moment(self) -> timedelta:
        return min(LONGEST, max(SHORTEST, timedelta(seconds=ANSWERS * self._seconds)))

    def until_due(self, uid: str, clock: Clock, *, slight: bool = False) -> timedelta:
        """How long a status that is not the end must wait. The first time is the beginning of the wait.

        A slight one waits from its own first sight on, too, however long ago the last write was: the next news is
        likely the condition that matters.
        """
        if self.moment <= SHORTEST:
            return NOW
        wait = _left(self._last, uid, clock, self.moment)
        return max(wait, _left(self._slight, uid, clock, self._turn(uid))) if slight else wait

    def _turn(self, uid: str) -> timedelta:
        """How long the others who have a slight change now, but for a few, take to write it one after the other."""
        others = max(0, len(self._slight) - (uid in self._slight) - FEW)
        return min(LONGEST_TURN, timedelta(seconds=others * self._seconds))

    def settled(self, uid: str) -> None:
        """There is nothing to write any more, or nobody to write it about."""
        self._slight.pop(uid, None)

    def wrote(self, uid: str, clock: Clock) -> None:
        _note(self._last, uid, clock)
        self.settled(uid)


def _left(began: OrderedDict[str, float], uid: str, clock: Clock, wait: timedelta) -> timedelta:
    """How much of a wait is left that began as noted, or begins now."""
    if uid not in began:
        _note(began, uid, clock)
    return max(NOW, wait - timedelta(seconds=clock.monotonic() - began[uid]))


def _note(moments: OrderedDict[str, float], uid: str, clock: Clock) -> None:
    moments[uid] = clock.monotonic()
    moments.move_to_end(uid)
    while len(moments) > REMEMBERED:
        moments.popitem(last=False)
