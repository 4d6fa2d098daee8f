"""Events that are written beside the work, so that nobody waits for a courtesy.

A job of 500 replicas has a thousand Events to tell and one job to start. Written in line they would be half of its
requests and come first; here a few at a time go out while the work has the rest of the connections, and all the others
when it is done. Nothing is dropped: a full box makes its owner wait, a server in trouble is asked again, and a graceful
stop empties the box first. Only a process that is killed takes what is in it along, as it would have taken the next
line of a program that writes in line.
"""

import asyncio
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


class Outbox:
    """Takes Events and writes them in the background, for as long as `run` runs."""

    def __init__(self, clock: Clock, *, at_once: int = AT_ONCE, room: int = ROOM) -> None:
        self._clock = clock
        self._at_once = at_once
        self._letters: asyncio.Queue[_Letter] = asyncio.Queue(room)
        self.written = 0
        self.lost = 0

    async def put(self, recorder: Recorder, about: Object, type: str, reason: str, message: str) -> None:  # noqa: A002
        """Tell about an object, as of now. Waits only while the box is full."""
        known = metadata(about)
        told_of: Object = {
            "apiVersion": about.get("apiVersion"), "kind": about.get("kind"),
            "metadata": {name: known[name] for name in REFERENCE if name in known},
        }
        await self._letters.put(_Letter(recorder, told_of, type, reason, message, self._clock.now()))

    def __len__(self) -> int:
        return self._letters.qsize()

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._at_once):
                group.create_task(self._write())

    async def emptied(self) -> None:
        """Return once everything that was put in is written or given up."""
        await self._letters.join()

    async def _write(self) -> None:
        while True:
            letter = await self._letters.get()
            try:
                await self._deliver(letter)
            finally:
                self._letters.task_done()

    async def _deliver(self, letter: _Letter) -> None:
        delay = FIRST_DELAY
        for attempt in range(1, ATTEMPTS + 1):
            try:
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
