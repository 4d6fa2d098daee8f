"""A snapshot of one job's children: what the engine reads of them, and who owns what.

Ownership is by UID. A job that was deleted and created again has the same name, and so have its pods; only the UID
tells them apart. Children whose name is not the one their labels ask for are left alone: somebody changed them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.api.membership import INDEX, ROLE
from trainmaster.api.meta import (
    Json,
    Object,
    Resource,
    being_deleted,
    controller_of,
    labels_of,
    moment_if_any,
    name_of,
    uid_of,
)
from trainmaster.frameworks.framework import TrainingJob


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of the job."""

    name: str
    uid: str
    owner: str                      # the UID of its controller
    role: str                       # the role's word, from the label
    index: int
    phase: str = "Pending"
    deleting: bool = False
    exit_code: int | None = None    # of the training container, once it has ended
    restarts: int = 0               # of all containers, in place
    node: str = ""
    reason: str = ""                # why it ended, as the node says
    last_words: str = ""
    started: datetime | None = None
    finished: datetime | None = None
    lingers: bool = False           # it has ended as far as the job goes, but sidecars still run
    raw: Object | None = None       # the whole object, for what only people read

    @property
    def member(self) -> str:
        return f"{self.role}-{self.index}"

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Service:
    """The name under which one member is found."""

    name: str
    uid: str
    owner: str
    role: str
    index: int
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything of ours that is there, by role and index: one child of each sort per member at most."""

    pods: Mapping[tuple[str, int], Pod]
    services: Mapping[tuple[str, int], Service]
    companions: Mapping[Resource, Object] = field(default_factory=dict)  # as `companions.looked_for`, whoever owns them
    priorities: Mapping[str, int] = field(default_factory=dict)          # values of priority classes, where known


def observe(
    job: TrainingJob,
    pods: Iterable[Pod],
    services: Iterable[Service],
    companions: Mapping[Resource, Object] | None = None,
    priorities: Mapping[str, int] | None = None,
) -> Observed:
    """The job's own children among the given ones, and what has the names of its companions."""
    if job.ends_with_training:
        pods = [without_sidecars(pod) for pod in pods]
    return Observed(
        {(pod.role, pod.index): pod for pod in sorted(pods, key=_place) if is_ours(pod, job)},
        {(found.role, found.index): found for found in sorted(services, key=_place) if is_ours(found, job)},
        companions or {},
        priorities or {},
    )


def is_ours(child: Pod | Service, job: TrainingJob) -> bool:
    return child.owner == job.uid and child.name == f"{job.name}-{child.role}-{child.index}"


def without_sidecars(pod: Pod) -> Pod:
    """The pod as it would be without those who run beside the training container and do not end with it (B-43).

    A container that the node starts again has not ended.
    """
    if pod.phase != "Running" or pod.exit_code is None:
        return pod
    rule = ((pod.raw or {}).get("spec") or {}).get("restartPolicy")
    if rule == "Never" or (rule == "OnFailure" and pod.exit_code == 0):
        return replace(pod, phase="Failed" if pod.exit_code else "Succeeded", lingers=True)
    return pod


def read_pod(raw: Object, container: str) -> Pod:
    status = raw.get("status") or {}
    role, index = _member(raw)
    terminated = _terminated(status, container)
    return Pod(
        name=name_of(raw),
        uid=uid_of(raw),
        owner=_owner(raw),
        role=role,
        index=index,
        phase=status.get("phase") or "Pending",
        deleting=being_deleted(raw),
        exit_code=terminated.get("exitCode"),
        restarts=_restarts(status),
        node=(raw.get("spec") or {}).get("nodeName") or "",
        # What the node says of the whole pod is the cause: an evicted container ends by a signal, as many do.
        reason=status.get("reason") or terminated.get("reason") or "",
        last_words=(status.get("reason") and status.get("message")) or terminated.get("message")
        or status.get("message") or "",
        started=moment_if_any(terminated.get("startedAt") or status.get("startTime")),
        finished=moment_if_any(terminated.get("finishedAt")),
        raw=raw,
    )


def read_service(raw: Object) -> Service:
    role, index = _member(raw)
    return Service(name_of(raw), uid_of(raw), _owner(raw), role, index, being_deleted(raw))


def _owner(raw: Object) -> str:
    return str((controller_of(raw) or {}).get("uid", ""))


def _place(child: Pod | Service) -> tuple[str, int]:
    return child.role, child.index


def _member(raw: Object) -> tuple[str, int]:
    labels = labels_of(raw)
    index = labels.get(INDEX, "")
    return labels.get(ROLE, ""), int(index) if index.isdecimal() else -1


def _terminated(status: Mapping[str, Json], container: str) -> Object:
    """How the training container ended; of a pod whose init containers failed, how the failed one did, without a code.

    Only the training container's exit code counts (B-45): whatever else ended a pod is worth another try.
    """
    for found in status.get("containerStatuses") or ():
        if found.get("name") == container and (over := (found.get("state") or {}).get("terminated")):
            return dict(over)
    for found in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        over = (found.get("state") or {}).get("terminated") or {}
        if over.get("exitCode") and status.get("phase") == "Failed":
            return {key: value for key, value in over.items() if key != "exitCode"}
    return {}


def _restarts(status: Mapping[str, Json]) -> int:
    both = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return sum(int(found.get("restartCount") or 0) for found in both)
