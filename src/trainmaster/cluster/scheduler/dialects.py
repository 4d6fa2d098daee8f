"""The dialects in which people write gangs, as data: who serves them, what they are called, how a pod names its group.

One engine decides for all of them. A dialect says only what differs: whether pods may be made before the group is let
in, whether there are queues, and the words.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainmaster.api import groups
from trainmaster.api.meta import Json, Key, Object, Resource, key_of, labels_of, metadata, name_of, namespace_of, uid_of
from trainmaster.cluster.scheduler.amounts import PODS, amounts, requests, shown
from trainmaster.cluster.scheduler.selecting import label_selector
from trainmaster.cluster.scheduler.snapshot import Group, GroupKey, Queue
from trainmaster.cluster.scheduler.volumes import about_the_pod

HIERARCHY, HIERARCHY_WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
WAITING_TIME = "volcano.sh/sla-waiting-time"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"      # annotation of a pod or a namespace
T9K_SYSTEM = "t9k-system"      # the namespace of its scheduler
ROOT, DEFAULT_QUEUE = "root", "default"
# In annotations, which anybody may write: a number of members, parts of a span of time in Go's way, a weight.
_MEMBERS = re.compile("[0-9]{1,9}")
_SPAN, _SPAN_PART = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:h|m|s|ms))+"), re.compile(r"([0-9.]+)(ms|h|m|s)")
_WEIGHT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_LONG, _LONG_PART = re.compile(r"(?:[0-9]{1,9}(?:y|w|d|h|ms|m|s))+"), re.compile(r"([0-9]+)(y|w|d|h|ms|m|s)")
_SECONDS = {"y": 365 * 86400.0, "w": 7 * 86400.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def listed(counts: Mapping[str, int]) -> str:
    """Sorted as text with their numbers in front, as both schedulers do."""
    return ", ".join(sorted(what if about_the_pod(what) else f"{count} {what}" for what, count in counts.items()))


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
    return str((metadata(pod).get("annotations") or {}).get(groups.GROUP_NAME) or "")


def _labelled(pod: Object) -> str:
    return str(labels_of(pod).get(groups.COSCHEDULING_GROUP) or "")


def _t9k_labelled(pod: Object) -> str:
    return str(labels_of(pod).get(groups.T9K_GROUP) or "")


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
    later: tuple[Resource, ...] = ()            # the same two kinds in a later API group, if there is one

    @property
    def group_kinds(self) -> tuple[Resource, ...]:
        """All in which its groups are written, the first of which counts if there are two of one name."""
        return (self.groups, *(kind for kind in self.later if kind.kind == self.groups.kind))

    @property
    def queue_kinds(self) -> tuple[Resource, ...]:
        return () if self.queues is None else (
            self.queues, *(kind for kind in self.later if kind.kind == self.queues.kind))

    def kind_of(self, raw: Object) -> Resource:
        """The kind of a group, as it is written."""
        return next((kind for kind in self.group_kinds if kind.api_version == raw.get("apiVersion")), self.groups)

    @property
    def queued(self) -> bool:
        return self.queues is not None


VOLCANO = Dialect("volcano", "volcano", groups.VOLCANO_GROUPS, groups.VOLCANO_QUEUES, _annotated, unavailable,
                  enqueues=True, status_part=False)
KUBE_BATCH = Dialect("kube-batch", "kube-batch", groups.KUBE_BATCH_GROUPS, groups.KUBE_BATCH_QUEUES, _annotated, crude,
                     status_part=False, later=(groups.KUBE_BATCH_LATER_GROUPS, groups.KUBE_BATCH_LATER_QUEUES))
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


def fields(found: Json) -> Object:
    """What should be an object. Nobody checks all that groups and queues say: what is of another type says nothing."""
    return found if isinstance(found, dict) else {}


def entries(found: Json) -> list[Object]:
    """What should be a list of objects."""
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def read_group(raw: Object, dialect: Dialect) -> Group:
    spec, status = fields(raw.get("spec")), fields(raw.get("status"))
    wanted = spec.get("minResources")
    roles = {str(name): _count(least) for name, least in fields(spec.get("minTaskMember")).items()} or {
        str(role.get("name")): _count(role.get("minMember")) for role in entries(spec.get("roles"))}
    return Group(
        key=GroupKey(dialect.name, key_of(raw)), uid=uid_of(raw), least=_count(spec.get("minMember")), roles=roles,
        queue=str(spec.get("queue") or DEFAULT_QUEUE), priority_class=str(spec.get("priorityClassName") or ""),
        priority=_count(spec.get("priority")), wanted=None if wanted is None else _needed(fields(wanted)),
        phase=str(status.get("phase") or ""), created=str(metadata(raw).get("creationTimestamp") or ""), raw=raw,
        patience=_span(_annotations(raw).get(WAITING_TIME)) if dialect is VOLCANO else None,
        tried_since=str(status.get("scheduleStartTime") or ""),
    )


def _needed(said: Object) -> dict[str, int]:
    """What a group needs at least. Volcano's jobs list it as quotas count it, everything twice and limits as well."""
    plain = {name: amount for name, amount in said.items() if not name.startswith(("requests.", "limits.", "count/"))}
    asked = {name.removeprefix("requests."): amount for name, amount in said.items() if name.startswith("requests.")}
    return amounts({**asked, **plain})


