"""Garbage collection by owner: what belongs to nothing any more is deleted.

An object goes when all its owners are gone (by UID: an owner that was deleted and made again is another one). Deletion
in the foreground holds the owner back until its dependents are gone; orphaning cuts the references instead. The graph
is built from watches on every kind that can be deleted; `verdict` decides, `Collector` acts.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import partial

from trainmaster.api.core import DEFINITIONS, EVENTS
from trainmaster.api.meta import Key, Object, Resource, key_of, metadata, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import served
from trainmaster.kube.errors import Conflict, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

log = logger("garbage-collector")

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Owner:
    uid: str
    blocks: bool   # blockOwnerDeletion: the owner waits for us when it is deleted in the foreground
    api_version: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """An object as a place in the graph."""

    resource: Resource
    key: Key
    uid: str
    owners: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False


class Graph:
    """Who owns whom, by UID."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, set[str]] = {}

    def put(self, item: Item) -> None:
        self.drop(item.uid)
        self._items[item.uid] = item
        for owner in item.owners:
            self._dependents.setdefault(owner.uid, set()).add(item.uid)

    def drop(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        for owner in item.owners if item else ():
            of_owner = self._dependents[owner.uid]
            of_owner.discard(uid)
            if not of_owner:
                del self._dependents[owner.uid]

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def dependents(self, uid: str) -> list[Item]:
        return [self._items[one] for one in sorted(self._dependents.get(uid, ()))]


class Verdict(Enum):
    """What to do with one object."""

    KEEP = "keep"
    DELETE = "delete"                        # its owners are gone
    DELETE_FOREGROUND = "delete foreground"  # its owner waits for it, and something waits for it in turn
    CUT = "cut"                              # remove references to owners that are gone or waiting; others live
    RELEASE = "release"                      # its dependents are gone: drop the foreground finalizer
    ORPHAN = "orphan"                        # cut the references of its dependents, then drop the orphan finalizer
    ASK = "ask"                              # an owner is not in the graph: ask the server before believing it gone


def verdict(item: Item, graph: Graph, absent: frozenset[str]) -> Verdict:
    """Decide about one object. `absent` are the owner UIDs that the server has confirmed to be gone."""
    if item.deleting:
        if ORPHAN in item.finalizers:
            return Verdict.ORPHAN
        waits_for = [d for d in graph.dependents(item.uid) if any(o.uid == item.uid and o.blocks for o in d.owners)]
        return Verdict.RELEASE if FOREGROUND in item.finalizers and not waits_for else Verdict.KEEP
    if not item.owners:
        return Verdict.KEEP
    if any(graph.get(o.uid) is None and o.uid not in absent for o in item.owners):
        return Verdict.ASK
    owners = [graph.get(o.uid) for o in item.owners]
    waiting = [o for o in owners if o is not None and o.deleting and FOREGROUND in o.finalizers]
    living = [o for o in owners if o is not None and o not in waiting]
    if living:
        return Verdict.CUT if len(living) < len(owners) else Verdict.KEEP
    if waiting and graph.dependents(item.uid):
        return Verdict.DELETE_FOREGROUND
    return Verdict.DELETE


class Collector:
    """Watches every kind that can be deleted, and carries out the verdicts."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self.graph = Graph()
        self._absent: set[str] = set()
        self._watching: dict[Resource, asyncio.Task[None]] = {}
        self._definitions = Informer(client, DEFINITIONS, clock=clock)
        self._kinds_changed = asyncio.Event()
        self._definitions.on_change(lambda _before, _after: self._kinds_changed.set())
        self.controller: Controller[str] = Controller("garbage-collector", self.reconcile, clock=clock, workers=8)

    async def run(self) -> None:
        """Collect until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._definitions.run())
            group.create_task(self._follow_kinds(group))
            group.create_task(self.controller.run())

    async def _follow_kinds(self, group: asyncio.TaskGroup) -> None:
        await self._definitions.synced()
        while True:
            self._kinds_changed.clear()
            wanted = {s.resource for s in await served(self._client) if s.can("list", "watch", "delete")}
            wanted.discard(EVENTS)  # nothing owns an event, and they are the most numerous of all
            for resource in wanted - self._watching.keys():
                informer = Informer(self._client, resource, clock=self._clock)
                informer.on_change(partial(self._seen, resource))
                self._watching[resource] = group.create_task(informer.run())
            for resource in self._watching.keys() - wanted:
                self._watching.pop(resource).cancel()
            await self._kinds_changed.wait()

    def _seen(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        if after is None:
            assert before is not None
            self._gone(uid_of(before))
            return
        item = item_of(resource, after)
        if before is not None and uid_of(before) != item.uid:
            self._gone(uid_of(before))
        self.graph.put(item)
        if item.owners or item.deleting:
            self.controller.queue.add(item.uid)
        if item.deleting:
            self._queue(self.graph.dependents(item.uid))

    def _gone(self, uid: str) -> None:
        item = self.graph.get(uid)
        self.graph.drop(uid)
        self._absent.add(uid)
        self._queue(self.graph.dependents(uid))
        for owner in item.owners if item else ():
            self.controller.queue.add(owner.uid)
        if not self.graph.dependents(uid):
            self._absent.discard(uid)  # nobody will ask about it again

    def _queue(self, items: Iterable[Item]) -> None:
        for item in items:
            self.controller.queue.add(item.uid)

    async def reconcile(self, uid: str) -> datetime | None:
        item = self.graph.get(uid)
        if item is None:
            return None
        try:
            return await self._carry_out(verdict(item, self.graph, frozenset(self._absent)), item)
        except (NotFound, Conflict):
            return None  # it changed under us; the watch brings it back

    async def _carry_out(self, decided: Verdict, item: Item) -> datetime | None:
        match decided:
            case Verdict.KEEP:
                return None
            case Verdict.DELETE:
                log.info("deleting what has no owner left", kind=item.resource.kind, object=item.key)
                await self._delete(item, "Background")
            case Verdict.DELETE_FOREGROUND:
                await self._delete(item, "Foreground")
            case Verdict.CUT:
                await self._cut(item, {o.uid for o in item.owners if not self._living(o.uid)})
            case Verdict.RELEASE:
                await self._drop_finalizer(item, FOREGROUND)
            case Verdict.ORPHAN:
                for dependent in self.graph.dependents(item.uid):
                    await self._cut(dependent, {item.uid})
                await self._drop_finalizer(item, ORPHAN)
            case Verdict.ASK:
                return await self._ask(item)
        return None

    def _living(self, uid: str) -> bool:
        owner = self.graph.get(uid)
        return owner is not None and not (owner.deleting and FOREGROUND in owner.finalizers)

    async def _delete(self, item: Item, propagation: str) -> None:
        await self._client.delete(
            item.resource, item.key.name, item.key.namespace, uid=item.uid, propagation=propagation
        )

    async def _cut(self, item: Item, gone: set[str]) -> None:
        """Rewrite the references as they are now, with the revision as guard, so that a newer one is not lost."""
        now = await self._client.get(item.resource, item.key.name, item.key.namespace)
        if uid_of(now) != item.uid:
            return
        kept = [ref for ref in metadata(now).get("ownerReferences") or () if ref["uid"] not in gone]
        await self._patch_metadata(item, now, {"ownerReferences": kept or None})

    async def _drop_finalizer(self, item: Item, finalizer: str) -> None:
        now = await self._client.get(item.resource, item.key.name, item.key.namespace)
        if uid_of(now) == item.uid and finalizer in (metadata(now).get("finalizers") or ()):
            kept = [one for one in metadata(now)["finalizers"] if one != finalizer]
            await self._patch_metadata(item, now, {"finalizers": kept or None})

    async def _patch_metadata(self, item: Item, now: Object, change: Object) -> None:
        guard = {"uid": item.uid, "resourceVersion": metadata(now)["resourceVersion"]}
        await self._client.patch(
            item.resource, item.key.name, item.key.namespace, {"metadata": {**guard, **change}}
        )

    async def _ask(self, item: Item) -> datetime | None:
        """An owner that we do not see may be of a kind whose watch is not there yet: look, before believing it gone."""
        for owner in item.owners:
            if self.graph.get(owner.uid) is None and owner.uid not in self._absent:
                resource = self._resource_of(owner)
                if resource is None:
                    # A kind that nobody serves (yet): its objects may come back with it. Keep, and look again.
                    return self._clock.now() + timedelta(seconds=30)
                namespace = item.key.namespace if resource.namespaced else ""
                try:
                    found = await self._client.get(resource, owner.name, namespace)
                except NotFound:
                    found = {}
                if uid_of(found) == owner.uid:
                    return self._clock.now() + timedelta(seconds=1)  # the watch will show it in a moment
                self._absent.add(owner.uid)
        self.controller.queue.add(item.uid)
        return None

    def _resource_of(self, owner: Owner) -> Resource | None:
        for resource in self._watching:
            if resource.kind == owner.kind and resource.api_version == owner.api_version:
                return resource
        return None


def item_of(resource: Resource, thing: Object) -> Item:
    about = metadata(thing)
    owners = tuple(
        Owner(ref["uid"], bool(ref.get("blockOwnerDeletion")), ref["apiVersion"], ref["kind"], ref["name"])
        for ref in about.get("ownerReferences") or ()
    )
    return Item(
        resource, key_of(thing), uid_of(thing), owners, tuple(about.get("finalizers") or ()),
        deleting=bool(about.get("deletionTimestamp")),
    )
