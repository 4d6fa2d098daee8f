"""What a namespace uses, counted again whenever something that a quota counts may have gone.

The server charges a quota together with whatever it creates; nobody gives back. So objects that end or change wake the
quotas of their namespace, and each is counted from what the server has. A count must not undo a charge that came
between: the quota is read first and written only at the revision it was read at, and every charge moves that on. What
the charge pays for was stored with it, so a count that is written has seen it.
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta

from trainmaster.api.core import RESOURCE_QUOTAS
from trainmaster.api.meta import Key, Object, Resource, being_deleted, key_of, namespace_of
from trainmaster.cluster.controllers.graph import Item
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.cluster.quota.charge import counted
from trainmaster.cluster.quota.usage import changes_with, is_counted, names_of
from trainmaster.kube.client import JSON, METADATA_LIST, Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

QUOTAS = RESOURCE_QUOTAS
# The end of a job is the end of many pods: counted a few times, not once each.
BURST = timedelta(milliseconds=100)
# Time alone changes something too: a pod that should be gone is not counted. Kubernetes counts as often.
AGAIN = timedelta(minutes=5)
# A status that somebody else wrote may stand for a while, so that he can read it; Kubernetes leaves it for minutes.
PUT_RIGHT = timedelta(seconds=5)
PAGE = 500
IN_NAMESPACE = "namespace"


async def run(client: Client, clock: Clock, inventory: Inventory) -> None:
    """Count until cancelled."""
    counter = Counter(client, clock, inventory)
    async with asyncio.TaskGroup() as group:
        group.create_task(counter.quotas.run())
        await inventory.kinds.until(QUOTAS)    # before, nobody knows what there is to count
        group.create_task(counter.controller.run())


class Counter:
    """A key is that of a quota."""

    def __init__(self, client: Client, clock: Clock, inventory: Inventory) -> None:
        self._client = client
        self._clock = clock
        self._kinds = inventory.kinds
        self.quotas = Informer(client, QUOTAS, clock=clock, indexes={IN_NAMESPACE: lambda quota: [namespace_of(quota)]})
        self.controller: Controller[Key] = Controller(
            "quotas", self.reconcile, clock=clock, workers=2, informers=[self.quotas]
        )
        self.quotas.on_change(self._quota_changed)
        inventory.on_change(self._something_changed)
        self._kinds.on_change(self._kinds_changed)

    def _kinds_changed(self) -> None:
        for quota in self.quotas.copy.all():
            self.controller.queue.add(key_of(quota))

    def _quota_changed(self, before: Object | None, after: Object | None) -> None:
        if after is not None and (before is None or _hard(before) != _hard(after) or _is_uncounted(after)):
            self.controller.queue.add(key_of(after))
        elif after is not None and after["status"].get("hard") != _hard(after):
            self.controller.queue.add_at(key_of(after), self._clock.now() + PUT_RIGHT)

    def _something_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None or (before and after and not changes_with(item.resource)) or not is_counted(item.resource):
            return
        for quota in self.quotas.copy.by(IN_NAMESPACE, item.key.namespace):
            if names_of(item.resource, _hard(quota)):
                self.controller.queue.add_at(key_of(quota), self._clock.now() + BURST)

    async def reconcile(self, key: Key) -> datetime | None:
        if self.quotas.copy.get(key.namespace, key.name) is None:
            return None
        try:
            quota = await self._client.get(QUOTAS, key.name, key.namespace)
            if being_deleted(quota):
                return None
            found = [(resource, await self._objects(resource, key.namespace)) for resource in self._counted_in(quota)]
            status = counted(quota, found, self._clock.now())
            if status != quota.get("status"):
                await self._client.replace(QUOTAS, {**quota, "status": status}, subresource="status")
        except NotFound:
            return None    # deleted while we counted
        return self._clock.now() + AGAIN

    def _counted_in(self, quota: Object) -> Iterable[Resource]:
        """Kinds that a quota counts; a group may serve the same objects in several versions, so each place once."""
        kinds = {(kind.resource.group, kind.resource.plural): kind.resource
                 for kind in self._kinds.all() if kind.can("list") and is_counted(kind.resource)}
        return [resource for resource in kinds.values() if names_of(resource, _hard(quota))]

    async def _objects(self, resource: Resource, namespace: str) -> list[Object]:
        found: list[Object] = []
        accept, more = JSON if changes_with(resource) else METADATA_LIST, ""
        while True:
            page = await self._client.list(resource, namespace, limit=PAGE, more=more, accept=accept)
            found += page.items
            more = page.more
            if not more:
                return found


def _hard(quota: Object) -> Object:
    return (quota.get("spec") or {}).get("hard") or {}


def _is_uncounted(quota: Object) -> bool:
    return "hard" not in (quota.get("status") or {}) and bool(_hard(quota))
