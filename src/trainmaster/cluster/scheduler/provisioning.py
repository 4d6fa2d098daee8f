"""Before a pod is bound: the volumes of its claims that wait for a consumer.

The order is that of Kubernetes. The pod's node is noted on the claim (or a volume that is free there is kept for it),
the volume controller and the provisioner do their part, and when every claim is bound the pod may be. All that is noted
is in the API: who dies meanwhile leaves a claim that is bound, or one whose selected node the next decision keeps to.

Waiting is done for each pod on its own, woken by changes of its claims, of itself, and by nothing else.
"""

import asyncio
from collections.abc import Mapping

from trainmaster.api.core import CLAIMS, PERSISTENT_VOLUMES
from trainmaster.api.meta import Key, Object, being_deleted, key_of, name_of, revision_of, uid_of
from trainmaster.api.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    best_volume,
    points_to,
    reference_to,
    selected_node,
)
from trainmaster.cluster.scheduler.mirror import Mirror
from trainmaster.cluster.scheduler.settings import Binding
from trainmaster.cluster.scheduler.volumes import is_bound, usable_on
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Conflict, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.first import first
from trainmaster.runtime.store import older

PATIENCE = 600.0      # seconds until the pod is looked at anew, as kube-scheduler's bindTimeoutSeconds
AGAIN = 1.0           # seconds after which a write that came too late is tried again, if no change tells earlier


class Unprovided(Exception):
    """The volumes do not come; the message is what the pod is told."""


class PodGone(Exception):
    """The pod needs no place any more."""


class Provisioning:
    """Gets the volumes of pods that were given a node."""

    def __init__(self, client: Client, clock: Clock, mirror: Mirror, gate: asyncio.Semaphore) -> None:
        self._client = client
        self._clock = clock
        self._mirror = mirror
        self._gate = gate
        self._waiting: dict[Key, set[asyncio.Event]] = {}     # by claim and by pod; whose key it is does not matter
        for informer in (mirror.claims, mirror.pods):
            informer.on_change(self._changed)

    def needed(self, binding: Binding) -> bool:
        """Whether the pod has a claim that is not bound yet."""
        return any(claim is None or not is_bound(claim) for claim in self._claims_of(binding).values())

    async def provided(self, binding: Binding) -> None:
        """Return when every claim of the pod is bound to a volume of its node.

        Raises Unprovided, PodGone, and KubeError.
        """
        until = self._clock.monotonic() + PATIENCE
        asked: dict[str, str] = {}                            # claim -> the revision in which we asked for its volume
        keys = [binding.pod, *(Key(binding.pod.namespace, name) for name in self._claims_of(binding))]
        news = asyncio.Event()
        for key in keys:
            self._waiting.setdefault(key, set()).add(news)
        try:
            while True:
                news.clear()
                pause = await self._look(binding, asked)
                if pause is None:
                    return
                left = until - self._clock.monotonic()
                if left <= 0:
                    raise Unprovided("context deadline exceeded")
                await first(news.wait(), self._clock.sleep(min(pause, left)))
        finally:
            for key in keys:
                self._waiting[key].discard(news)
                if not self._waiting[key]:
                    del self._waiting[key]

    async def _look(self, binding: Binding, asked: dict[str, str]) -> float | None:
        """Ask for what is missing; how long to wait for a change, None if nothing is missing."""
        pod = self._mirror.pods.copy.get(binding.pod.namespace, binding.pod.name)
        if pod is None or uid_of(pod) != binding.uid or being_deleted(pod) or pod["spec"].get("nodeName"):
            raise PodGone
        pause = None
        for name, claim in self._claims_of(binding).items():
            if claim is None or being_deleted(claim):
                raise Unprovided(f'persistentvolumeclaim "{name}" ' + ("is being deleted" if claim else "not found"))
            if is_bound(claim):
                await self._check(binding, claim)
                continue
            pause = PATIENCE if pause is None else pause
            if claim["spec"].get("volumeName") or older(revision_of(claim), asked.get(name, "")):
                continue                                      # the last step is to come, or the watch is behind
            there = selected_node(claim)
            if there and not self._mirror.snapshot.storage.together(there, binding.node):
                raise Unprovided(f'node "{there}" was selected for PVC "{name}"')
            if not there and asked.get(name):
                raise Unprovided(f'provisioning failed for PVC "{name}"')
            if not there:
                try:
                    asked[name] = await self._ask(claim, binding)
                except (Conflict, NotFound):                  # it changed meanwhile
                    pause = AGAIN
        return pause

    async def _ask(self, claim: Object, binding: Binding) -> str:
        """Keep a volume for the claim, or have one made: the claim's revision then, "" if the volume tells."""
        volumes = self._mirror.volumes.copy.all()
        found = best_volume(claim, volumes, usable_on(binding.node, self._labels(binding.node)))
        async with self._gate:
            if found is None:
                about = {"uid": uid_of(claim), "resourceVersion": revision_of(claim),
                         "annotations": {SELECTED_NODE: binding.node}}
                key = key_of(claim)
                return revision_of(await self._client.patch(CLAIMS, key.name, key.namespace, {"metadata": about}))
            if not points_to(found, claim):
                about = {"uid": uid_of(found), "resourceVersion": revision_of(found),
                         "annotations": {BOUND_BY_CONTROLLER: "yes"}}
                await self._client.patch(PERSISTENT_VOLUMES, name_of(found), "", {
                    "metadata": about, "spec": {"claimRef": reference_to(claim)}})
        return ""

    async def _check(self, binding: Binding, claim: Object) -> None:
        name = str(claim["spec"]["volumeName"])
        volume = self._mirror.volumes.copy.get("", name)
        if volume is None:                                    # the two watches are not in step
            async with self._gate:
                volume = await self._client.get(PERSISTENT_VOLUMES, name)
        if not usable_on(binding.node, self._labels(binding.node))(volume):
            raise Unprovided(f'pv "{name}" node affinity doesn\'t match node "{binding.node}"')

    def _claims_of(self, binding: Binding) -> dict[str, Object | None]:
        pod = self._mirror.snapshot.pods.get(binding.uid)
        if pod is None or not pod.demands.claims or not self._mirror.snapshot.storage.known:
            return {}
        return {name: self._mirror.claims.copy.get(binding.pod.namespace, name) for name in pod.demands.claims}

    def _labels(self, node: str) -> Mapping[str, str]:
        known = self._mirror.snapshot.nodes.get(node)
        return known.labels if known is not None else {}

    def _changed(self, before: Object | None, after: Object | None) -> None:
        for event in self._waiting.get(key_of(after or before or {}), ()):
            event.set()
