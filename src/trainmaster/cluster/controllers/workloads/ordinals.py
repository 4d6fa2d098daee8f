"""StatefulSets: which ordinal is made, which pod goes next, what the status says. Pure.

In order means one at a time: a pod is made when those before it are ready, and goes when those after it are gone. A
rolling update goes from the last to the first, down to the partition, and waits for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.meta import Json, Object, being_deleted, labels_of, metadata, name_of
from trainmaster.cluster.controllers.workloads.pods import (
    available_at,
    from_template,
    has_ended,
    is_available,
    is_ready,
    phase_of,
    reference,
)
from trainmaster.cluster.controllers.workloads.replicas import MOST_AT_ONCE, wanted

HASH = "controller-revision-hash"
POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


@dataclass(frozen=True, slots=True)
class Plan:
    create: tuple[int, ...] = ()
    delete: tuple[Object, ...] = ()


def ordinal_of(owner: Object, pod: Object) -> int:
    """The number in a pod's name, or -1 if the name is not one of this set."""
    prefix, _, number = name_of(pod).rpartition("-")
    return int(number) if prefix == name_of(owner) and number.isdecimal() else -1


def ordinals(owner: Object) -> range:
    first = int((owner["spec"].get("ordinals") or {}).get("start") or 0)
    return range(first, first + wanted(owner))


def plan(owner: Object, pods: Sequence[Object], update: str, now: datetime) -> Plan:
    """The next step. `update` is the name of the revision of the set's own template."""
    if being_deleted(owner):
        return Plan()
    there = {ordinal_of(owner, pod): pod for pod in pods if ordinal_of(owner, pod) >= 0}
    in_order = owner["spec"].get("podManagementPolicy") != "Parallel"
    create: list[int] = []
    delete: list[Object] = []
    for number in ordinals(owner):
        pod = there.get(number)
        if pod is None:
            create.append(number)
        elif has_ended(pod) and not being_deleted(pod):
            delete.append(pod)                   # its name must be free for the next
        elif not in_order or is_healthy(owner, pod, now):
            continue
        if in_order:
            return Plan(tuple(create), tuple(delete))
        if len(create) == MOST_AT_ONCE:
            break      # a set may be of billions; the next look goes on from here
    condemned = sorted((number for number in there if number not in ordinals(owner)), reverse=True)
    for number in condemned:
        pod = there[number]
        if not being_deleted(pod):
            delete.append(pod)
        if in_order:
            return Plan(tuple(create), tuple(delete))
    if not create and not delete:
        delete += _outdated(owner, there, update, now)
    return Plan(tuple(create), tuple(delete))


def is_healthy(owner: Object, pod: Object, now: datetime) -> bool:
    wait = int(owner["spec"].get("minReadySeconds") or 0)
    return phase_of(pod) == "Running" and is_available(pod, wait, now) and not being_deleted(pod)


def partition(owner: Object) -> int:
    """How many of the first ordinals keep the revision they have."""
    return int(((owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0)


def is_updated(owner: Object, number: int) -> bool:
    """Whether a new pod of this ordinal is of the new revision."""
    return number >= ordinals(owner).start + partition(owner)


def _outdated(owner: Object, there: dict[int, Object], update: str, now: datetime) -> list[Object]:
    strategy = owner["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    missing = _most_missing(owner)
    going: list[Object] = []
    for number in reversed(ordinals(owner)):
        if not is_updated(owner, number):
            break
        pod = there[number]
        if labels_of(pod).get(HASH) != update and not being_deleted(pod):
            going.append(pod)
        elif is_healthy(owner, pod, now):
            continue
        missing -= 1
        if missing <= 0:
            break
    return going


def _most_missing(owner: Object) -> int:
    value: Json = ((owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get("maxUnavailable")
    if isinstance(value, str):
        return max(1, -(-int(value.removesuffix("%")) * wanted(owner) // 100))
    return max(1, int(value or 1))


def status(owner: Object, pods: Sequence[Object], current: str, update: str, now: datetime) -> Object:
    was = owner.get("status") or {}
    alive = [pod for pod in pods if ordinal_of(owner, pod) >= 0 and not has_ended(pod)]
    wait = int(owner["spec"].get("minReadySeconds") or 0)
    steady = [pod for pod in alive if not being_deleted(pod)]
    found: Object = {
        "observedGeneration": int(metadata(owner).get("generation") or 0),
        "replicas": len(alive),
        "readyReplicas": sum(phase_of(pod) == "Running" and is_ready(pod) for pod in alive),
        "availableReplicas": sum(phase_of(pod) == "Running" and is_available(pod, wait, now) for pod in alive),
        "currentReplicas": sum(labels_of(pod).get(HASH) == current for pod in steady),
        "updatedReplicas": sum(labels_of(pod).get(HASH) == update for pod in steady),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": int(was.get("collisionCount") or 0),
    }
    rolling = (owner["spec"].get("updateStrategy") or {}).get("type") != "OnDelete"
    if rolling and {found["updatedReplicas"], found["readyReplicas"], found["replicas"]} == {wanted(owner)}:
        found |= {"currentReplicas": found["updatedReplicas"], "currentRevision": update}
    if was.get("conditions"):
        found["conditions"] = was["conditions"]
    always = ("replicas", "availableReplicas", "collisionCount")
    return {field: value for field, value in found.items() if value or field in always}


def look_again_at(owner: Object, pods: Sequence[Object], now: datetime) -> datetime | None:
    wait = int(owner["spec"].get("minReadySeconds") or 0)
    return min((at for pod in pods if wait and (at := available_at(pod, wait)) and at > now), default=None)


def pod_of(owner: Object, template: Object, number: int, revision: str) -> Object:
    """The pod of an ordinal: a name and a volume of its own, which its successor gets again."""
    name = f"{name_of(owner)}-{number}"
    pod = from_template(template, owner, name=name)
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), POD_NAME: name, POD_INDEX: str(number),
                                 HASH: revision}
    own = {name_of(claim): {"name": name_of(claim), "persistentVolumeClaim": {"claimName": name_of(made)}}
           for claim, made in zip(_templates(owner), claims_of(owner, number), strict=True)}
    volumes = [each for each in template["spec"].get("volumes") or () if each.get("name") not in own]
    spec = {**pod["spec"], "hostname": name, "volumes": [*own.values(), *volumes]}
    if service := owner["spec"].get("serviceName"):
        spec["subdomain"] = service
    return {**pod, "spec": {field: value for field, value in spec.items() if value != []}}


def claims_of(owner: Object, number: int) -> list[Object]:
    """The claims of an ordinal. They outlive its pods, and the set too unless it says otherwise."""
    spec, about = owner["spec"], metadata(owner)
    found = []
    for claim in _templates(owner):
        meta: Object = {
            **metadata(claim), "name": f"{name_of(claim)}-{name_of(owner)}-{number}",
            "namespace": about.get("namespace", ""),
            "labels": {**labels_of(claim), **((spec.get("selector") or {}).get("matchLabels") or {})},
        }
        if (spec.get("persistentVolumeClaimRetentionPolicy") or {}).get("whenDeleted") == "Delete":
            meta["ownerReferences"] = [{**reference(owner), "controller": False, "blockOwnerDeletion": True}]
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim["spec"]})
    return found


def _templates(owner: Object) -> list[Object]:
    return owner["spec"].get("volumeClaimTemplates") or []
