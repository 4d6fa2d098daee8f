"""The dialects in which people write gangs, as data: who serves them, what they are called, how a pod names its group.

One engine decides for all of them. A dialect says only what differs: whether pods may be made before the group is let
in, whether there are queues, and the words.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainmaster.api import groups
from trainmaster.api.meta import Key, Object, Resource, key_of, labels_of, metadata, name_of, namespace_of, uid_of
from trainmaster.cluster.scheduler.amounts import amounts
from trainmaster.cluster.scheduler.snapshot import Group, GroupKey, Queue

GROUP_NAME = "scheduling.k8s.io/group-name"
POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
T9K_GROUP_LABEL = "scheduler.tensorstack.dev/group-name"


def listed(counts: Mapping[str, int]) -> str:
    """Sorted as text with their numbers in front, as both schedulers do."""
    return ", ".join(sorted(f"{count} {what}" for what, count in counts.items()))


def unavailable(counts: Mapping[str, int], nodes: int) -> str:
    """Volcano's sentence: `unavailable`, where the default scheduler says `available`."""
    return f"0/{nodes} nodes are unavailable: {listed(counts)}." if counts else "0 nodes are available"


def crude(_counts: Mapping[str, int], _nodes: int) -> str:
    """kube-batch's sentence."""
    return "0 nodes are available"


def available(counts: Mapping[str, int], nodes: int) -> str:
    """The default scheduler's sentence."""
    if not nodes:
        return "no nodes available to schedule pods"
    return f"0/{nodes} nodes are available: {listed(counts)}."


def _annotated(pod: Object) -> str:
    return str((metadata(pod).get("annotations") or {}).get(GROUP_NAME) or "")


def _labelled(pod: Object) -> str:
    return str(labels_of(pod).get(POD_GROUP_LABEL) or "")


def _t9k_labelled(pod: Object) -> str:
    return str(labels_of(pod).get(T9K_GROUP_LABEL) or "")


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    scheduler: str                              # the schedulerName that it serves
    groups: Resource
    queues: Resource | None
    tie: Callable[[Object], str]                # the group that a pod names
    refusal: Callable[[Mapping[str, int], int], str]
    enqueues: bool = False                      # pods are made only once the group is let in
    status_part: bool = True                    # the group's CRD has a status subresource

    @property
    def queued(self) -> bool:
        return self.queues is not None


VOLCANO = Dialect("volcano", "volcano", groups.VOLCANO_GROUPS, groups.VOLCANO_QUEUES, _annotated, unavailable,
                  enqueues=True, status_part=False)
KUBE_BATCH = Dialect("kube-batch", "kube-batch", groups.KUBE_BATCH_GROUPS, groups.KUBE_BATCH_QUEUES, _annotated, crude,
                     status_part=False)
COSCHEDULING = Dialect("scheduler-plugins", "scheduler-plugins-scheduler", groups.COSCHEDULING_GROUPS, None, _labelled,
                       available)
T9K = Dialect("t9k", "t9k-scheduler", groups.T9K_GROUPS, groups.T9K_QUEUES, _t9k_labelled, available)
DIALECTS: tuple[Dialect, ...] = (VOLCANO, KUBE_BATCH, COSCHEDULING, T9K)
_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
_BY_SCHEDULER = {dialect.scheduler: dialect for dialect in DIALECTS}


def by_name(name: str) -> Dialect:
    return _BY_NAME[name]


def serving(scheduler: str) -> Dialect | None:
    return _BY_SCHEDULER.get(scheduler)


def group_of(pod: Object) -> GroupKey | None:
    """The group that a pod belongs to, in the dialect of the scheduler that it names."""
    dialect = serving(pod["spec"].get("schedulerName") or "")
    if dialect is None:
        return None
    name = dialect.tie(pod)
    return GroupKey(dialect.name, Key(namespace_of(pod), name)) if name else None


def read_group(raw: Object, dialect: Dialect) -> Group:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    wanted = spec.get("minResources")
    roles = spec.get("minTaskMember") or {
        str(role.get("name")): int(role.get("minMember") or 0) for role in spec.get("roles") or ()}
    return Group(
        key=GroupKey(dialect.name, key_of(raw)), uid=uid_of(raw), least=int(spec.get("minMember") or 0), roles=roles,
        queue=str(spec.get("queue") or "default"), priority_class=str(spec.get("priorityClassName") or ""),
        priority=int(spec.get("priority") or 0), wanted=None if wanted is None else amounts(wanted),
        phase=str(status.get("phase") or ""), created=str(metadata(raw).get("creationTimestamp") or ""), raw=raw,
    )


def read_queue(raw: Object) -> Queue:
    spec = raw.get("spec") or {}
    quota = (spec.get("quota") or {}).get("requests") or spec.get("requests")
    capability = spec.get("capability") or quota
    guarantee = (spec.get("guarantee") or {}).get("resource")
    state = (raw.get("status") or {}).get("state") or "Open"
    return Queue(
        name=name_of(raw), weight=max(int(spec.get("weight") or 1), 1), priority=int(spec.get("priority") or 0),
        capability=amounts(capability) if capability else None,
        deserved=amounts(spec["deserved"]) if spec.get("deserved") else None,
        guarantee=amounts(guarantee) if guarantee else None,
        reclaimable=spec.get("reclaimable", spec.get("preemptible", True)) is not False,
        open=state == "Open" and not spec.get("closed"), parent=str(spec.get("parent") or ""),
        created=str(metadata(raw).get("creationTimestamp") or ""),
        fifo=spec.get("dequeueStrategy") == "fifo", raw=raw,
    )


def group_for(pod: Object, dialect: Dialect, owner: Object | None) -> Object:
    """The group for a pod that names none: one for all pods of its owner, of one member unless the pod says more."""
    meta = metadata(pod)
    annotations = meta.get("annotations") or {}
    said = annotations.get("scheduling.volcano.sh/group-min-member") or annotations.get(
        "scheduling.k8s.io/group-min-member") or "1"
    least = int(said) if str(said).isdigit() else 1
    spec: Object = {"minMember": max(least, 1)}
    if dialect.queued:
        spec["queue"] = (annotations.get("scheduling.volcano.sh/queue-name")
                         or labels_of(pod).get("scheduler.tensorstack.dev/queue") or "default")
    if pod["spec"].get("priorityClassName") and dialect in (VOLCANO, KUBE_BATCH):
        spec["priorityClassName"] = pod["spec"]["priorityClassName"]
    reference = owner or {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)}
    reference = {**reference, "controller": True, "blockOwnerDeletion": False}
    return {"apiVersion": dialect.groups.api_version, "kind": dialect.groups.kind,
            "metadata": {"name": f"podgroup-{reference['uid']}", "namespace": namespace_of(pod),
                         "ownerReferences": [reference]},
            "spec": spec}


def tied(dialect: Dialect, group: str) -> Object:
    """The part of a pod's metadata that names its group."""
    if dialect is COSCHEDULING:
        return {"labels": {POD_GROUP_LABEL: group}}
    if dialect is T9K:
        return {"labels": {T9K_GROUP_LABEL: group}}
    return {"annotations": {GROUP_NAME: group}}
