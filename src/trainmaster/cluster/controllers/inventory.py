"""Everything there is, as places in the graph: every object of every kind that can be deleted, by metadata alone.

Followed once for all who need it: the garbage collector builds its graph from it, and the end of a namespace waits for
the last object in it. Each kind has its own watch, so one kind that cannot be watched costs the others nothing.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypedDict

import msgspec

from trainmaster.api.meta import Object, Resource, metadata, uid_of
from trainmaster.cluster.controllers.graph import Item, item_of
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.first import first
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger
from trainmaster.runtime.store import older

# How long one that cannot be listed keeps the others waiting. Kubernetes has the same patience.
PATIENCE = 30.0

Listener = Callable[[Item | None, Item | None], None]
log = logger("inventory")


@dataclass(slots=True)
class Follower:
    """One kind that is followed."""

    client: "Bare"
    informer: Informer
    began: float
    task: asyncio.Task[None]
    synced: bool = False


class Inventory:
    """Tells its listeners of every change of every object, as (before, after). Without kinds it follows them too."""

    def __init__(self, client: Client, clock: Clock, kinds: Kinds | None = None) -> None:
        self._client = client
        self._clock = clock
        self._own_kinds = kinds is None
        self.kinds = kinds or Kinds(client, clock)
        self._listeners: list[Listener] = []
        self._followers: dict[Resource, Follower] = {}
        self._told: dict[str, Item] = {}          # by UID, as it was told last: what `before` is when it changes
        self._kinds_changed = asyncio.Event()
        self._following = asyncio.Event()
        self.kinds.on_change(self._kinds_changed.set)

    def on_change(self, listener: Listener) -> None:
        """Call for every change from now on. It must not block."""
        self._listeners.append(listener)

    def follows(self, resource: Resource) -> bool:
        return resource in self._followers

    def incomplete(self) -> bool:
        """Whether there is a kind whose objects we have not seen yet, though we may hope to."""
        now = self._clock.monotonic()
        return any(not each.synced and now - each.began < PATIENCE for each in self._followers.values())

    def behind(self, revision: str) -> Iterator[Resource]:
        """The kinds of which we cannot say that everything up to a revision was seen."""
        for resource, follower in self._followers.items():
            if not follower.synced or not follower.client.revision or older(follower.client.revision, revision):
                yield resource

    async def complete(self) -> None:
        """Return once every kind has been listed, or was given the time to be."""
        await self._following.wait()
        for resource, follower in list(self._followers.items()):
            left = PATIENCE - (self._clock.monotonic() - follower.began)
            await first(follower.informer.synced(), self._clock.sleep(left))
            if not follower.synced:
                log.warning("going on without a kind that cannot be listed", kind=resource.kind, group=resource.group)

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._own_kinds:
                group.create_task(self.kinds.run())
            while True:
                await self._kinds_changed.wait()
                self._kinds_changed.clear()
                self._follow_kinds(group)
                self._following.set()

    def _follow_kinds(self, group: asyncio.TaskGroup) -> None:
        wanted = {
            (kind.resource.group, kind.resource.plural): kind.resource
            for kind in self.kinds.all() if kind.can("list", "watch", "delete") and not _is_event(kind.resource)
        }
        for resource in list(self._followers):
            place = (resource.group, resource.plural)
            if place in wanted and wanted[place] != resource:
                self._follow(wanted[place], group, instead=self._stop(resource))
            elif place not in wanted and not self.kinds.defined(*place):
                # Its definition went, and that goes only after the last of its objects.
                for thing in self._stop(resource).informer.copy.all():
                    self._tell(resource, thing, None)
        for resource in wanted.values():
            if resource not in self._followers:
                self._follow(resource, group)

    def _follow(self, resource: Resource, group: asyncio.TaskGroup, instead: Follower | None = None) -> None:
        client = Bare(self._client)
        informer = Informer(client, resource, clock=self._clock)
        informer.on_change(partial(self._tell, resource))
        task = group.create_task(self._run(resource, informer, instead))
        self._followers[resource] = Follower(client, informer, self._clock.monotonic(), task)

    async def _run(self, resource: Resource, informer: Informer, instead: Follower | None) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            await informer.synced()
            if (follower := self._followers.get(resource)) is not None and follower.informer is informer:
                follower.synced = True
            for thing in instead.informer.copy.all() if instead is not None else ():
                # The same kind in another version: what went between the two watches was seen by neither.
                now = informer.copy.get(thing["metadata"].get("namespace", ""), thing["metadata"]["name"])
                if now is None or now["metadata"]["uid"] != thing["metadata"]["uid"]:
                    self._tell(resource, thing, None)

    def _stop(self, resource: Resource) -> Follower:
        follower = self._followers.pop(resource)
        follower.task.cancel()
        return follower

    def _tell(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        was = None if before is None else self._told.pop(uid_of(before), None) or item_of(resource, before)
        now = None if after is None else item_of(resource, after)
        if now is not None:
            self._told[now.uid] = now
        for listener in self._listeners:
            listener(was, now)


def _is_event(resource: Resource) -> bool:
    """Nothing owns an event, nothing holds one back, and they are the most numerous of all."""
    return resource.plural == "events" and resource.group in ("", "events.k8s.io")


class _Metadata(TypedDict, total=False):
    """What is kept of an object. The rest, most of all who owns which field, is passed over without being read."""

    name: str
    namespace: str
    uid: str
    resourceVersion: str
    ownerReferences: list[Object]
    finalizers: list[str]
    deletionTimestamp: str


class _Thing(TypedDict):
    metadata: _Metadata


class _Event(TypedDict):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: _Thing


_EVENT = msgspec.json.Decoder(_Event)
KEPT = tuple(_Metadata.__annotations__)


class Bare(Reduced):
    """A client that keeps the bones of things."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, _bones, bare=True)

    def _event(self, line: bytes) -> Object | None:
        try:
            return dict(_EVENT.decode(line))
        except msgspec.DecodeError:
            return super()._event(line)      # a bookmark, an error, or something that nobody expects


def _bones(thing: Object) -> Object:
    about = metadata(thing)
    return {"metadata": {field: about[field] for field in KEPT if field in about}}
