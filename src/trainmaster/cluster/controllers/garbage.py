"""Garbage collection: carries out what the graph says about each object whose owners changed.

`graph.verdict` decides, this acts. Every step can be repeated and every write names the state it was decided on (UID,
and revision where more than existence matters), so a decision on a graph that lags behind does nothing, and a collector
that dies at any point goes on where the next one begins. What a queue key stands for is one object: the work for it is
bounded by what it owns, never by what there is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from trainmaster.api.meta import Object, Resource, metadata, uid_of
from trainmaster.cluster.controllers.graph import (
    FOREGROUND,
    ORPHAN,
    Absent,
    Graph,
    Item,
    Owner,
    Verdict,
    item_of,
    owner_of,
    superfluous,
    verdict,
)
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.kube.client import METADATA, METADATA_LIST, Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.log import logger
from trainmaster.runtime.recorder import Recorder

# Cuts under way at once for one owner, and objects per page when the server is asked for dependents.
AT_ONCE, PAGE = 16, 500
# When to look again at what no event will tell: a kind that is still being listed, an owner that we cannot watch.
SOON, LATER = timedelta(seconds=1), timedelta(seconds=30)

log = logger("garbage-collector")


class Collector:
    """Follows everything, and carries out the verdicts. Without an inventory it makes and runs its own."""

    def __init__(self, client: Client, clock: Clock, inventory: Inventory | None = None) -> None:
        self._client = client
        self._clock = clock
        self._own = inventory is None
        self._inventory = inventory or Inventory(client, clock)
        self._recorder = Recorder(client, "garbage-collector-controller", clock)
        self._unserved: dict[tuple[str, str], set[str]] = {}    # group and kind of an owner -> those who name it
        self.graph = Graph()
        self.absent = Absent()
        self.controller: Controller[str] = Controller("garbage-collector", self.reconcile, clock=clock, workers=8)
        self._inventory.on_change(self._seen)
        self._inventory.kinds.on_change(self._kinds_changed)

    async def run(self) -> None:
        """Collect until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._own:
                group.create_task(self._inventory.run())
            # An owner is let go when nothing in the graph depends on it: the graph has to be complete first.
            await self._inventory.complete()
            group.create_task(self.controller.run())

    def _seen(self, before: Item | None, after: Item | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            self._gone(before)
            before = None
        if after is None:
            return
        self.graph.put(after)
        self.absent.back(after.uid)
        if after.owners or after.deleting:
            self.controller.queue.add(after.uid)
        if before is None or before.waits != after.waits:
            self._queue(each.uid for each in self.graph.dependents(after.uid))
        if before is not None and before.owners != after.owners:
            self._queue(owner.uid for owner in before.owners)    # one that waits for us may be free now

    def _gone(self, item: Item) -> None:
        self.graph.drop(item.uid)
        if self.graph.is_owner(item.uid):
            self.absent.gone(item.uid)
        self._queue(each.uid for each in self.graph.dependents(item.uid))
        self._queue(owner.uid for owner in item.owners)
        for owner in item.owners:
            kind = (owner.group, owner.kind)
            if (waiting := self._unserved.get(kind)) is not None:
                waiting.discard(item.uid)
                if not waiting:
                    del self._unserved[kind]

    def _queue(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self.controller.queue.add(uid)

    def _kinds_changed(self) -> None:
        for kind in [kind for kind in self._unserved if self._inventory.kinds.find(*kind) is not None]:
            self._queue(self._unserved.pop(kind))

    async def reconcile(self, uid: str) -> datetime | None:
        item = self.graph.get(uid)
        if item is None:
            return None
        with suppress(NotFound):    # it is gone, which the watch is about to tell
            return await self._carry_out(verdict(item, self.graph, self.absent), item)
        return None

    async def _carry_out(self, decided: Verdict, item: Item) -> datetime | None:
        match decided:
            case Verdict.DELETE:
                await self._delete(item, _as_asked(item))
                log.info("deleted what has no owner left", kind=item.resource.kind, object=item.key)
            case Verdict.DELETE_FOREGROUND:
                await self._delete(item, "Foreground")
            case Verdict.CUT:
                loose = superfluous(item, self.graph)
                await self._cut(item, lambda owner: owner in loose)
            case Verdict.RELEASE | Verdict.ORPHAN if self._inventory.incomplete():
                return self._clock.now() + SOON    # there may be dependents of a kind that is only just known
            case Verdict.RELEASE:
                await self._drop_finalizer(item, FOREGROUND)
            case Verdict.ORPHAN:
                await self._orphan(item)
            case Verdict.ASK:
                return await self._ask(item)
        return None

    async def _delete(self, item: Item, propagation: str) -> None:
        # With the revision: it may have found another owner since.
        await self._client.delete(
            item.resource, item.key.name, item.key.namespace, uid=item.uid, revision=item.revision,
            propagation=propagation,
        )

    async def _orphan(self, item: Item) -> None:
        """Cut all dependents loose, those that we have not seen yet too: each one missed would be deleted later."""
        await self._cut_all(self.graph.dependents(item.uid), item.uid)
        for resource in list(self._inventory.behind(item.revision)):
            with suppress(NotFound):    # the kind went meanwhile
                await self._cut_unseen(resource, item)
        await self._drop_finalizer(item, ORPHAN)

    async def _cut_unseen(self, resource: Resource, owner: Item) -> None:
        if owner.key.namespace and not resource.namespaced:
            return    # what has no namespace cannot belong to something that has one
        more = ""
        while True:
            page = await self._client.list(
                resource, owner.key.namespace, limit=PAGE, more=more, accept=METADATA_LIST
            )
            items = [item_of(resource, thing) for thing in page.items]
            await self._cut_all([each for each in items if any(o.uid == owner.uid for o in each.owners)], owner.uid)
            more = page.more
            if not more:
                return

    async def _cut_all(self, items: Sequence[Item], owner: str) -> None:
        async def cut(item: Item) -> None:
            with suppress(NotFound):
                await self._cut(item, lambda reference: reference.uid == owner)

        await _together(cut, items)

    async def _cut(self, item: Item, loose: Callable[[Owner], bool]) -> None:
        now = await self._current(item)
        kept = [ref for ref in metadata(now).get("ownerReferences") or () if not loose(owner_of(ref))]
        await self._patch_metadata(item, now, {"ownerReferences": kept or None})

    async def _drop_finalizer(self, item: Item, finalizer: str) -> None:
        now = await self._current(item)
        kept = [one for one in metadata(now).get("finalizers") or () if one != finalizer]
        await self._patch_metadata(item, now, {"finalizers": kept or None})

    async def _current(self, item: Item) -> Object:
        """The object's metadata as it is now; nothing of it, if another object has its name."""
        now = await self._client.get(item.resource, item.key.name, item.key.namespace, accept=METADATA)
        return now if uid_of(now) == item.uid else {}

    async def _patch_metadata(self, item: Item, now: Object, change: Object) -> None:
        """Change what was read, with the revision as guard, so that nobody's newer change is lost."""
        if any((metadata(now).get(field) or None) != value for field, value in change.items()):
            guard = {"uid": item.uid, "resourceVersion": metadata(now)["resourceVersion"]}
            await self._client.patch(
                item.resource, item.key.name, item.key.namespace, {"metadata": {**guard, **change}}
            )

    async def _ask(self, item: Item) -> datetime | None:
        """An owner that we do not see may be of a kind whose watch is not there yet: look, before believing it gone."""
        for owner in item.owners:
            if self.graph.owner(item, owner) is not None or self.absent.has(owner, item.key.namespace):
                continue
            kind = self._inventory.kinds.find(owner.group, owner.kind)
            if kind is None:
                # Nobody serves it (yet): its objects may come back with it. Keep, until it is served.
                self._unserved.setdefault((owner.group, owner.kind), set()).add(item.uid)
                return None
            if kind.resource.namespaced and not item.key.namespace:
                await self._tell_misplaced(item, owner)
                return None
            if await self._exists(kind.resource, owner, item.key.namespace):
                return self._clock.now() + LATER    # its watch will show it in a moment, if it can be watched
            if self.graph.get(owner.uid) is not None:
                await self._tell_misplaced(item, owner)
            self.absent.missing(owner, item.key.namespace)
        self.controller.queue.add(item.uid)
        return None

    async def _exists(self, resource: Resource, owner: Owner, namespace: str) -> bool:
        try:
            found = await self._client.get(
                resource, owner.name, namespace if resource.namespaced else "", accept=METADATA
            )
        except NotFound:
            return False
        return uid_of(found) == owner.uid

    async def _tell_misplaced(self, item: Item, owner: Owner) -> None:
        about = {
            "apiVersion": item.resource.api_version, "kind": item.resource.kind,
            "metadata": {"name": item.key.name, "namespace": item.key.namespace, "uid": item.uid},
        }
        where = f"in namespace {item.key.namespace!r}" if item.key.namespace else "without a namespace"
        await self._recorder.event(
            about, "Warning", "OwnerRefInvalidNamespace",
            f"The owner {owner.kind} {owner.name} ({owner.api_version}, uid {owner.uid}) does not exist {where}",
        )


def _as_asked(item: Item) -> str:
    """How to delete an object that carries a wish about its own dependents."""
    if ORPHAN in item.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.finalizers else "Background"


async def _together(work: Callable[[Item], Awaitable[None]], items: Sequence[Item]) -> None:
    """A bounded number at once; the first failure of a batch is raised when the others of it are done."""
    for start in range(0, len(items), AT_ONCE):
        done = await asyncio.gather(*map(work, items[start:start + AT_ONCE]), return_exceptions=True)
        for failure in done:
            if isinstance(failure, BaseException):
                raise failure
