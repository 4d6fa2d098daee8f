"""Events that are written beside the work, so that nobody waits for a courtesy.

A job of 500 replicas has a thousand Events to tell and one job to start. Written in line they would be half of its
requests and come first; here a few at a time go out while the work has the rest of the connections, and all the others
when it is done. Where all share one machine even those few are in the way, so a box may be told to wait for a lull:
until nothing was put in for a moment, or somebody has waited long enough. Nothing is dropped: a full box makes its
owner wait, a server in trouble is asked again, and a graceful stop empties the box first. Only a process that is killed
takes what is in it along, as it would have taken the next line of a program that writes in line.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.meta import Object, metadata, name_of
from trainmaster.kube.errors import ApiError, KubeError, is_transient
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger
from trainmaster.runtime.recorder import Recorder

AT_ONCE = 2
ROOM = 20_000
# With the doubling delays a server may be away for about ten minutes before an Event is given up.
ATTEMPTS = 12
FIRST_DELAY, LONGEST_DELAY = 0.25, 120.0
# For those who share a machine with what they start: how long nothing must have been put in, and the longest wait.
LULL, LONGEST_WAIT = 0.1, 1.0
REFERENCE = ("namespace", "name", "uid", "resourceVersion")

log = logger("outbox")


@dataclass(frozen=True, slots=True)
class _Letter:
    recorder: Recorder
    about: Object
    type: str
    reason: str
    message: str
    moment: datetime
    arrived: float       # on the monotonic clock


class Outbox:
    """Takes Events and writes them in the background, for as long as `run` runs.

    Through a `gate` that the work uses as well, they line up behind what it has to do, and have all of it afterwards.
    """

    def __init__(self, clock: Clock, *, at_once: int = AT_ONCE, room: int = ROOM, lull: float = 0.0,
                 gate: asyncio.Semaphore | None = None) -> None:
        self._clock = clock
        self._gate: AbstractAsyncContextManager[None] = gate or nullcontext()
        self._at_once = at_once
        self._lull = lull
        self._latest = 0.0           # when something was last put in
        self._letters: asyncio.Queue[_Letter] = asyncio.Queue(room)
        self.written = 0
        self.lost = 0

    async def put(self, recorder: Recorder, about: Object, type: str, reason: str, message: str) -> None:  # noqa: A002
        """Tell about an object, as of now. Waits only while the box is full."""
        await self._letters.put(self._letter(recorder, about, type, reason, message))

    def offer(self, recorder: Recorder, about: Object, type: str, reason: str, message: str) -> bool:  # noqa: A002
        """The same for somebody who cannot wait; False when the box is full."""
        try:
            self._letters.put_nowait(self._letter(recorder, about, type, reason, message))
        except asyncio.QueueFull:
            return False
        return True

    def _letter(self, recorder: Recorder, about: Object, type: str, reason: str, message: str) -> _Letter:  # noqa: A002
        known = metadata(about)
        told_of: Object = {
            "apiVersion": about.get("apiVersion"), "kind": about.get("kind"),
            "metadata": {name: known[name] for name in REFERENCE if name in known},
        }
        self._latest = self._clock.monotonic()
        return _Letter(recorder, told_of, type, reason, message, self._clock.now(), self._latest)

    def __len__(self) -> int:
        return self._letters.qsize()

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._at_once):
                group.create_task(self._write())

    async def emptied(self) -> None:
        """Return once everything that was put in is written or given up, without waiting for a better moment."""
        self._lull = 0.0
        await self._letters.join()

    async def _write(self) -> None:
        while True:
            letter = await self._letters.get()
            try:
                await self._quiet(letter.arrived)
                await self._deliver(letter)
            finally:
                self._letters.task_done()

    async def _quiet(self, arrived: float) -> None:
        while self._lull:
            due = min(self._latest + self._lull, arrived + LONGEST_WAIT)
            left = due - self._clock.monotonic()
            if left <= 0:
                return
            await self._clock.sleep(left)

    async def _deliver(self, letter: _Letter) -> None:
        delay = FIRST_DELAY
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._gate:
                    await letter.recorder.tell(
                        letter.about, letter.type, letter.reason, letter.message, letter.moment, again=attempt > 1
                    )
            except KubeError as error:
                if not is_transient(error) or attempt == ATTEMPTS:
                    self.lost += 1
                    log.warning("event not written", object=name_of(letter.about), reason=letter.reason, cause=error)
                    return
                asked = error.retry_after if isinstance(error, ApiError) else None
                await self._clock.sleep(max(delay, asked or 0.0))
                delay = min(2 * delay, LONGEST_DELAY)
            else:
                self.written += 1
                return
