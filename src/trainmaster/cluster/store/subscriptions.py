"""Who wants to hear of which changes.

A subscription remembers only how far it has read; the changes themselves stay in the history window. So there is no
buffer to fill, a reader that stands still holds nothing, and one that falls out of the window is told so (`Lagged`).
Readers of the same prefix that have come equally far, as those who keep up have, get the same batch: it is put together
once, and what they make of it can be kept on it for the others.
Rejected: a queue per subscriber, which keeps every change once per watcher and needs a second bound.
"""

import asyncio
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from trainmaster.cluster.store.history import History
from trainmaster.cluster.store.objects import resource_of
from trainmaster.cluster.store.records import Change, Closed, Lagged

# Handed out at once, at most: a reader that catches up must not hold the loop for long, nor much memory.
AT_ONCE = 500
BYTES_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes in order, shared by all who read them; so is what one of them derived from the whole of it."""

    changes: Sequence[Change]
    following: int = 0  # revision of the first change after these; 0: none
    derived: dict[Hashable, bytes] = field(default_factory=dict)


NOTHING = Batch(())


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

    @property
    def due(self) -> bool:
        """Whether there are changes that were not handed out."""
        return self._due > 0

    def take(self) -> Batch:
        """What is there to read now, be it nothing. Raises Lagged when it is forgotten, Closed when no more comes."""
        if not self._due:
            if self._closed:
                raise Closed
            return NOTHING
        if self._due <= self._hub.history.oldest:
            self.close()
            raise Lagged(self._read, self._hub.history.oldest)
        batch = self._hub.batch(self.prefix, self._due)
        self._due = batch.following
        self._read = batch.changes[-1].revision if batch.following else self._hub.revision
        return batch

    async def wait(self) -> None:
        """Return when there is something to read, nothing any more, or somebody called `stir`."""
        if self._due or self._closed:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def next(self) -> Sequence[Change]:
        """The next changes, at least one. Raises Lagged when they are forgotten, Closed when there will be none."""
        while not (batch := self.take()).changes:
            await self.wait()
        return batch.changes

    def close(self) -> None:
        """Stop. A `next` that is waiting raises Closed, later ones too once what is due was read."""
        self._closed = True
        self._hub.remove(self)
        self.stir()

    def tell(self, change: Change) -> None:
        if not self._due:
            self._due = change.revision
            self.stir()

    def stir(self) -> None:
        """Let the one who waits look around: time has come for something else."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Subscriptions:
    """All subscriptions, by kind, so that a change costs only those who may want it."""

    def __init__(self, history: History, revision: int) -> None:
        self.history = history
        self.revision = revision  # newest visible
        self._by_resource: dict[str, dict[str, set[Subscription]]] = {}
        self._batches: dict[tuple[str, int], Batch] = {}  # by prefix and first revision; until the next change

    def batch(self, prefix: str, first: int) -> Batch:
        """The changes from one on that is kept, no more than can be handed out at once."""
        known = self._batches.get((prefix, first))
        if known is None:
            known = _batch(self.history.since(prefix, first - 1))
            if not known.following:  # those who catch up are rarely at the same place
                self._batches[prefix, first] = known
        return known

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
        self._batches.clear()
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


def _batch(upcoming: Iterable[Change]) -> Batch:
    changes: list[Change] = []
    size = 0
    for change in upcoming:
        if len(changes) == AT_ONCE or size >= BYTES_AT_ONCE:
            return Batch(changes, change.revision)
        changes.append(change)
        size += len(change.value or change.before or b"")
    return Batch(changes)