def _annotations(raw: Object) -> Object:
    return fields(metadata(raw).get("annotations"))


def _span(text: Json) -> float | None:
    """Seconds of `1h30m`; None if it is not there, is nothing, or is no span."""
    if not isinstance(text, str) or not _SPAN.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _SPAN_PART.findall(text)) or None


def _long(text: Json) -> float:
    """Seconds of `1w2d`, as T9k writes how long something may last; 0 for what is no such span."""
    if not isinstance(text, str) or not _LONG.fullmatch(text):
        return 0.0
    return sum(float(number) * _SECONDS[unit] for number, unit in _LONG_PART.findall(text))


def levels(raw: Object) -> tuple[tuple[str, float], ...] | None:
    """Where a queue says it stands in the hierarchy, without the root; () if it says nothing, None if that is wrong."""
    names, weights = (_annotations(raw).get(key) or "" for key in (HIERARCHY, HIERARCHY_WEIGHTS))
    if not names and not weights:
        return ()
    if not isinstance(names, str) or not isinstance(weights, str):
        return None
    below, numbers = names.split("/"), weights.split("/")
    if below[0] == ROOT:
        below, numbers = below[1:], numbers[1:]
    if not below or len(below) != len(numbers) or not all(below) or not all(map(_WEIGHT.fullmatch, numbers)):
        return None
    return tuple(zip(below, (max(float(number), 1.0) for number in numbers), strict=True))


def read_queue(raw: Object) -> Queue:
    spec = fields(raw.get("spec"))
    quota = fields(spec.get("quota")).get("requests") or spec.get("requests")
    capability, deserved = fields(spec.get("capability") or quota), fields(spec.get("deserved"))
    guarantee = fields(fields(spec.get("guarantee")).get("resource"))
    state = fields(raw.get("status")).get("state") or "Open"
    return Queue(
        name=name_of(raw), weight=max(_count(spec.get("weight")), 1), priority=_count(spec.get("priority")),
        capability=amounts(capability) if capability else None, deserved=amounts(deserved) if deserved else None,
        guarantee=amounts(guarantee) if guarantee else None,
        reclaimable=spec.get("reclaimable", spec.get("preemptible", True)) is not False,
        open=state == "Open" and not spec.get("closed"), parent=str(spec.get("parent") or ""),
        created=str(metadata(raw).get("creationTimestamp") or ""),
        levels=levels(raw) or (), fifo=spec.get("dequeueStrategy") == "fifo", raw=raw,
        nodes=label_selector(fields(spec["nodeSelector"])) if spec.get("nodeSelector") else None,
        spaces=label_selector(fields(spec["namespaceSelector"])) if "namespaceSelector" in spec else None,
        longest=_long(spec.get("maxDuration")),
    )


def _count(found: Json) -> int:
    return found if isinstance(found, int) else 0


def group_for(pod: Object, dialect: Dialect, owner: Object | None, above: Object | None = None) -> Object:
    """The group for a pod that names none: one for all pods of its owner, of one member unless the owner says more.
    `owner` is the reference to it, `above` the object, if it could be read."""
    annotations = {**_annotations(pod), **_annotations(above or {"metadata": {}})}
    said = annotations.get("scheduling.volcano.sh/group-min-member") or annotations.get(
        "scheduling.k8s.io/group-min-member") or "1"
    spec: Object = {"minMember": max(int(said), 1) if _MEMBERS.fullmatch(str(said)) else 1}
    if dialect.queued:
        spec["queue"] = (annotations.get(QUEUE_NAME)
                         or labels_of(pod).get(groups.T9K_QUEUE) or DEFAULT_QUEUE)
    if pod["spec"].get("priorityClassName") and dialect in (VOLCANO, KUBE_BATCH):
        spec["priorityClassName"] = pod["spec"]["priorityClassName"]
    kept = {key: value for key, value in annotations.items()
            if key.startswith("volcano.sh/") and key != groups.TASK_SPEC} if dialect is VOLCANO else {}
    needs = {name: shown(name, amount * spec["minMember"]) for name, amount in requests(pod).items() if name != PODS}
    if dialect is VOLCANO and needs:
        spec["minResources"] = needs
    reference = owner or {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)}
    reference = {**reference, "controller": True, "blockOwnerDeletion": False}
    return {"apiVersion": dialect.groups.api_version, "kind": dialect.groups.kind,
            "metadata": {"name": f"podgroup-{reference['uid']}", "namespace": namespace_of(pod),
                         "ownerReferences": [reference], **({"annotations": kept} if kept else {})},
            "spec": spec}


def tied(dialect: Dialect, group: str) -> Object:
    """The part of a pod's metadata that names its group."""
    if dialect is COSCHEDULING:
        return {"labels": {groups.COSCHEDULING_GROUP: group}}
    if dialect is T9K:
        return {"labels": {groups.T9K_GROUP: group}}
    return {"annotations": {groups.GROUP_NAME: group}}
