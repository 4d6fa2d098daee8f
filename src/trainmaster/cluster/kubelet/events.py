"""What the node says about its pods, in the background: an Event is a courtesy and must not hold a pod up."""

import asyncio

from trainmaster.api.meta import Object
from trainmaster.runtime.log import logger
from trainmaster.runtime.recorder import Recorder

QUEUED = 1000     # events that may wait; more than that and the newest are dropped

log = logger("kubelet")


class Events:
    """A queue in front of the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._queue: asyncio.Queue[tuple[Object, str, str, str]] = asyncio.Queue(QUEUED)

    def normal(self, pod: Object, reason: str, message: str) -> None:
        self._put(pod, "Normal", reason, message)

    def warning(self, pod: Object, reason: str, message: str) -> None:
        self._put(pod, "Warning", reason, message)

    async def run(self) -> None:
        while True:
            pod, kind, reason, message = await self._queue.get()
            await self._recorder.event(pod, kind, reason, message)

    def _put(self, pod: Object, kind: str, reason: str, message: str) -> None:
        try:
            self._queue.put_nowait((pod, kind, reason, message))
        except asyncio.QueueFull:
            log.warning("event dropped, too many wait", reason=reason)
