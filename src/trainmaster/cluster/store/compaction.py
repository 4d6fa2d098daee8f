"""Forgetting safely: which rows of the file nobody can ask for any more, and when to delete them.

A row is garbage once the change that replaced it has left the history window; the row of a deletion once it has left
the window itself. Garbage is kept in that order and deleted from the front, in small transactions between the batches
of writers: wherever a crash cuts, the rows that are left still tell the same present.
"""

import asyncio
from collections import deque
from collections.abc import Iterable

from trainmaster.cluster.store.records import Refused

WORTHWHILE = 500  # rows that justify a transaction of their own
AT_ONCE = 500  # rows per transaction: some ms
AT_ONCE_IN_NEED = 50  # when the disk is full and the log cannot grow


class Compaction:
    def __init__(self) -> None:
        self._garbage: deque[int] = deque()
        self._waiting: list[asyncio.Future[None]] = []
        self._limit = WORTHWHILE

    @property
    def due(self) -> bool:
        return bool(self._waiting) or len(self._garbage) >= self._limit

    @property
    def waited_for(self) -> bool:
        return bool(self._waiting)

    def add(self, garbage: Iterable[int]) -> None:
        self._garbage.extend(garbage)

    def hurry(self) -> None:
        """There is no room: delete what there is, be it little."""
        self._limit = 1

    def wait(self) -> asyncio.Future[None]:
        """Done when there is no garbage left."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        return done

    def take(self, *, in_need: bool) -> list[int]:
        """The rows to delete next."""
        count = min(len(self._garbage), AT_ONCE_IN_NEED if in_need else AT_ONCE)
        return [self._garbage.popleft() for _ in range(count)]

    def deleted(self, *, in_need: bool) -> None:
        self._limit = 1 if in_need else WORTHWHILE
        if not self._garbage:
            self._answer(None)

    def failed(self, garbage: Iterable[int], reason: str) -> None:
        """The rows are still there. They are tried again with the next garbage, not at once."""
        self._garbage.extendleft(reversed(list(garbage)))
        self._limit = len(self._garbage) + WORTHWHILE
        self._answer(Refused(reason))

    def _answer(self, error: Refused | None) -> None:
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            if done.done():
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
