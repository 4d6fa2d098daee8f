"""The next step of one Job, as values: pods to make and delete, finalizers to take off, what the status says. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.api.meta import Object, being_deleted, timestamp, uid_of
from trainmaster.cluster.controllers.workloads import indexes
from trainmaster.cluster.controllers.workloads.completion import (
    COMPLETE,
    CRITERIA,
    FAILED,
    MOST_UNCOUNTED,
    SUSPENDED,
    TARGET,
    End,
    Tally,
    deadline,
    end,
    finished_at,
    is_suspended,
    with_condition,
)
from trainmaster.cluster.controllers.workloads.indexes import index_of
from trainmaster.cluster.controllers.workloads.job_pods import Need, need, releasable
from trainmaster.cluster.controllers.workloads.pods import is_ready, phase_of

OURS = "kubernetes.io/job-controller"


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    create: tuple[Object, ...] = ()
    delete: tuple[Object, ...] = ()           # since the job has ended; they count as failed
    withdraw: tuple[Object, ...] = ()         # not wanted any more; they do not count
    status: Object | None = None              # once the pods are made and deleted
    release: tuple[Object, ...] = ()          # finalizers to take off once the status is stored
    events: tuple[Event, ...] = ()            # once the status is stored
    look_again_at: datetime | None = None
    expired: bool = False                     # the job itself is to be deleted


def plan(job: Object, pods: list[Object], now: datetime) -> Plan:
    if job["spec"].get("managedBy") not in (None, "", OURS):
        return Plan()
    if (over := finished_at(job)) is not None:
        return _afterwards(job, pods, over, now)
    tally = Tally(job, pods, now)
    decided = end(tally)
    deleted = being_deleted(job)
    want = Need() if deleted or decided is not None else need(tally)
    delete = tuple(tally.active) if decided is not None and not deleted else ()
    release, uncounted = _to_count(tally, deleted=deleted)
    status = _counts(tally, uncounted, len(tally.active) - len(delete) - len(want.withdraw) + len(want.create))
    conditions, events = list(status.get("conditions") or []), []
    if decided is None and not deleted:
        conditions, told = _suspension(job, conditions, now)
        events += told
        if not is_suspended(job) and (told or not status.get("startTime")):
            status["startTime"] = timestamp(now)
    if decided is not None:
        conditions = with_condition(conditions, decided.type, "True", decided.reason, decided.message, now)
        if not (delete or release or any(uncounted.values()) or tally.terminating):
            conditions = _ended(status, conditions, decided, now)
            events.append(_last_word(decided))
    status["conditions"] = conditions
    times = [want.not_before, deadline({**job, "status": status}) if decided is None else None]
    again = min((at for at in times if at is not None), default=None)
    kept = {field: value for field, value in status.items() if value or field in _SHOWN_AT_ZERO}
    return Plan(want.create, delete, want.withdraw, kept, tuple(release), tuple(events), again)


# `uncountedTerminatedPods` stands empty; the others are pointers in Go.
_SHOWN_AT_ZERO = frozenset({"ready", "terminating", "uncountedTerminatedPods", "failedIndexes"})


def without_made(status: Object, lacking: int) -> Object:
    """The status if so many of the pods could not be made."""
    active = int(status.get("active") or 0) - lacking
    rest = {field: value for field, value in status.items() if field != "active"}
    return {**rest, "active": active} if active > 0 else rest


def _to_count(tally: Tally, *, deleted: bool) -> tuple[list[Object], dict[str, list[str]]]:
    """The pods whose finalizer may go, and all that the status must name for it."""
    uncounted = {name: list(uids) for name, uids in tally.uncounted.items()}
    new = {uid_of(pod) for pod in tally.new_failed}
    release: list[Object] = []
    for pod in releasable(tally, deleted=deleted):
        if sum(map(len, uncounted.values())) >= MOST_UNCOUNTED:
            break
        if phase_of(pod) == "Succeeded":
            if not tally.indexed and uid_of(pod) not in uncounted["succeeded"]:
                uncounted["succeeded"].append(uid_of(pod))
        elif uid_of(pod) in new:
            index = index_of(pod)
            if not tally.indexed or (index is not None and index < tally.completions):
                uncounted["failed"].append(uid_of(pod))
        release.append(pod)
    return release, uncounted


def _counts(tally: Tally, uncounted: dict[str, list[str]], active: int) -> Object:
    status = dict(tally.status)
    status["uncountedTerminatedPods"] = {name: uids for name, uids in uncounted.items() if uids}
    status["active"] = active
    status["ready"] = sum(map(is_ready, tally.active))
    status["terminating"] = len(tally.terminating)
    if tally.indexed:
        status["succeeded"] = len(tally.succeeded_indexes)
        status["completedIndexes"] = indexes.written(tally.succeeded_indexes)
        if tally.per_index is not None:
            status["failedIndexes"] = indexes.written(tally.failed_indexes)
    return status


def _suspension(job: Object, was: list[Object], now: datetime) -> tuple[list[Object], list[Event]]:
    if is_suspended(job):
        said, event = with_condition(was, SUSPENDED, "True", "JobSuspended", "Job suspended", now), "Suspended"
    else:
        said, event = with_condition(was, SUSPENDED, "False", "JobResumed", "Job resumed", now), "Resumed"
    return said, [] if said == was else [Event("Normal", event, f"Job {event.lower()}")]


def _ended(status: Object, conditions: list[Object], decided: End, now: datetime) -> list[Object]:
    final = FAILED if decided.type == TARGET else COMPLETE
    if final == COMPLETE:
        status["completionTime"] = timestamp(now)
    return with_condition(conditions, final, "True", decided.reason, decided.message, now)


def _last_word(decided: End) -> Event:
    if decided.type == CRITERIA:
        return Event("Normal", "Completed", "Job completed")
    return Event("Warning", decided.reason, decided.message)


def _afterwards(job: Object, pods: list[Object], over: datetime, now: datetime) -> Plan:
    """Nothing is held back by a job that has ended, and it goes when its time is over."""
    release = tuple(releasable(Tally(job, pods, now), deleted=True))
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None or being_deleted(job):
        return Plan(release=release)
    at = over + timedelta(seconds=ttl)
    return Plan(release=release, expired=at <= now, look_again_at=at)


