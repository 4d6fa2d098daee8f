"""ReplicaSets and ReplicationControllers: how many pods to make, which to delete, what the status says. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.meta import Object, being_deleted, labels_of, metadata, timestamp
from trainmaster.cluster.controllers.workloads.pods import (
    DELETION_COST,
    available_at,
    created,
    has_ended,
    is_active,
    is_available,
    is_ready,
    phase_of,
    ready_since,
    restarts_of,
)

# Made or deleted in one look, as in Kubernetes; the pods themselves cause the next one.
MOST_AT_ONCE = 500
FAILURE = "ReplicaFailure"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True)
class Plan:
    create: int = 0
    delete: tuple[Object, ...] = ()


def plan(owner: Object, pods: Sequence[Object]) -> Plan:
    """What brings the pods to the number that is wanted."""
    active = [pod for pod in pods if is_active(pod)]
    more = wanted(owner) - len(active)
    if being_deleted(owner) or not more:
        return Plan()
    if more > 0:
        return Plan(create=min(more, MOST_AT_ONCE))
    return Plan(delete=tuple(doomed(active)[:min(-more, MOST_AT_ONCE)]))


def wanted(owner: Object) -> int:
    replicas = (owner.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def doomed(pods: Iterable[Object]) -> list[Object]:
    """Pods in the order in which they are given up: those that do least first, of equals the youngest."""
    found = list(pods)
    crowd = Counter((pod.get("spec") or {}).get("nodeName") for pod in found)

    def worth(pod: Object) -> tuple[object, ...]:
        node, since = (pod.get("spec") or {}).get("nodeName"), ready_since(pod)
        return (
            bool(node), _PHASES.get(phase_of(pod), 0), is_ready(pod), _cost(pod),
            -crowd[node], -(since.timestamp() if since is not None else 0), -restarts_of(pod),
        )

    youngest_first = sorted(found, key=created, reverse=True)
    return sorted(youngest_first, key=worth)


def status(
    owner: Object, pods: Sequence[Object], failure: str, now: datetime, *, counts_terminating: bool = True
) -> Object:
    """The status, from the pods that were there before this look. `failure`: why something could not be done."""
    spec, was = owner.get("spec") or {}, owner.get("status") or {}
    active = [pod for pod in pods if is_active(pod)]
    wait, template = int(spec.get("minReadySeconds") or 0), (spec.get("template") or {}).get("metadata") or {}
    labelled = (template.get("labels") or {}).items()
    found: Object = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(labelled <= labels_of(pod).items() for pod in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(is_available(pod, wait, now) for pod in active),
        "observedGeneration": metadata(owner).get("generation") or 0,
        "conditions": _conditions(was.get("conditions") or [], failure, wanted(owner) - len(active), now),
    }
    kept = {field: value for field, value in found.items() if value or field == "replicas"}
    if counts_terminating:
        kept["terminatingReplicas"] = sum(1 for pod in pods if being_deleted(pod) and not has_ended(pod))
    return kept


def look_again_at(owner: Object, pods: Iterable[Object], now: datetime) -> datetime | None:
    """When the next pod that is ready will have been so for long enough."""
    wait = int((owner.get("spec") or {}).get("minReadySeconds") or 0)
    moments = [at for pod in pods if wait and is_active(pod) and (at := available_at(pod, wait)) and at > now]
    return min(moments, default=None)


def _conditions(was: list[Object], failure: str, lacking: int, now: datetime) -> list[Object]:
    known = [each for each in was if each.get("type") == FAILURE]
    if failure and not known:
        reason = "FailedCreate" if lacking > 0 else "FailedDelete"
        known = [{"type": FAILURE, "status": "True", "reason": reason, "message": failure,
                  "lastTransitionTime": timestamp(now)}]
    elif not failure:
        known = []
    return [*(each for each in was if each.get("type") != FAILURE), *known]


def _cost(pod: Object) -> int:
    try:
        return int((metadata(pod).get("annotations") or {}).get(DELETION_COST, 0))
    except ValueError:
        return 0
