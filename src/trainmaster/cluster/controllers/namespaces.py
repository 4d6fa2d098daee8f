"""The end of a namespace: everything in it is deleted, pods first, then its finalizer is taken off and it is gone.

Each look asks the server what is there, so nothing is believed that a crash or a late watch could have made wrong. When
to look again comes from the inventory: the end of the last object at once, other changes after a moment, so that a
namespace of a thousand pods is looked at a few times and not a thousand. Only trouble, which no event ends, is polled.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from trainmaster.api.core import NAMESPACES, PODS
from trainmaster.api.meta import Object, being_deleted, metadata, name_of
from trainmaster.cluster.controllers.emptying import Remains, combined, conditions
from trainmaster.cluster.controllers.graph import Item
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.kube.client import METADATA_LIST, Client
from trainmaster.kube.discovery import Served, Survey, survey
from trainmaster.kube.errors import KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

FINALIZER = "kubernetes"
# Until the next look while objects go one by one, and while something is wrong.
MOMENT, TROUBLE = timedelta(seconds=1), timedelta(seconds=5)
KINDS_AT_ONCE, DELETIONS_AT_ONCE, PAGE = 8, 16, 500

log = logger("namespaces")


async def run(client: Client, clock: Clock, inventory: Inventory | None = None) -> None:
    """Empty and remove namespaces that are being deleted, until cancelled. Without an inventory it runs its own."""
    own = inventory is None
    inventory = inventory or Inventory(client, clock)
    undertaker = Undertaker(client, clock, inventory)
    async with asyncio.TaskGroup() as group:
        if own:
            group.create_task(inventory.run())
        group.create_task(undertaker.informer.run())
        group.create_task(undertaker.controller.run())


class Undertaker:
    """Works on the namespaces that are being deleted."""

    def __init__(self, client: Client, clock: Clock, inventory: Inventory) -> None:
        self._client = client
        self._clock = clock
        self._inventory = inventory
        self._left: dict[str, set[str]] = {}    # namespace that is ending -> UIDs that the last look found in it
        self.informer = Informer(client, NAMESPACES, clock=clock)
        self.controller: Controller[str] = Controller(
            "namespaces", self.reconcile, clock=clock, workers=2, informers=[self.informer]
        )
        self.informer.on_change(self._namespace_changed)
        inventory.on_change(self._content_changed)

    def _namespace_changed(self, before: Object | None, after: Object | None) -> None:
        if after is not None and being_deleted(after):
            self.controller.queue.add(name_of(after))
        elif after is None and before is not None:
            self._left.pop(name_of(before), None)

    def _content_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        assert item is not None
        left = self._left.get(item.key.namespace)
        if left is None:
            return    # it lives, or has not been looked at yet
        if after is None:
            left.discard(item.uid)
        if left:
            self.controller.queue.add_at(item.key.namespace, self._clock.now() + MOMENT)
        else:
            self.controller.queue.add(item.key.namespace)

    async def reconcile(self, name: str) -> datetime | None:
        known = self.informer.copy.get("", name)
        if known is None or not being_deleted(known):
            return None
        with suppress(NotFound):    # gone meanwhile
            return await self._empty(await self._client.get(NAMESPACES, name))
        return None

    async def _empty(self, namespace: Object) -> datetime | None:
        name = name_of(namespace)
        if not being_deleted(namespace) or FINALIZER not in (namespace.get("spec", {}).get("finalizers") or ()):
            return None    # another one of the same name, or it is somebody else's turn
        self._left.setdefault(name, set()).clear()    # from here on every end in it counts
        found = await self._look(name)
        namespace = await self._say(namespace, found)
        if found.nothing:
            await self._finalize(namespace)
            return None
        followed = all(self._inventory.follows(resource) for resource in found.objects)
        return None if followed and not found.troubled else self._clock.now() + TROUBLE

    async def _look(self, namespace: str) -> Remains:
        """Delete what is in the namespace; what is left after that."""
        try:
            known = await survey(self._client)
        except KubeError as error:
            known = Survey((), {"/apis": error})
        missing = Remains(undiscovered={place: str(why) for place, why in known.failed.items()})
        kinds = [kind for kind in known.kinds if kind.resource.namespaced and kind.can("list", "delete")]
        # A pod that is ending may still need its ConfigMaps, Secrets and account.
        pods = [await self._clear(kind, namespace) for kind in kinds if kind.resource == PODS]
        if any(part.objects for part in pods):
            return combined([missing, *pods])
        gate = asyncio.Semaphore(KINDS_AT_ONCE)

        async def clear(kind: Served) -> Remains:
            async with gate:
                return await self._clear(kind, namespace)

        others = await asyncio.gather(*(clear(kind) for kind in kinds if kind.resource != PODS))
        return combined([missing, *pods, *others])

    async def _clear(self, kind: Served, namespace: str) -> Remains:
        """One kind. A failure is an answer here: the other kinds go on."""
        try:
            things = await self._list(kind, namespace)
            fresh = [thing for thing in things if not being_deleted(thing)]
            if fresh:
                await self._delete(kind, namespace, fresh)
                things = await self._list(kind, namespace)
        except NotFound:
            return Remains()    # the kind went meanwhile, and its objects with it
        except KubeError as error:
            return Remains(failures=[f"{kind.resource.plural}.{kind.resource.group}: {error}"])
        if (left := self._left.get(namespace)) is not None and self._inventory.follows(kind.resource):
            left.update(metadata(thing)["uid"] for thing in things)
        held = Counter(name for thing in things for name in metadata(thing).get("finalizers") or ())
        return Remains({kind.resource: len(things)} if things else {}, held)

    async def _list(self, kind: Served, namespace: str) -> list[Object]:
        found: list[Object] = []
        more = ""
        while True:
            page = await self._client.list(kind.resource, namespace, limit=PAGE, more=more, accept=METADATA_LIST)
            found += page.items
            more = page.more
            if not more:
                return found

    async def _delete(self, kind: Served, namespace: str, things: Sequence[Object]) -> None:
        assert namespace, "without it the objects of all namespaces would go"
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if kind.can("deletecollection"):
            await self._client.request(
                "DELETE", kind.resource.path(namespace), body=options, accept=METADATA_LIST
            )
            return
        gate = asyncio.Semaphore(DELETIONS_AT_ONCE)

        async def delete(thing: Object) -> None:
            async with gate:
                with suppress(NotFound):
                    await self._client.delete(kind.resource, name_of(thing), namespace, propagation="Background")

        await asyncio.gather(*map(delete, things))

    async def _say(self, namespace: Object, found: Remains) -> Object:
        status = namespace.get("status") or {}
        before = status.get("conditions") or []
        if found.nothing and not before and not _stays(namespace):
            return namespace    # it is gone with the next request: nobody could read it
        now = {**status, "phase": "Terminating", "conditions": conditions(found, before, self._clock.now())}
        if now == status:
            return namespace
        if found.troubled:
            log.warning("a namespace cannot be emptied", namespace=name_of(namespace), failures=list(found.failures),
                        undiscovered=list(found.undiscovered))
        return await self._client.replace(NAMESPACES, {**namespace, "status": now}, subresource="status")

    async def _finalize(self, namespace: Object) -> None:
        kept = [one for one in namespace["spec"]["finalizers"] if one != FINALIZER]
        body = {**namespace, "spec": {**namespace["spec"], "finalizers": kept}}
        await self._client.replace(NAMESPACES, body, subresource="finalize")
        log.info("namespace emptied", namespace=name_of(namespace))


def _stays(namespace: Object) -> bool:
    """Whether somebody else holds the namespace back as well."""
    return bool(metadata(namespace).get("finalizers")) or namespace["spec"]["finalizers"] != [FINALIZER]
