"""Objects that pods refer to, each followed by itself: a node may read what its pods need, and nothing else.

A pod that waits for one of them is tried again when it appears; one whose volumes hold them is refreshed when they
change. Pods that refer to the same object share the watch of it, and read what it shows, as on a kubelet: a hundred
replicas that mount one ConfigMap cost one request and not a hundred.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeAlias

from trainmaster.api.claims import claims_of
from trainmaster.api.core import CLAIMS, CONFIG_MAPS, SECRETS
from trainmaster.api.meta import Object, Resource, namespace_of, revision_of
from trainmaster.cluster.kubelet import environment, volumefiles
from trainmaster.cluster.kubelet.containers import all_containers
from trainmaster.cluster.kubelet.life import Life
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer

CONFIG_ERROR = "CreateContainerConfigError"
PATIENCE = 2.0           # seconds that a watch may take to begin before the object is asked for by itself
Reference: TypeAlias = tuple[Resource, str, str]       # kind, namespace, name


class Following:
    """The watches of a node."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._tasks: dict[Reference, asyncio.Task[None]] = {}
        self._informers: dict[Reference, Informer] = {}
        self._lives: dict[Reference, dict[str, Life]] = {}

    def follow(self, life: Life) -> None:
        """Wake this pod whenever something changes that it refers to."""
        if life.followed:
            return
        life.followed = True
        for reference in references(life.pod):
            self._lives.setdefault(reference, {})[life.uid] = life
            if reference not in self._tasks:
                informer = self._informers[reference] = self._informer(reference)
                self._tasks[reference] = asyncio.create_task(informer.run())

    def leave(self, life: Life) -> None:
        if not life.followed:
            return
        life.followed = False
        for reference in references(life.pod):
            lives = self._lives.get(reference, {})
            lives.pop(life.uid, None)
            if not lives and reference in self._tasks:
                self._tasks.pop(reference).cancel()
                del self._lives[reference], self._informers[reference]

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    async def read(self, resource: Resource, name: str, namespace: str) -> Object:
        """The object as it was last shown; asked for, if it is not followed or not shown. Raises as `Client.get`."""
        informer = self._informers.get((resource, namespace, name))
        if informer is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    await informer.synced()
            if (shown := informer.copy.get(namespace, name)) is not None:
                return shown
        return await self._client.get(resource, name, namespace)

    def _informer(self, reference: Reference) -> Informer:
        resource, namespace, name = reference
        informer = Informer(
            self._client, resource, clock=self._clock, namespace=namespace, fields=f"metadata.name={name}"
        )
        informer.on_change(lambda _, after: self._tell(reference, after))
        return informer

    def _tell(self, reference: Reference, after: Object | None) -> None:
        resource, _, name = reference
        for life in self._lives.get(reference, {}).values():
            if resource != CLAIMS and after is None:
                life.stale = True
            elif resource != CLAIMS and after is not None:
                life.latest[resource.plural, name] = revision_of(after)
            held_back = [name for name, waiting in life.waiting.items() if waiting.reason == CONFIG_ERROR]
            if life.behind or life.blocked is not None or held_back:
                life.blocked = None
                for container in held_back:
                    del life.waiting[container]
                life.wake()


def references(pod: Object) -> Iterable[Reference]:
    """What the volumes and the environments of a pod need of others."""
    maps, secrets = volumefiles.references(pod)
    for container in all_containers(pod):
        more_maps, more_secrets = environment.references(container)
        maps, secrets = maps | more_maps, secrets | more_secrets
    namespace = namespace_of(pod)
    for resource, names in ((CONFIG_MAPS, maps), (SECRETS, secrets), (CLAIMS, set(claims_of(pod)))):
        for name in names:
            yield resource, namespace, name
