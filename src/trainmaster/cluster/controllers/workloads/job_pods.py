"""Which pods a Job needs next, which it needs no more, and when it may try again. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from trainmaster.api.meta import Object, metadata, moment, name_of
from trainmaster.cluster.controllers.workloads.completion import (
    FAILURES,
    FINALIZER,
    Tally,
    is_failed,
    is_suspended,
    is_tracked,
    waits_for_the_end,
)
from trainmaster.cluster.controllers.workloads.indexes import INDEX, index_of
from trainmaster.cluster.controllers.workloads.pods import (
    condition_of,
    created,
    from_template,
    has_ended,
    phase_of,
    results_of,
)
from trainmaster.cluster.controllers.workloads.replicas import MOST_AT_ONCE, doomed

# Ten seconds after the first failure, twice as long after each that follows, as in Kubernetes.
FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=10), timedelta(minutes=10)
VARIABLE = "JOB_COMPLETION_INDEX"


@dataclass(frozen=True, slots=True)
class Need:
    """What brings the pods of a job that goes on to where they should be."""

    create: tuple[Object, ...] = ()
    withdraw: tuple[Object, ...] = ()        # not wanted any more: deleted, and not counted as failed
    not_before: datetime | None = None       # when what failed may be tried again


def need(tally: Tally) -> Need:
    job, active = tally.job, tally.active
    if is_suspended(job):
        return Need(withdraw=tuple(active))
    wanted = _wanted(tally)
    surplus = _surplus(tally, max(0, len(active) - wanted))
    if surplus:
        return Need(withdraw=tuple(surplus[:MOST_AT_ONCE]))
    more = wanted - len(active) - (len(tally.terminating) if waits_for_the_end(job) else 0)
    if more <= 0:
        return Need()
    more = min(more, MOST_AT_ONCE)
    if tally.per_index is not None:
        return _by_index(tally, more)
    at = _next_try(ended_pods(tally.pods, job), job)
    if at is not None and at > tally.now:
        return Need(not_before=at)
    if tally.indexed:
        return Need(tuple(_pod(job, index) for index in islice(_pending(tally), more)))
    return Need((_pod(job),) * more)


def held(tally: Tally) -> set[int]:
    """Of failed indexes that will be tried again: the pods, by identity, that remember how often, until there is
    another that does.
    """
    if tally.per_index is None:
        return set()
    last: dict[int, Object] = {}
    for pod in tally.pods:
        index = index_of(pod)
        if index is None or index in tally.succeeded_indexes | tally.failed_indexes:
            continue
        if index not in last or _failures(pod) >= _failures(last[index]):
            last[index] = pod
    return {id(pod) for pod in last.values() if is_failed(tally.job, pod)}


def ended_pods(pods: Iterable[Object], job: Object) -> list[Object]:
    return [pod for pod in pods if has_ended(pod) or is_failed(job, pod)]


def _wanted(tally: Tally) -> int:
    parallel = int(tally.spec.get("parallelism", 1))
    if tally.spec.get("completions") is None:
        # Any success is the success of all: those that run may finish, and no others start.
        return len(tally.active) if tally.succeeded else parallel
    return max(0, min(parallel, tally.completions - tally.succeeded - len(tally.failed_indexes)))


def _surplus(tally: Tally, least: int) -> list[Object]:
    """Pods that must go: those beyond the indexes there are, those that share one, and then any."""
    if not tally.indexed:
        return doomed(tally.active)[:least]
    taken: set[int] = set()
    gone, rest = [], []
    for pod in reversed(doomed(tally.active)):      # those that do most keep their index
        index = index_of(pod)
        if index is None or index >= tally.completions or index in taken:
            gone.append(pod)
        else:
            taken.add(index)
            rest.append(pod)
    return gone + doomed(rest)[: max(0, least - len(gone))]


def _pending(tally: Tally) -> Iterator[int]:
    """The indexes that nobody works on, one by one: a job may have billions, and is begun with the first."""
    busy = {index_of(pod) for pod in tally.active}
    if waits_for_the_end(tally.job):
        busy |= {index_of(pod) for pod in tally.terminating}
    done = tally.succeeded_indexes | tally.failed_indexes
    return (index for index in range(tally.completions) if index not in busy and index not in done)


def _by_index(tally: Tally, more: int) -> Need:
    """Each index waits for itself alone."""
    ended: dict[int | None, list[Object]] = {}
    for pod in ended_pods(tally.pods, tally.job):
        ended.setdefault(index_of(pod), []).append(pod)
    ready: list[Object] = []
    waits: list[datetime] = []
    for index in _pending(tally):
        at = _next_try(ended.get(index, ()), tally.job)
        if at is not None and at > tally.now:
            waits.append(at)
            continue
        ready.append(_pod(tally.job, index, failures=tally.failures_of(index)))
        if len(ready) == more:
            break      # the others are looked at once these are there
    return Need(tuple(ready), not_before=min(waits, default=None))


def _next_try(ended: Sequence[Object], job: Object) -> datetime | None:
    """When the next pod may start, after the failures since the last success."""
    failures, last = 0, None
    for at, pod in sorted(((_ended_at(pod), pod) for pod in ended), key=lambda each: each[0]):
        failed = is_failed(job, pod)
        failures, last = (failures + 1, at) if failed else (0, None)
    if last is None:
        return None
    return last + min(LONGEST_DELAY, FIRST_DELAY * (1 << min(failures - 1, 20)))


def _ended_at(pod: Object) -> datetime:
    ends = [((result.get("state") or {}).get("terminated") or {}).get("finishedAt") for result in results_of(pod)]
    known = [each for each in ends if each]
    if known:
        return moment(max(known))
    return moment(condition_of(pod, "Ready").get("lastTransitionTime") or created(pod))


def _failures(pod: Object) -> int:
    return int((metadata(pod).get("annotations") or {}).get(FAILURES) or 0)


def _pod(job: Object, index: int | None = None, failures: int | None = None) -> Object:
    pod = from_template(job["spec"]["template"], job, finalizers=[FINALIZER])
    if index is None:
        return pod
    about, name = pod["metadata"], f"{name_of(job)}-{index}"
    about["generateName"] = f"{name}-"
    about["labels"] = {**(about.get("labels") or {}), INDEX: str(index)}
    about["annotations"] = {**(about.get("annotations") or {}), INDEX: str(index)}
    if failures is not None:
        about["annotations"][FAILURES] = str(failures)
    spec = {**pod["spec"], "hostname": name}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_indexed(container) for container in spec[field]]
    return {**pod, "spec": spec}


def _indexed(container: Object) -> Object:
    """A container that is told its index, unless it says otherwise."""
    env = container.get("env") or []
    if any(each.get("name") == VARIABLE for each in env):
        return container
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*env, {"name": VARIABLE, "valueFrom": source}]}


def releasable(tally: Tally, *, deleted: bool) -> list[Object]:
    """Pods that may lose their finalizer once the status names them."""
    kept = held(tally)
    return [pod for pod in tally.pods if is_tracked(pod) and id(pod) not in kept
            and (deleted or phase_of(pod) == "Succeeded" or is_failed(tally.job, pod))]
