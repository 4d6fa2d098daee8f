"""Clusters for tests of the scheduler, one line each, and what a decision came to, short enough to compare."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from trainmaster.api.meta import Object, key_of
from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.decide import decide
from trainmaster.cluster.scheduler.dialects import VOLCANO, Dialect
from trainmaster.cluster.scheduler.limits import read_limit
from trainmaster.cluster.scheduler.settings import DEFAULTS, Decision, Settings
from trainmaster.cluster.scheduler.snapshot import Snapshot, read_pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = "2026-01-01T11:59:50Z"


def machine(name: str = "node", *, ready: bool = True, labels: Mapping[str, str] | None = None,
            taints: Iterable[Object] = (), unschedulable: bool = False, **offers: Any) -> Object:
    """A node; `gpu=1` is one nvidia.com/gpu."""
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints), **({"unschedulable": True} if unschedulable else {})},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", **_resources(offers)},
                   "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def single(name: str, *, on: str = "", phase: str = "Pending", created: str = LONG_AGO, labels: Mapping[str, str] = {},
           annotations: Mapping[str, str] = {}, deleted: bool = False, asks: Mapping[str, Any] | None = None,
           **spec: Any) -> Object:
    """A pod; `asks={"gpu": 1}` in requests and limits."""
    resources = _resources(asks or {})
    container: Object = {"name": "main", "resources": {"requests": resources, "limits": resources}}
    meta: Object = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": created,
                    "labels": dict(labels), "annotations": dict(annotations)}
    if deleted:
        meta["deletionTimestamp"] = created
    return {"metadata": meta, "status": {"phase": phase},
            "spec": {"containers": [container], **({"nodeName": on} if on else {}), **spec}}


def member(group: str, role: str, index: int, *, dialect: Dialect = VOLCANO, **more: Any) -> Object:
    """A pod of a gang."""
    tie = dialects.tied(dialect, group)
    annotations = {**tie.get("annotations", {}), "volcano.sh/task-spec": role, **more.pop("annotations", {})}
    labels = {**tie.get("labels", {}), **more.pop("labels", {})}
    return single(f"{group}-{role}-{index}", schedulerName=dialect.scheduler, annotations=annotations, labels=labels,
                  **more)


def members(group: str, role: str, count: int, **more: Any) -> list[Object]:
    return [member(group, role, index, **more) for index in range(count)]


def gang(name: str, least: int, *, dialect: Dialect = VOLCANO, phase: str = "Inqueue", created: str = LONG_AGO,
         wants: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    made = {"minMember": least, **spec}
    if wants is not None:
        made["minResources"] = _resources(wants)
    return {"apiVersion": dialect.groups.api_version, "kind": "PodGroup", "spec": made,
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-group-{name}",
                         "creationTimestamp": created},
            "status": {"phase": phase} if phase else {}}


def line(name: str = "default", *, state: str = "Open", **spec: Any) -> Object:
    """A queue."""
    for field in ("capability", "deserved"):
        if field in spec:
            spec[field] = _resources(spec[field])
    if "guarantee" in spec:
        spec["guarantee"] = {"resource": _resources(spec["guarantee"])}
    return {"metadata": {"name": name, "uid": f"uid-queue-{name}", "creationTimestamp": LONG_AGO}, "spec": spec,
            "status": {"state": state}}


def snapshot(nodes: Iterable[Object], pods: Iterable[Object] = (), groups: Iterable[Object] = (),
             queues: Iterable[Object] | None = None, dialect: Dialect = VOLCANO,
             classes: Mapping[str, int] | None = None, quotas: Iterable[Object] = ()) -> Snapshot:
    made = Snapshot()
    for node in nodes:
        made.put_node(node)
    for pod in pods:
        made.put_pod(read_pod(pod, dialects.group_of(pod)))
    for group in groups:
        read = dialects.read_group(group, dialect)
        made.groups[read.key] = read
    for queue in [line()] if queues is None else queues:
        made.queues[dialect.name, queue["metadata"]["name"]] = dialects.read_queue(queue)
    for quota in quotas:
        if (limit := read_limit(quota)) is not None:
            made.limits[key_of(quota)] = limit
    for name, value in (classes or {}).items():
        made.classes[name] = {"metadata": {"name": name}, "value": value}
    return made


def decided(there: Snapshot, settings: Settings = DEFAULTS, now: datetime = NOW) -> Decision:
    return decide(there, now, settings)


def bound(decision: Decision) -> dict[str, str]:
    return {binding.pod.name: binding.node for binding in decision.bindings}


def evicted(decision: Decision) -> list[str]:
    return sorted(eviction.pod.name for eviction in decision.evictions)


def phases(decision: Decision) -> dict[str, str]:
    return {verdict.group.key.key.name: verdict.phase for verdict in decision.verdicts}


def _resources(short: Mapping[str, Any]) -> dict[str, str]:
    return {"nvidia.com/gpu" if name == "gpu" else name: str(amount) for name, amount in short.items()}
