"""How far a Job is: which pods it has counted, which it must count, whether it has succeeded or failed. Pure.

A pod that ended carries a finalizer until the status names it (`uncountedTerminatedPods`), and is moved from there into
the counts when the finalizer is off. Whatever line a controller dies on, the next one finds each pod in one of these
places and counts it once. The end has two steps as well: `SuccessCriteriaMet` or `FailureTarget` when it is decided,
`Complete` or `Failed` when the last pod is gone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.api.meta import Object, being_deleted, metadata, moment, timestamp, uid_of
from trainmaster.cluster.controllers.workloads import indexes
from trainmaster.cluster.controllers.workloads.indexes import index_of
from trainmaster.cluster.controllers.workloads.pod_failure import COUNT, FAIL_INDEX, FAIL_JOB, judged
from trainmaster.cluster.controllers.workloads.pods import has_ended, is_active, phase_of, restarts_of

FINALIZER = "batch.kubernetes.io/job-tracking"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
CRITERIA, TARGET, COMPLETE, FAILED, SUSPENDED = \
    "SuccessCriteriaMet", "FailureTarget", "Complete", "Failed", "Suspended"
# Pods named in the status at once, so that it stays small; the others follow.
MOST_UNCOUNTED = 500


@dataclass(frozen=True, slots=True)
class End:
    """What is decided about a job, before its pods are gone."""

    type: str
    reason: str
    message: str


@dataclass(slots=True)
class Tally:
    """A job and its pods at one moment."""

    job: Object
    pods: Sequence[Object]
    now: datetime
    status: Object = field(init=False)                    # what was uncounted and lost its finalizer is counted here
    new_succeeded: list[Object] = field(init=False)       # with a finalizer, and not in the status yet
    new_failed: list[Object] = field(init=False)
    succeeded_indexes: frozenset[int] = frozenset()
    failed_indexes: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        self.status = _settled(self.job.get("status") or {}, self.pods)
        known = self.uncounted
        tracked = [pod for pod in self.pods if is_tracked(pod)]
        self.new_succeeded = [pod for pod in tracked if phase_of(pod) == "Succeeded"
                              and uid_of(pod) not in known["succeeded"]]
        self.new_failed = [pod for pod in tracked if is_failed(self.job, pod) and uid_of(pod) not in known["failed"]
                           and judged(self.job, pod).action in (COUNT, FAIL_JOB, FAIL_INDEX)]
        if self.indexed:
            self.succeeded_indexes = indexes.read(str(self.status.get("completedIndexes") or ""), self.completions) | {
                at for pod in self.new_succeeded if (at := index_of(pod)) is not None and at < self.completions}
            self.failed_indexes = self._failed_indexes()

    @property
    def spec(self) -> Object:
        found: Object = self.job["spec"]
        return found

    @property
    def indexed(self) -> bool:
        return bool(self.spec.get("completionMode") == "Indexed")

    @property
    def per_index(self) -> int | None:
        found: int | None = self.spec.get("backoffLimitPerIndex")
        return found if self.indexed else None

    @property
    def completions(self) -> int:
        return int(self.spec.get("completions") or 0)

    @property
    def uncounted(self) -> dict[str, list[str]]:
        found = self.status.get("uncountedTerminatedPods") or {}
        return {"succeeded": found.get("succeeded") or [], "failed": found.get("failed") or []}

    @property
    def succeeded(self) -> int:
        if self.indexed:
            return len(self.succeeded_indexes)
        return int(self.status.get("succeeded") or 0) + len(self.uncounted["succeeded"]) + len(self.new_succeeded)

    @property
    def failed(self) -> int:
        return int(self.status.get("failed") or 0) + len(self.uncounted["failed"]) + len(self.new_failed)

    @property
    def active(self) -> list[Object]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def terminating(self) -> list[Object]:
        return [pod for pod in self.pods if being_deleted(pod) and not has_ended(pod)]

    def failures_of(self, index: int) -> int:
        """How often an index has failed: each pod says how often its predecessors did."""
        found = [0]
        for pod in self.pods:
            if index_of(pod) == index:
                before = int((metadata(pod).get("annotations") or {}).get(FAILURES) or 0)
                counts = is_failed(self.job, pod) and judged(self.job, pod).action in (COUNT, FAIL_INDEX)
                found.append(before + counts)
        return max(found)

    def _failed_indexes(self) -> frozenset[int]:
        limit = self.per_index
        if limit is None:
            return frozenset()
        known = indexes.read(str(self.status.get("failedIndexes") or ""), self.completions)
        doomed = {at for pod in self.pods if (at := index_of(pod)) is not None and at < self.completions
                  and is_failed(self.job, pod)
                  and (judged(self.job, pod).action == FAIL_INDEX or self.failures_of(at) > limit)}
        return known | (doomed - self.succeeded_indexes)


def is_tracked(pod: Object) -> bool:
    return FINALIZER in (metadata(pod).get("finalizers") or ())


def waits_for_the_end(job: Object) -> bool:
    """Whether a pod is replaced only when it has ended, and not already when it is deleted."""
    spec = job["spec"]
    return bool(spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy"))


def is_failed(job: Object, pod: Object) -> bool:
    if phase_of(pod) == "Failed":
        return True
    return not waits_for_the_end(job) and being_deleted(pod) and phase_of(pod) != "Succeeded"


def condition(job: Object, type_: str) -> Object:
    conditions: Sequence[Object] = (job.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_ and each.get("status") == "True"), {})


def finished_at(job: Object) -> datetime | None:
    found = condition(job, COMPLETE) or condition(job, FAILED)
    return moment(found["lastTransitionTime"]) if found else None


def is_suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend"))


def end(tally: Tally) -> End | None:
    """How the job ends, if that is decided: first what was said before, then failures, then success."""
    job, spec = tally.job, tally.spec
    for type_ in (TARGET, CRITERIA):
        if said := condition(job, type_):
            return End(type_, str(said.get("reason")), str(said.get("message")))
    for pod in tally.pods:
        if is_failed(job, pod) and (verdict := judged(job, pod)).action == FAIL_JOB:
            return End(TARGET, "PodFailurePolicy", verdict.message)
    if tally.failed > int(spec.get("backoffLimit", 6)) or _restarted_too_often(tally):
        return End(TARGET, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if (late := deadline(job)) is not None and late <= tally.now and not is_suspended(job):
        return End(TARGET, "DeadlineExceeded", "Job was active longer than specified deadline")
    if tally.per_index is not None:
        most = spec.get("maxFailedIndexes")
        if most is not None and len(tally.failed_indexes) > most:
            return End(TARGET, "MaxFailedIndexesExceeded",
                       "Job has exceeded the specified maximal number of failed indexes")
        if tally.failed_indexes and len(tally.failed_indexes) + len(tally.succeeded_indexes) >= tally.completions:
            return End(TARGET, "FailedIndexes", "Job has failed indexes")
    return _policy(tally) or _reached(tally)


def deadline(job: Object) -> datetime | None:
    started, limit = (job.get("status") or {}).get("startTime"), job["spec"].get("activeDeadlineSeconds")
    return moment(started) + timedelta(seconds=limit) if started and limit is not None else None


def _policy(tally: Tally) -> End | None:
    """`successPolicy`: enough indexes, or the right ones, are enough."""
    for number, rule in enumerate((tally.spec.get("successPolicy") or {}).get("rules") or ()):
        text = rule.get("succeededIndexes")
        wanted = indexes.read(text, tally.completions) if text else None
        met = tally.succeeded_indexes if wanted is None else tally.succeeded_indexes & wanted
        needed = rule.get("succeededCount") or (len(wanted) if wanted is not None else tally.completions)
        if len(met) >= needed:
            return End(CRITERIA, "SuccessPolicy", f"Matched rules at index {number}")
    return None


def _reached(tally: Tally) -> End | None:
    spec = tally.spec
    enough = tally.succeeded >= tally.completions if spec.get("completions") is not None else tally.succeeded > 0
    if enough and not tally.active:
        return End(CRITERIA, "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _restarted_too_often(tally: Tally) -> bool:
    """Pods that restart in place fail without ending; all their restarts count."""
    if (tally.spec["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    running = [pod for pod in tally.pods if phase_of(pod) in ("Running", "Pending")]
    restarts, limit = sum(map(restarts_of, running)), int(tally.spec.get("backoffLimit", 6))
    return restarts > 0 if limit == 0 else restarts >= limit


def _settled(status: Object, pods: Iterable[Object]) -> Object:
    """The status with the pods that lost their finalizer moved from the names into the counts."""
    found = status.get("uncountedTerminatedPods") or {}
    held = {uid_of(pod) for pod in pods if is_tracked(pod)}
    result, left = dict(status), {}
    for name in ("succeeded", "failed"):
        named = found.get(name) or []
        if kept := [uid for uid in named if uid in held]:
            left[name] = kept
        if len(kept) < len(named):
            result[name] = int(status.get(name) or 0) + len(named) - len(kept)
    result["uncountedTerminatedPods"] = left
    return result


def with_condition(conditions: Sequence[Object], type_: str, truth: str, reason: str, message: str,
                   now: datetime) -> list[Object]:
    """A condition said, or said otherwise; one that is false and was never true is not worth saying."""
    was = next((each for each in conditions if each.get("type") == type_), None)
    if (was is None and truth == "False") or (was is not None and was.get("status") == truth):
        return list(conditions)
    said = {"type": type_, "status": truth, "lastProbeTime": timestamp(now), "lastTransitionTime": timestamp(now),
            "reason": reason, "message": message}
    if was is None:
        return [*conditions, said]
    return [said if each is was else each for each in conditions]
