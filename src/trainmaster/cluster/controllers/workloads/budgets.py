"""PodDisruptionBudgets: how many of the pods that one selects may be taken away now. Pure but for the shell at the end.

Whoever evicts reads `disruptionsAllowed`: kubectl drain, and a scheduler that makes room.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

from trainmaster.api.core import PODS
from trainmaster.api.labels import holds
from trainmaster.api.meta import (
    Json,
    Key,
    Object,
    Resource,
    being_deleted,
    key_of,
    labels_of,
    metadata,
    namespace_of,
    timestamp,
)
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.cluster.controllers.workloads.following import IN_NAMESPACE, workloads
from trainmaster.cluster.controllers.workloads.pods import has_ended, is_ready
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
BURST = timedelta(milliseconds=100)
ALLOWED = "DisruptionAllowed"


def status(budget: Object, pods: Sequence[Object], now: datetime) -> Object:
    """What a budget says of the pods that it selects."""
    spec, was = budget.get("spec") or {}, budget.get("status") or {}
    expected = [pod for pod in pods if not has_ended(pod)]
    healthy = sum(1 for pod in expected if is_ready(pod) and not being_deleted(pod))
    desired = _desired(spec, len(expected))
    allowed = max(0, healthy - desired) if expected else 0
    return {
        **{field: value for field, value in was.items() if field == "disruptedPods"},
        "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": len(expected),
        "disruptionsAllowed": allowed, "observedGeneration": int(metadata(budget).get("generation") or 0),
        "conditions": _conditions(budget, was.get("conditions") or [], allowed, now),
    }


def _desired(spec: Object, expected: int) -> int:
    if spec.get("maxUnavailable") is not None:
        return max(0, expected - _share(spec["maxUnavailable"], expected))
    return _share(spec["minAvailable"], expected) if spec.get("minAvailable") is not None else min(1, expected)


def _share(value: Json, whole: int) -> int:
    return ceil(int(value.removesuffix("%")) * whole / 100) if isinstance(value, str) else int(value)


def _conditions(budget: Object, was: Sequence[Object], allowed: int, now: datetime) -> list[Object]:
    truth, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    said = {"type": ALLOWED, "status": truth, "reason": reason, "message": "", "lastTransitionTime": timestamp(now),
            "observedGeneration": int(metadata(budget).get("generation") or 0)}
    known = next((each for each in was if each.get("type") == ALLOWED), None)
    if known is not None and known.get("status") == truth:
        said["lastTransitionTime"] = known["lastTransitionTime"]
    return [*(each for each in was if each is not known), said]


def _kept(pod: Object) -> Object:
    found, about = pod.get("status") or {}, metadata(pod)
    fields = ("name", "namespace", "uid", "resourceVersion", "labels", "deletionTimestamp")
    conditions = [each for each in found.get("conditions") or () if each.get("type") == "Ready"]
    return {"metadata": {field: about[field] for field in fields if field in about},
            "status": {"phase": found.get("phase"), "conditions": conditions}}


class Budgets:
    """A key is that of a budget."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
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
                if holds(_selector(budget), labels_of(pod)):
                    self._controller.queue.add_at(key_of(budget), self._clock.now() + BURST)

    async def _reconcile(self, key: Key) -> datetime | None:
        budget = self._budgets.copy.get(key.namespace, key.name)
        if budget is None:
            return None
        there = self._pods.copy.by(IN_NAMESPACE, key.namespace)
        found = status(budget, [pod for pod in there if holds(_selector(budget), labels_of(pod))], self._clock.now())
        if found != budget.get("status"):
            try:
                await self._client.replace(BUDGETS, {**budget, "status": found}, subresource="status")
            except NotFound:
                return None
        return None


def _selector(budget: Object) -> Object:
    return (budget.get("spec") or {}).get("selector") or {}
