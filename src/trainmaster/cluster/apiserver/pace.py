"""How much of the loop's time the streams may take, and how long a reader may leave one lying.

Telling fifty watchers of a change costs more than making it. When changes come fast, most of that is spent on handing
each of them over alone: so after a round of telling that took a while, the streams rest three times as long, and what
happens meanwhile goes out as one piece. A quarter of the time is theirs at most, the requests have the rest; a watcher
that is alone, or is told something now and then, never waits.

Rejected: a fixed delay, which is wrong for one watcher and for five hundred; a task or a timer per piece, which costs
as much as the piece.
"""

import asyncio
from collections.abc import Callable

# Seconds of telling that deserve a rest, how long it is compared to them, and at most.
ROUND = 0.001
SHARE = 3
LONGEST = 0.02


class Pace:
    """Shared by the streams of one server. Each calls `rest` before it puts a piece together, `told` after sending."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._turn = False                                 # somebody was told something in this turn of the loop
        self._resting: asyncio.Future[None] | None = None

    async def rest(self) -> None:
        if self._resting is not None:
            await asyncio.shield(self._resting)

    def told(self, took: float) -> None:
        """A piece was sent, which took so many seconds."""
        if took > LONGEST:      # it waited for its reader: that is nobody's work
            return
        self._spent += took
        if not self._turn:
            self._turn = True
            asyncio.get_running_loop().call_soon(self._turn_over)      # after all who were woken in this turn

    def _turn_over(self) -> None:
        self._turn = False
        spent, self._spent = self._spent, 0.0
        if spent < ROUND or self._resting is not None:
            return
        loop = asyncio.get_running_loop()
        self._resting = loop.create_future()
        loop.call_later(min(spent * SHARE, LONGEST), self._go_on)

    def _go_on(self) -> None:
        resting, self._resting = self._resting, None
        if resting is not None and not resting.done():
            resting.set_result(None)


class Patience:
    """Ends a connection whose reader takes nothing for a while. One timer per stream, not one per piece."""

    def __init__(self, seconds: float, give_up: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._give_up = give_up
        self._since = 0.0                                  # when the piece was sent that is not taken yet; 0: none
        self._timer = self._loop.call_later(seconds, self._look)

    def begin(self) -> None:
        self._since = self._loop.time()

    def end(self) -> None:
        self._since = 0.0

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        since = self._since or now
        if now - since >= self._seconds:
            self._give_up()
        else:
            self._timer = self._loop.call_at(since + self._seconds, self._look)
