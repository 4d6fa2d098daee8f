"""What the node says about its pods, in the background: an Event is a courtesy and must not hold a pod up."""

from trainmaster.api.meta import Object
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger
from trainmaster.runtime.outbox import LULL, Outbox
from trainmaster.runtime.recorder import Recorder

QUEUED = 1000     # events that may wait; more than that and the newest are dropped

log = logger("kubelet")


class Events:
    """The node's voice."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._recorder = Recorder(client, "kubelet", clock)
        self._outbox = Outbox(clock, room=QUEUED, lull=LULL)

    def normal(self, pod: Object, reason: str, message: str) -> None:
        self._put(pod, "Normal", reason, message)

    def warning(self, pod: Object, reason: str, message: str) -> None:
        self._put(pod, "Warning", reason, message)

    async def run(self) -> None:
        await self._outbox.run()

    def _put(self, pod: Object, kind: str, reason: str, message: str) -> None:
        if not self._outbox.offer(self._recorder, pod, kind, reason, message):
            log.warning("event dropped, too many wait", reason=reason)
