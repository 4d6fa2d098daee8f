"""Events are forgotten an hour after they last happened.

Kubernetes leaves this to its database. Here every event has a timer, set from what is in it, so that nothing is scanned
and the next look is the moment the oldest is due. Only names and due times are kept: events are the most numerous
objects, and nobody here reads what they say.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from trainmaster.api.core import EVENTS
from trainmaster.api.meta import Key, Object, key_of, metadata, moment_if_any, revision_of, uid_of
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

# The default of kube-apiserver's --event-ttl.
LIFETIME = timedelta(hours=1)


async def run(client: Client, clock: Clock, lifetime: timedelta = LIFETIME) -> None:
    """Delete what is old enough, until cancelled."""
    expiry = Expiry(client, clock, lifetime)
    async with asyncio.TaskGroup() as group:
        group.create_task(expiry.informer.run())
        group.create_task(expiry.controller.run())


class Expiry:
    """A timer for each event."""

    def __init__(self, client: Client, clock: Clock, lifetime: timedelta) -> None:
        self._client = client
        self._clock = clock
        self._lifetime = lifetime
        self.informer = Informer(Reduced(client, self._kept), EVENTS, clock=clock)
        self.controller: Controller[Key] = Controller(
            "event-expiry", self.reconcile, clock=clock, workers=4, informers=[self.informer]
        )
        self.informer.on_change(self._changed)

    def _kept(self, event: Object) -> Object:
        about = metadata(event)
        kept = {field: about[field] for field in ("name", "namespace", "uid", "resourceVersion") if field in about}
        return {"metadata": kept, "due": last_seen(event, self._clock.now()) + self._lifetime}

    def _changed(self, _before: Object | None, after: Object | None) -> None:
        if after is not None:
            # An earlier timer of the same event stays, finds it changed, and is set anew: once an hour at most.
            self.controller.queue.add_at(key_of(after), after["due"])

    async def reconcile(self, key: Key) -> datetime | None:
        event = self.informer.copy.get(key.namespace, key.name)
        if event is None:
            return None
        due: datetime = event["due"]
        if due > self._clock.now():
            return due
        with suppress(NotFound):
            # With the revision: it may be happening again just now.
            await self._client.delete(EVENTS, key.name, key.namespace, uid=uid_of(event), revision=revision_of(event))
        return None


def last_seen(event: Object, now: datetime) -> datetime:
    """When an event happened for the last time: the latest moment in it that is not still to come.

    The clocks of those who report are not ours, and what they write may be anything. An event is never older than
    itself, and one from the future counts as seen now.
    """
    return max((min(found, now) for found in _moments(event)), default=now)


def _moments(event: Object) -> Iterator[datetime]:
    series = event.get("series")
    for text in (
        metadata(event).get("creationTimestamp"), event.get("firstTimestamp"), event.get("lastTimestamp"),
        event.get("eventTime"), series.get("lastObservedTime") if isinstance(series, dict) else None,
    ):
        if (found := moment_if_any(text)) is not None:
            yield found
