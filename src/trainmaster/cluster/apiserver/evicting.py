"""Evictions: deletions that ask a disruption budget first.

`verdict` is the whole decision, pure. Carrying it out is three writes, as in Kubernetes: the budget pays (decided anew
on its newest state, so that two evictions never share one allowance), the pod is told why, the pod is deleted. One
transaction over budget and pod was rejected: clients and controllers see the steps, and a pod that is not deleted
after the budget paid gives its allowance back when the controller counts again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from trainmaster.api import budgets
from trainmaster.api.budgets import BUDGETS
from trainmaster.api.meta import Object, Resource, labels_of, name_of, timestamp
from trainmaster.cluster.apiserver import failures, lifecycle, managers
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.lifecycle import DeleteOptions
from trainmaster.cluster.apiserver.options import Options
from trainmaster.cluster.apiserver.resources import Resources
from trainmaster.cluster.store import Store
from trainmaster.runtime.clock import Clock

TRIES = 20    # for an eviction of a pod that keeps changing
MOST_UNCONFIRMED = 2000
RETRY_SECONDS = 10
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_NAMED = Resource("policy", "v1", "poddisruptionbudget", "PodDisruptionBudget")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who must pay for an eviction, and whether it holds only for the pod as it is."""

    payer: str = ""
    as_it_is: bool = False
    guarded: str = ""    # the budget that an unready pod has


def verdict(pod: Object, found: Sequence[Object]) -> Verdict:
    """What the budgets that select a pod mean for its eviction. Raises Failure 500 when there are several."""
    phase = (pod.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed") or pod["metadata"].get("deletionTimestamp"):
        return Verdict()
    if phase == "Pending":
        return Verdict(as_it_is=True)
    if not found:
        return Verdict()
    if len(found) > 1:
        raise failures.unexpected(SEVERAL)
    budget, name = found[0], name_of(found[0])
    if not _ready(pod):
        status = budget.get("status") or {}
        desired = int(status.get("desiredHealthy") or 0)
        enough = desired > 0 and int(status.get("currentHealthy") or 0) >= desired
        if enough or (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return Verdict(as_it_is=True, guarded=name)
    return Verdict(payer=name)


def paid(budget: Object, pod: str, now: datetime) -> Object:
    """A budget after one more eviction. Raises Failure 403 or 429."""
    status, name = budget.get("status") or {}, name_of(budget)
    if int(status.get("observedGeneration") or 0) < int(budget["metadata"].get("generation") or 0):
        raise unsettled(name)
    allowed, disrupted = int(status.get("disruptionsAllowed") or 0), status.get("disruptedPods") or {}
    if allowed < 0:
        raise failures.forbidden(_NAMED, name, "pdb disruptions allowed is negative")
    if len(disrupted) > MOST_UNCONFIRMED:
        raise failures.forbidden(
            _NAMED, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _refused(_why(name, status))
    left = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod: timestamp(now)}}
    if allowed == 1:
        left["conditions"] = budgets.said(budget, 0, now)
    return {**budget, "status": left}


def unsettled(budget: str) -> Failure:
    """429: what the budget says is not about the present."""
    return _refused(f"The disruption budget {budget} is still being processed by the server.", RETRY_SECONDS)


def _refused(why: str, retry_after: int = 0) -> Failure:
    details: Object = {"causes": [Cause("", "DisruptionBudget", why).document()]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    headers = {"Retry-After": str(retry_after)} if retry_after else None
    return Failure(429, "TooManyRequests", REFUSED, details, headers=headers)


def _why(name: str, status: Object) -> str:
    conditions = status.get("conditions") or ()
    refused = (each for each in conditions if each.get("type") == budgets.ALLOWED and each.get("status") == "False")
    told: Object = next((each for each in refused if each.get("message")), {})
    current, desired = int(status.get("currentHealthy") or 0), int(status.get("desiredHealthy") or 0)
    no = f"The disruption budget {name} does not allow evicting pods currently"
    if told.get("reason") == budgets.FAILED:
        return f"{no} because it failed sync: {told['message']}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    return f"{no} ({told['reason']}): {told['message']}" if told else no


def told(pod: Object, now: datetime) -> Object:
    """A pod with the reason for its end among its conditions."""
    status = pod.setdefault("status", {})
    was: Object = next((each for each in status.get("conditions") or () if each.get("type") == "DisruptionTarget"), {})
    since = was["lastTransitionTime"] if was.get("status") == "True" else timestamp(now)
    condition = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None, "lastTransitionTime": since,
                 "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    status["conditions"] = [*(each for each in status.get("conditions") or () if each is not was), condition]
    return pod


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


@dataclass(frozen=True, slots=True)
class Evictions:
    """The shell."""

    store: Store
    catalog: Catalog
    resources: Resources
    clock: Clock

    async def evict(self, kind: Kind, namespace: str, name: str, asked: DeleteOptions) -> None:
        """Raises Failure, 429 when a budget does not allow it."""
        for attempt in range(1, TRIES + 1):
            pod = orjson.loads(self.resources.get(kind, namespace, name))
            decided = verdict(pod, self._budgets(namespace, pod))
            if decided.payer:
                await self._pay(namespace, decided.payer, name, dry_run=asked.dry_run)
            options = asked
            if decided.as_it_is and not asked.revision:
                options = replace(asked, revision=pod["metadata"]["resourceVersion"])
            try:
                return await self._delete(kind, namespace, name, options)
            except Failure as failure:
                if failure.code != 409 or options is asked:
                    raise
                if decided.guarded:
                    raise unsettled(decided.guarded) from failure
                if attempt == TRIES:
                    raise
        return None

    def _budgets(self, namespace: str, pod: Object) -> list[Object]:
        records = self.store.scan(f"{self._kind().prefix}{namespace}/")
        found = (orjson.loads(record.value) for record in records)
        return [budget for budget in found if budgets.selects(budget, labels_of(pod))]

    def _kind(self) -> Kind:
        kind = self.catalog.find(BUDGETS.group, BUDGETS.version, BUDGETS.plural)
        assert kind is not None
        return kind

    async def _pay(self, namespace: str, budget: str, pod: str, *, dry_run: bool) -> None:
        options = Options(dry_run=dry_run, manager=managers.SERVER)
        await self.resources.change(self._kind(), namespace, budget, "status",
                                    lambda newest: paid(newest, pod, self.clock.now()), options)

    async def _delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> None:
        def edit(pod: Object) -> Object:
            lifecycle.precondition(kind, pod, options)
            return told(pod, self.clock.now())

        if not options.dry_run:
            written = await self.resources.change(kind, namespace, name, "status", edit, Options())
            if options.revision:
                revision = orjson.loads(written.value)["metadata"]["resourceVersion"]
                options = replace(options, revision=revision)
        await self.resources.delete(kind, namespace, name, options)
