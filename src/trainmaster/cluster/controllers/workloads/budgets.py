"""PodDisruptionBudgets: how many of the pods that one selects may be taken away now. Pure but for the shell at the end.

The server pays evictions from `disruptionsAllowed` and notes them in `disruptedPods`; here they are counted.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from math import ceil

from trainmaster.api.budgets import BUDGETS, said, selects
from trainmaster.api.core import PODS, REPLICA_SETS
from trainmaster.api.meta import (
    Json,
    Key,
    Object,
    being_deleted,
    controller_of,
    key_of,
    labels_of,
    metadata,
    moment,
    name_of,
    namespace_of,
)
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.cluster.controllers.workloads.following import IN_NAMESPACE, workloads
from trainmaster.cluster.controllers.workloads.pods import is_ready
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

BURST = timedelta(milliseconds=100)
DELETION_TIMEOUT = timedelta(minutes=2)    # an evicted pod that is still there after this was not deleted


class Unscaled(Exception):
    """Nobody says how many pods there should be."""


def needs_scale(budget: Object) -> bool:
    """Whether pods are counted against what their controllers want, and not against themselves."""
    spec = budget.get("spec") or {}
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def status(budget: Object, pods: Sequence[Object], scale: int, now: datetime) -> Object:
    """What a budget says of the pods that it selects; `scale` is how many their controllers want."""
    going = evicted(budget, pods, now)
    expected, desired = _wanted(budget.get("spec") or {}, len(pods), scale)
    healthy = sum(1 for pod in pods if is_ready(pod) and not being_deleted(pod) and name_of(pod) not in going)
    allowed = max(0, healthy - desired) if expected else 0
    return {
        **({"disruptedPods": going} if going else {}),
        "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected,
        "disruptionsAllowed": allowed, "observedGeneration": int(metadata(budget).get("generation") or 0),
        "conditions": said(budget, allowed, now),
    }


def failed(budget: Object, why: str, now: datetime) -> Object:
    """Nobody may be evicted while nobody knows how many may."""
    return {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, **(budget.get("status") or {}),
            "disruptionsAllowed": 0, "conditions": said(budget, 0, now, why)}


def evicted(budget: Object, pods: Sequence[Object], now: datetime) -> dict[str, str]:
    """Pods whose eviction was paid for and whose end is not seen yet, with when that was."""
    noted = (budget.get("status") or {}).get("disruptedPods") or {}
    return {name: noted[name] for pod in pods for name in [name_of(pod)]
            if name in noted and not being_deleted(pod) and moment(noted[name]) + DELETION_TIMEOUT >= now}


def _wanted(spec: Object, there: int, scale: int) -> tuple[int, int]:
    """How many pods are expected, and how many of them must be healthy."""
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if most is not None:
        return scale, max(0, scale - _share(most, scale))
    if least is None:
        return 0, 0
    return (scale, _share(least, scale)) if isinstance(least, str) else (there, int(least))


def _share(value: Json, whole: int) -> int:
    return ceil(int(value.removesuffix("%")) * whole / 100) if isinstance(value, str) else int(value)


def _kept(pod: Object) -> Object:
    found, about = pod.get("status") or {}, metadata(pod)
    fields = ("name", "namespace", "uid", "resourceVersion", "labels", "deletionTimestamp", "ownerReferences")
    conditions = [each for each in found.get("conditions") or () if each.get("type") == "Ready"]
    return {"metadata": {field: about[field] for field in fields if field in about},
            "status": {"phase": found.get("phase"), "conditions": conditions}}


class Budgets:
    """A key is that of a budget."""

    def __init__(self, client: Client, clock: Clock, kinds: Kinds) -> None:
        self._client = client
        self._kinds = kinds
        self._clock = clock
        self._budgets = workloads(client, BUDGETS, clock)
        self._pods = Informer(
            Reduced(client, _kept), PODS, clock=clock, indexes={IN_NAMESPACE: lambda pod: [namespace_of(pod)]})
        self._controller: Controller[Key] = Controller(
            "budgets", self._reconcile, clock=clock, workers=2, informers=[self._budgets, self._pods])
        self._budgets.on_change(lambda before, after: self._controller.queue.add(key_of(after or before or {})))
        self._pods.on_change(self._pod_changed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for work in (self._budgets.run(), self._pods.run(), self._controller.run()):
                group.create_task(work)

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        for pod in (each for each in (before, after) if each is not None):
            for budget in self._budgets.copy.by(IN_NAMESPACE, namespace_of(pod)):
                if selects(budget, labels_of(pod)):
                    self._controller.queue.add_at(key_of(budget), self._clock.now() + BURST)

    async def _reconcile(self, key: Key) -> datetime | None:
        budget = self._budgets.copy.get(key.namespace, key.name)
        if budget is None:
            return None
        there = [pod for pod in self._pods.copy.by(IN_NAMESPACE, key.namespace) if selects(budget, labels_of(pod))]
        now = self._clock.now()
        try:
            scale = await self._scale(key.namespace, there) if needs_scale(budget) else 0
            found = status(budget, there, scale, now)
        except Unscaled as why:
            found = failed(budget, str(why), now)
        if found != budget.get("status"):
            try:
                await self._client.replace(BUDGETS, {**budget, "status": found}, subresource="status")
            except NotFound:
                return None
        waiting = [moment(each) + DELETION_TIMEOUT for each in found.get("disruptedPods", {}).values()]
        return min(waiting) + BURST if waiting else None

    async def _scale(self, namespace: str, pods: Sequence[Object]) -> int:
        """How many pods their controllers want, together. Raises Unscaled."""
        found: dict[str, int] = {}
        asked: set[str] = set()
        for pod in pods:
            owner = controller_of(pod)
            if owner is None or owner["uid"] in asked:
                continue
            asked.add(owner["uid"])
            if owner.get("kind") == REPLICA_SETS.kind:
                with suppress(NotFound):
                    owner = controller_of(await self._client.get(REPLICA_SETS, owner["name"], namespace)) or owner
            scale = await self._scale_of(namespace, owner, name_of(pod))
            found[owner["uid"]] = int((scale.get("spec") or {}).get("replicas") or 0)
        return sum(found.values())

    async def _scale_of(self, namespace: str, owner: Object, pod: str) -> Object:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = self._kinds.find(group, owner["kind"])
        if kind is None:
            raise Unscaled(f'found no controllers for pod "{pod}"')
        try:
            return await self._client.get(kind.resource, owner["name"], namespace, subresource="scale")
        except NotFound as error:
            place = f"{kind.resource.plural}.{group}" if group else kind.resource.plural
            raise Unscaled(f"{place} does not implement the scale subresource") from error
