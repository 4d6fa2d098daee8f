"""Events on objects, deduplicated: the same words about the same object are one Event with a count.

Kept apart from decisions on purpose: an Event is a courtesy to people, so a failing API is logged and never raised.
What must not be lost belongs into a status.
"""

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from trainmaster.api.core import EVENTS
from trainmaster.api.meta import Object, micro_timestamp, name_of, namespace_of, revision_of, timestamp, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

# Events that we can still count up; older ones start again at 1. client-go keeps 4096 as well.
REMEMBERED = 4096
# Longest name of an object; the Event's own has a dot and the hash behind it.
LONGEST_NAME = 253
# What the API server takes.
LONGEST_MESSAGE = 1024

log = logger("recorder")

_Same: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class _Told:
    name: str
    count: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)   # the first has to be there before it can be counted up


class Recorder:
    """Writes Events in the name of one component."""

    def __init__(self, client: Client, component: str, clock: Clock) -> None:
        self._client = client
        self._component = component
        self._clock = clock
        self._told: OrderedDict[_Same, _Told] = OrderedDict()

    async def event(self, about: Object, type: str, reason: str, message: str) -> None:  # noqa: A002  the API's word
        """Tell about an object. `type` is Normal or Warning; the words must not differ if the thing does not."""
        try:
            await self.tell(about, type, reason, message, self._clock.now())
        except KubeError as error:
            log.warning("event not written", object=name_of(about), reason=reason, cause=error)

    async def tell(
        self, about: Object, type: str, reason: str, message: str, moment: datetime, *, again: bool = False  # noqa: A002
    ) -> None:
        """The same, as of a moment, and raising what goes wrong; `again` if this was tried before and not answered."""
        if len(message) > LONGEST_MESSAGE:
            message = message[: LONGEST_MESSAGE - 1] + "…"
        same = (uid_of(about), namespace_of(about), name_of(about), type, reason, message)
        told = self._told.get(same)
        if told is None:
            told = self._told[same] = _Told(self._name(about, same, moment))
        self._told.move_to_end(same)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        async with told.lock:
            if told.count and await self._counted(about, told, moment):
                return
            try:
                await self._create(about, told, type, reason, message, moment)
            except AlreadyExists:
                told.count = 1    # ours: the name has our moment in it. The answer to an earlier try was lost.
                if not again:
                    await self._counted(about, told, moment)

    async def _counted(self, about: Object, told: _Told, moment: datetime) -> bool:
        """Count an Event up; False if the server has forgotten it, so that it begins again."""
        news = {"count": told.count + 1, "lastTimestamp": timestamp(moment)}
        try:
            await self._client.patch(EVENTS, told.name, _place(about), news)
        except NotFound:
            told.count = 0
            return False
        told.count += 1
        return True

    async def _create(
        self, about: Object, told: _Told, type: str, reason: str, message: str, moment: datetime  # noqa: A002
    ) -> None:
        now = timestamp(moment)
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": told.name, "namespace": _place(about)},
            "involvedObject": _reference(about),
            "type": type,
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self._client.create(EVENTS, event)
        told.count = 1

    def _name(self, about: Object, same: _Same, moment: datetime) -> str:
        # The moment is in it, so that another life of this process makes another Event instead of a conflict.
        seed = "\0".join((*same, self._component, micro_timestamp(moment)))
        tail = hashlib.blake2b(seed.encode(), digest_size=8).hexdigest()
        return f"{name_of(about)[: LONGEST_NAME - len(tail) - 1].rstrip('.-')}.{tail}"


def _place(about: Object) -> str:
    """The namespace of an object's Events; those of nodes and the like are where kubectl looks for them."""
    return namespace_of(about) or "default"


def _reference(about: Object) -> Object:
    found = {
        "apiVersion": str(about.get("apiVersion", "")),
        "kind": str(about.get("kind", "")),
        "namespace": namespace_of(about),
        "name": name_of(about),
        "uid": uid_of(about),
        "resourceVersion": revision_of(about),
    }
    return {name: value for name, value in found.items() if value}
