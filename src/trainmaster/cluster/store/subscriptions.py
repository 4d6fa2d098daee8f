"""Who wants to hear of which changes.

A subscription remembers only how far it has read; the changes themselves stay in the history window. So there is no
buffer to fill, a reader that stands still holds nothing, and one that falls out of the window is told so (`Lagged`).
Rejected: a queue per subscriber, which keeps every change once per watcher and needs a second bound.
"""

import asyncio
from collections.abc import Iterable
from itertools import islice

from trainmaster.cluster.store.history import History
from trainmaster.cluster.store.objects import resource_of
from trainmaster.cluster.store.records import Change, Closed, Lagged

AT_ONCE = 500  # changes handed out by one `next`: a reader that catches up must not hold the loop for long


class Subscription:
    """Changes below a prefix, in order, none missed and none twice."""

    def __init__(self, hub: "Subscriptions", prefix: str, after: int) -> None:
        self.prefix = prefix
        self._hub = hub
        self._read = after
        self._due = 0  # revision of the first change that was not handed out; 0: none
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def progress(self) -> int:
        """Every change for this subscriber up to here was handed out."""
        return self._read if self._due else max(self._read, self._hub.revision)

    async def next(self) -> list[Change]:
        """The next changes, at least one. Raises Lagged when they are forgotten, Closed when there will be none."""
        while not self._due:
            if self._closed:
                raise Closed
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._due <= self._hub.history.oldest:
            self.close()
            raise Lagged(self._read, self._hub.history.oldest)
        upcoming = self._hub.history.since(self.prefix, self._due - 1)
        changes = list(islice(upcoming, AT_ONCE))
        following = next(upcoming, None)
        self._due = 0 if following is None else following.revision
        self._read = changes[-1].revision if following is not None else self._hub.revision
        return changes

    def close(self) -> None:
        """Stop. A `next` that is waiting raises Closed, later ones too once what is due was read."""
        self._closed = True
        self._hub.remove(self)
        self._wake()

    def tell(self, change: Change) -> None:
        if not self._due:
            self._due = change.revision
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Subscriptions:
    """All subscriptions, by kind, so that a change costs only those who may want it."""

    def __init__(self, history: History, revision: int) -> None:
        self.history = history
        self.revision = revision  # newest visible
        self._by_resource: dict[str, dict[str, set[Subscription]]] = {}

    def add(self, prefix: str, after: int) -> Subscription:
        subscription = Subscription(self, prefix, after)
        due = next(self.history.since(prefix, after), None)
        if due is not None:
            subscription.tell(due)
        self._by_resource.setdefault(resource_of(prefix), {}).setdefault(prefix, set()).add(subscription)
        return subscription

    def remove(self, subscription: Subscription) -> None:
        resource = resource_of(subscription.prefix)
        by_prefix = self._by_resource.get(resource, {})
        members = by_prefix.get(subscription.prefix, set())
        members.discard(subscription)
        if not members:
            by_prefix.pop(subscription.prefix, None)
        if not by_prefix:
            self._by_resource.pop(resource, None)

    def publish(self, changes: Iterable[Change], revision: int) -> None:
        """Tell those concerned. The changes are in the history already."""
        self.revision = revision
        for change in changes:
            for resource in (resource_of(change.key), ""):
                for prefix, members in self._by_resource.get(resource, {}).items():
                    if change.key.startswith(prefix):
                        for subscription in members:
                            subscription.tell(change)

    def close(self) -> None:
        for by_prefix in list(self._by_resource.values()):
            for members in list(by_prefix.values()):
                for subscription in list(members):
                    subscription.close()
