"""Counts, conditions and times, recomputed every time from what is there and what is remembered."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from trainmaster.api.membership import JOB_NAME, OPERATOR_NAME, ROLE
from trainmaster.api.policy import ConditionType, JobStatus, PostMortem, ReplicaStatus
from trainmaster.engine import conditions, memory
from trainmaster.engine.observed import Observed, Pod
from trainmaster.engine.restart import State, is_permanent, state_of
from trainmaster.frameworks.framework import Outcome, Role, Tally, TrainingJob


@dataclass(frozen=True, slots=True)
class Seat:
    """One index of one role, and the pod that has it."""

    role: Role
    index: int
    pod: Pod | None
    state: State | None    # None: no pod, and one is wanted
    done: bool = False     # succeeded, whether or not the pod is still there
    news: bool = False     # it ended, and that is not written down yet

    @property
    def member(self) -> tuple[str, int]:
        return self.role.word, self.index


def seats(job: TrainingJob, seen: Observed) -> list[Seat]:
    """Every index that should exist, role by role, lowest first."""
    known = memory.recall(job.status)
    return [_seat(role, index, seen, known, done) for role in job.roles
            for done in [memory.completed(known, role.name)] for index in range(role.replicas)]


def _seat(role: Role, index: int, seen: Observed, known: PostMortem, done: frozenset[int]) -> Seat:
    pod = seen.pods.get((role.word, index))
    if pod is None:
        return Seat(role, index, None, State.SUCCEEDED if index in done else None, index in done)
    state = state_of(pod, role, known)
    if state is State.SUCCEEDED:
        return Seat(role, index, pod, state, done=True, news=index not in done)
    ended_badly = state in (State.FAILED, State.RESTARTING)
    return Seat(role, index, pod, state, news=ended_badly and not memory.noted(known, pod))


def tally(taken: list[Seat], roles: tuple[Role, ...]) -> dict[str, Tally]:
    """How the replicas of each role are."""
    return {role.name: _tally(role, [seat for seat in taken if seat.role is role]) for role in roles}


def _tally(role: Role, taken: list[Seat]) -> Tally:
    failed = [seat.pod for seat in taken if seat.state is State.FAILED and seat.pod]
    first = taken[0] if taken else None
    return Tally(
        role,
        active=sum(seat.state is State.ACTIVE for seat in taken),
        succeeded=sum(seat.done for seat in taken),
        failed=len(failed),
        permanent=sum(is_permanent(pod, role) for pod in failed),
        first_done=first is not None and first.done and (first.pod is None or first.pod.exit_code == 0),
    )


def judge(job: TrainingJob, tallies: Mapping[str, Tally]) -> Outcome:
    return job.framework.outcome(job.group, tallies)


def counted(status: JobStatus, taken: list[Seat], job: TrainingJob) -> JobStatus:
    """The status with fresh counts. As upstream, a replica that comes back has failed while its old pod is there."""
    fresh = {}
    for role in job.roles:
        states = [seat.state for seat in taken if seat.role is role]
        before = status.replica_statuses.get(role.name, ReplicaStatus())
        fresh[role.name] = replace(
            before,
            active=states.count(State.ACTIVE),
            succeeded=states.count(State.SUCCEEDED),
            failed=states.count(State.FAILED) + states.count(State.RESTARTING),
            selector=selector(job, role) if job.framework.kind.scaled else "",
        )
    return replace(status, replica_statuses=fresh)


def selector(job: TrainingJob, role: Role) -> str:
    """The pods of a role, as autoscalers ask for them."""
    labels = {JOB_NAME: job.name, OPERATOR_NAME: job.framework.kind.controller, ROLE: role.word}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def created(job: TrainingJob, now: datetime) -> JobStatus:
    """The status with the condition every job begins with."""
    message = f"{job.kind} {job.name} is created."
    if job.status.condition(ConditionType.CREATED):
        return job.status
    return conditions.put(job.status, ConditionType.CREATED, f"{job.kind}Created", message, now)


def started(status: JobStatus, now: datetime) -> JobStatus:
    return status if status.start_time else replace(status, start_time=now)


def ended(status: JobStatus, job: TrainingJob, kind: ConditionType, message: str, now: datetime) -> JobStatus:
    """The status with its terminal condition. In a job that succeeded, everybody who was active has succeeded."""
    made = conditions.put(status, kind, f"{job.kind}{kind.value}", message, now)
    if kind is ConditionType.SUCCEEDED:
        made = _without_followers(folded(made), job)
    # Nothing runs again, so only how replicas ended badly is still worth remembering.
    made = memory.keep(made, replace(memory.recall(made), completed={}, leaving=()))
    return replace(made, completion_time=made.completion_time or now)


def _without_followers(status: JobStatus, job: TrainingJob) -> JobStatus:
    """As upstream, which asks no role after the one that decided, a succeeded job has no selectors of the others."""
    decides = next((role for role in job.framework.kind.deciding if job.group.has(role)), "")
    order = [role.name for role in job.roles]
    asked = order[: order.index(decides) + 1] if decides in order else order
    return replace(status, replica_statuses={
        role: count if role in asked else replace(count, selector="") for role, count in status.replica_statuses.items()
    })


def folded(status: JobStatus) -> JobStatus:
    return replace(status, replica_statuses={
        role: replace(count, succeeded=count.succeeded + count.active, active=0) if count.active else count
        for role, count in status.replica_statuses.items()
    })
