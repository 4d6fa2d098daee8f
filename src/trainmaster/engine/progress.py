"""The normal case: create what is missing, delete what is too much, start again what failed, say how it is."""

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from trainmaster.api.policy import ConditionType, PostMortem
from trainmaster.engine import companions, conditions, deadline, desired, memory, together, troubles
from trainmaster.engine.actions import Action, DeletePod, DeleteService, Event, Plan, normal, warning
from trainmaster.engine.cleanup import conclude
from trainmaster.engine.observed import Observed
from trainmaster.engine.restart import State
from trainmaster.engine.status import Seat, counted, created, judge, seats, started, tally
from trainmaster.frameworks.framework import Failed, Outcome, Running, Succeeded, Tally, TrainingJob


def progress(job: TrainingJob, seen: Observed, now: datetime) -> Plan:
    """Judge the job by its replicas; if it is not over, bring it nearer to what its spec asks for."""
    taken = seats(job, seen)
    tallies = tally(taken, job.roles)
    outcome = judge(job, tallies)
    failing = None if isinstance(outcome, Succeeded) else _failure(job, taken, tallies, outcome)
    over = isinstance(outcome, Succeeded) or failing is not None
    if not over and (again := together.restarted(job, seen, taken)) is not job:
        job, taken = again, seats(again, seen)
    events = _ends(job, taken)
    status = counted(started(created(job, now), now), taken, job)
    status = memory.keep(status, _noted(job, seen, taken, over=over))
    if over and job.framework.runs_first:
        running = f"{job.kind} {job.name} is running."
        status = conditions.put(status, ConditionType.RUNNING, f"{job.kind}Running", running, now)
    if isinstance(outcome, Succeeded):
        told = normal(f"{job.kind}Succeeded", outcome.message)
        return conclude(job, seen, now, status, ConditionType.SUCCEEDED, outcome.message, [*events, told])
    if failing is not None:
        message, told_so = failing
        return conclude(job, seen, now, status, ConditionType.FAILED, message, [*events, *told_so])

    restarting = [seat for seat in taken if seat.state is State.RESTARTING]
    if restarting:
        reason, message = f"{job.kind}Restarting", _restarting(job, restarting[0])
        status = conditions.put(status, ConditionType.RESTARTING, reason, message, now)
        events += [warning(reason, _restarting(job, seat)) for seat in restarting if seat.news]
        events += [warning(reason, told) for told in _restarts(job, restarting)]
    elif isinstance(outcome, Running):
        status = conditions.put(status, ConditionType.RUNNING, f"{job.kind}Running", outcome.message, now)
    removed = _removals(seen, taken)
    return Plan(
        status,
        (*companions.kept(job, seen), *removed, *_creations(job, seen, taken)),
        write_ahead=bool(removed),
        events=(*events, *troubles.of(seen)),
        look_again_at=deadline.ends(job, status),
    )


def _failure(
    job: TrainingJob, taken: list[Seat], tallies: Mapping[str, Tally], outcome: Outcome
) -> tuple[str, list[Event]] | None:
    """Why the job fails, if it does. An exit code that rules out another try has its own words."""
    reason = f"{job.kind}Failed"
    told = [normal(reason, outcome.message)] if isinstance(outcome, Failed) else []
    for role in job.roles:
        if tallies[role.name].permanent:
            message = f'job "{job.name}" is failing because "{role.name}" replica(s) failed.'
            # Upstream's other kinds tell of a restart here that never comes (B-09).
            return message, [warning(reason, message), *(told if job.framework.restarts is None else ())]
    if not isinstance(outcome, Failed) and (fast := together.failure(job, taken)):
        return fast, [normal(reason, fast)]
    return (outcome.message, told) if isinstance(outcome, Failed) else None


def _restarting(job: TrainingJob, seat: Seat) -> str:
    return f"job {job.name} is restarting because {seat.role.name} replica(s) failed."


def _restarts(job: TrainingJob, restarting: list[Seat]) -> list[str]:
    """What the kind itself says of restarts that are news, role by role."""
    if job.framework.restarts is None:
        return []
    counts = {seat.role.name: [each for each in restarting if each.role is seat.role] for seat in restarting}
    return [job.framework.restarts(job.group, found[0].role, len(found)) for found in counts.values()
            if any(seat.news for seat in found)]


def _ends(job: TrainingJob, taken: list[Seat]) -> list[Event]:
    """The exit codes that are news."""
    return [
        normal("ExitedWithCode", f"Pod: {job.namespace}.{seat.pod.name} exited with code {seat.pod.exit_code}")
        for seat in taken
        if seat.pod and seat.pod.ended and seat.pod.exit_code is not None and seat.news
    ]


def _noted(job: TrainingJob, seen: Observed, taken: list[Seat], *, over: bool) -> PostMortem:
    """The memory with everything in it that is news. Once the job is over, nobody comes back.

    Pods beyond the wanted number are among those that leave: if they are wanted again before they are gone, what
    became of them is not their failure (B-07).
    """
    known = memory.recall(job.status)
    for seat in taken:
        if seat.pod and seat.state in (State.FAILED, State.RESTARTING):
            known = memory.note_end(known, seat.pod, comes_back=seat.state is State.RESTARTING and not over)
    for role in job.roles:
        done = [seat.index for seat in taken if seat.role is role and seat.done]
        known = memory.note_completed(known, role.name, done)
    wanted = {seat.member for seat in taken}
    leaving = {pod.uid for member, pod in seen.pods.items() if member not in wanted or pod.uid in known.leaving}
    return replace(known, leaving=tuple(sorted(leaving)))


def _removals(seen: Observed, taken: list[Seat]) -> tuple[Action, ...]:
    """Members beyond the wanted number, and pods that make room for their successors."""
    wanted = {seat.member for seat in taken}
    surplus = [pod for member, pod in seen.pods.items() if member not in wanted]
    replaced = [seat.pod for seat in taken if seat.pod and seat.state in (State.RESTARTING, State.LEAVING)]
    return (
        *(DeleteService(found.name, found.uid) for member, found in seen.services.items()
          if member not in wanted and not found.deleting),
        *(DeletePod(pod.name, pod.uid) for pod in (*surplus, *replaced) if not pod.deleting),
    )


def _creations(job: TrainingJob, seen: Observed, taken: list[Seat]) -> tuple[Action, ...]:
    """Names before pods: nobody should look for a peer whose name does not exist yet and then remember that."""
    if companions.is_held_back(job, seen):
        return ()  # its group is new, or was taken away: those that run go on, the others wait
    return (
        *(desired.service(job, seat.role, seat.index) for seat in taken if seat.member not in seen.services),
        *(desired.pod(job, seat.role, seat.index) for seat in taken if seat.state is None),
    )
