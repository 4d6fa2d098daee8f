"""Endpoints and EndpointSlices follow the pods that services select.

Two controllers over the same local copies, so that one kind that fails or is not served holds up nobody. A pod wakes
the services that select it, before or after its change; what follows is computed anew from all pods of the service.

Pods are followed from the first service on that selects any: they are the most numerous and the busiest of all, and a
cluster without such a service would pay for each of their changes and use none.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from trainmaster.api.core import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from trainmaster.api.meta import (
    Key,
    Object,
    Resource,
    being_deleted,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    revision_of,
    uid_of,
)
from trainmaster.cluster.controllers import backing
from trainmaster.cluster.controllers.backing import Selectors, is_backed, is_headless
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.cluster.controllers.refusals import namespace_is_ending
from trainmaster.cluster.controllers.slices import MANAGED_BY, MANAGER, SERVICE_NAME, changes
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Forbidden, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

# News about pods comes in bursts. Waiting so long, a service of a thousand pods is written a few times and not a
# thousand. Names are answered from the pods themselves and do not wait for this.
BURST = timedelta(milliseconds=50)
# Nobody sends anything by what is written about a headless service: it is there to be read. A job has one for each
# replica, and all of their pods begin at the same moment as these, which must not be the moment to write about them.
UNHURRIED = timedelta(seconds=1)
LABEL = "label"
OF_SERVICE = "service"


async def run(client: Client, clock: Clock, kinds: Kinds) -> None:
    """Keep them true until cancelled; slices from the moment the server has them."""
    follower = Follower(client, clock)
    async with asyncio.TaskGroup() as group:
        for informer in (follower.services, follower.endpoints):
            group.create_task(informer.run())
        group.create_task(_run_slices(follower, kinds, group))
        await follower.needed.wait()
        group.create_task(follower.pods.run())
        group.create_task(follower.endpoints_controller.run())


async def _run_slices(follower: "Follower", kinds: Kinds, group: asyncio.TaskGroup) -> None:
    await kinds.until(ENDPOINT_SLICES)
    group.create_task(follower.slices.run())
    await follower.needed.wait()
    group.create_task(follower.slices_controller.run())


class Follower:
    """Services, pods and what stands for them; keys are those of services."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._selectors = Selectors()
        self._ended: set[Key] = set()    # services that went while we looked: whatever Endpoints they had go too
        self.needed = asyncio.Event()    # there is a service with pods, or something left of one
        self.services = Informer(Reduced(client, backing.service_kept), SERVICES, clock=clock)
        self.pods = Informer(Reduced(client, backing.pod_kept), PODS, clock=clock, indexes={LABEL: _labels})
        self.endpoints = Informer(client, ENDPOINTS, clock=clock)
        self.slices = Informer(
            client, ENDPOINT_SLICES, clock=clock, labels=f"{MANAGED_BY}={MANAGER}", indexes={OF_SERVICE: _service}
        )
        both = (self.services, self.pods)
        self.endpoints_controller: Controller[Key] = Controller(
            "endpoints", self.reconcile_endpoints, clock=clock, workers=4, informers=[*both, self.endpoints]
        )
        self.slices_controller: Controller[Key] = Controller(
            "endpoint-slices", self.reconcile_slices, clock=clock, workers=4, informers=[*both, self.slices]
        )
        self.services.on_change(self._service_changed)
        self.pods.on_change(self._pod_changed)
        self.endpoints.on_change(self._endpoints_changed)
        self.slices.on_change(self._slice_changed)

    def _service_changed(self, before: Object | None, after: Object | None) -> None:
        key = key_of(after or before or {})
        if after is None:
            self._selectors.drop(key)
            self._ended.add(key)
            self.needed.set()
        else:
            if before is not None and backing.unchanged(before, after):
                return
            self._selectors.put(key, after["spec"].get("selector") or {})
            self._ended.discard(key)
            if is_backed(after):
                self.needed.set()
        if after is not None and is_headless(after):
            self._look(key, UNHURRIED)
        else:
            self.endpoints_controller.queue.add(key)
            self.slices_controller.queue.add(key)

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if before is not None and after is not None and backing.unchanged(before, after):
            return
        for pod in (before, after):
            for key in self._selectors.selecting(namespace_of(pod), labels_of(pod)) if pod is not None else ():
                service = self.services.copy.get(key.namespace, key.name)
                self._look(key, UNHURRIED if service is not None and is_headless(service) else BURST)

    def _look(self, key: Key, after: timedelta) -> None:
        moment = self._clock.now() + after
        self.endpoints_controller.queue.add_at(key, moment)
        self.slices_controller.queue.add_at(key, moment)

    def _endpoints_changed(self, before: Object | None, after: Object | None) -> None:
        if labels_of(after or {}).get(backing.MANAGED_BY) == backing.MANAGER:
            self.needed.set()
        self.endpoints_controller.queue.add(key_of(after or before or {}))

    def _slice_changed(self, before: Object | None, after: Object | None) -> None:
        for one in (before, after):
            if one is not None and (name := labels_of(one).get(SERVICE_NAME)):
                self.needed.set()
                self.slices_controller.queue.add(Key(namespace_of(one), name))

    def _backing(self, service: Object) -> list[Object]:
        """The pods that a service selects, found through the rarest of the labels it asks for."""
        selector = service["spec"]["selector"]
        namespace = namespace_of(service)
        candidates = min((self.pods.copy.by(LABEL, _label(namespace, *pair)) for pair in selector.items()), key=len)
        return [pod for pod in candidates if selector.items() <= labels_of(pod).items()]

    async def reconcile_endpoints(self, key: Key) -> datetime | None:
        service = self.services.copy.get(key.namespace, key.name)
        found = self.endpoints.copy.get(key.namespace, key.name)
        if service is None:
            ours = found is not None and labels_of(found).get(backing.MANAGED_BY) == backing.MANAGER
            if found is not None and (ours or key in self._ended):
                with suppress(NotFound):
                    await self._client.delete(ENDPOINTS, key.name, key.namespace, uid=uid_of(found))
            self._ended.discard(key)
            return None
        if not is_backed(service):
            return None
        wanted = backing.endpoints(service, self._backing(service), found)
        if found is None:
            await self._create([wanted], ENDPOINTS)
        elif not backing.same_endpoints(wanted, found):
            await self._client.replace(ENDPOINTS, wanted)
        return None

    async def reconcile_slices(self, key: Key) -> datetime | None:
        service = self.services.copy.get(key.namespace, key.name)
        existing = [one for one in self.slices.copy.by(OF_SERVICE, str(key)) if not being_deleted(one)]
        if service is None:
            await self._delete(existing)
        elif is_backed(service) and not being_deleted(service):
            todo = changes(service, self._backing(service), existing)
            await self._create(todo.create, ENDPOINT_SLICES)
            for one in todo.update:
                await self._client.replace(ENDPOINT_SLICES, one)
            await self._delete(todo.delete)
        return None

    async def _create(self, things: Iterable[Object], resource: Resource) -> None:
        for thing in things:
            try:
                await self._client.create(resource, thing)
            except AlreadyExists:
                continue    # its watch is about to show it
            except NotFound:
                return    # the namespace went
            except Forbidden as error:
                if not namespace_is_ending(error):
                    raise
                return

    async def _delete(self, slices: Iterable[Object]) -> None:
        for one in slices:
            with suppress(NotFound):
                await self._client.delete(
                    ENDPOINT_SLICES, name_of(one), namespace_of(one), uid=uid_of(one), revision=revision_of(one)
                )


def _labels(pod: Object) -> Iterable[str]:
    namespace = namespace_of(pod)
    return (_label(namespace, key, value) for key, value in labels_of(pod).items())


def _label(namespace: str, key: str, value: str) -> str:
    return f"{namespace}/{key}={value}"


def _service(one: Object) -> Iterable[str]:
    name = labels_of(one).get(SERVICE_NAME)
    return [str(Key(namespace_of(one), name))] if name else []
