"""The end of a namespace: everything in it is deleted, then its finalizer is taken off and it is gone."""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta

from trainmaster.api.core import NAMESPACES
from trainmaster.api.meta import Object, being_deleted, key_of, name_of
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import served
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

# What is left may need time: pods end with grace, finalizers belong to others. Nothing tells us of the last object of
# an unknown kind, so we look again.
LOOK_AGAIN = timedelta(milliseconds=500)


async def run(client: Client, clock: Clock) -> None:
    """Empty and remove namespaces that are being deleted, until cancelled."""
    informer = Informer(client, NAMESPACES, clock=clock)

    async def reconcile(name: str) -> datetime | None:
        namespace = informer.copy.get("", name)
        if namespace is None or not being_deleted(namespace):
            return None
        if await _empty(client, name):
            return clock.now() + LOOK_AGAIN
        kept = [one for one in namespace["spec"].get("finalizers", ()) if one != "kubernetes"]
        body = {**namespace, "spec": {**namespace["spec"], "finalizers": kept}}
        with suppress(NotFound):
            await client.replace(NAMESPACES, body, subresource="finalize")
        return None

    controller: Controller[str] = Controller("namespaces", reconcile, clock=clock, workers=2, informers=[informer])

    def changed(_before: Object | None, after: Object | None) -> None:
        if after is not None and being_deleted(after):
            controller.queue.add(name_of(after))

    informer.on_change(changed)
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run())
        group.create_task(controller.run())


async def _empty(client: Client, namespace: str) -> int:
    """Delete what is in the namespace; how many objects were still there."""
    left = 0
    for kind in await served(client):
        if not kind.resource.namespaced or not kind.can("list", "delete"):
            continue
        page = await client.list(kind.resource, namespace)
        left += len(page.items)
        for thing in page.items:
            if not being_deleted(thing):
                try:
                    await client.delete(kind.resource, key_of(thing).name, namespace, propagation="Background")
                except NotFound:
                    continue
    return left
