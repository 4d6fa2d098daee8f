"""How often replicas may be started again, and when to give up.

Upstream counts only what running pods say of themselves, so a pod that is made anew starts from zero and a job with
exit-code restarts is never given up (B-04). Here every restart counts, in place or anew, also after its pod is gone.
"""

from datetime import datetime

from trainmaster.api.policy import ConditionType
from trainmaster.engine import memory
from trainmaster.engine.actions import Plan, normal
from trainmaster.engine.cleanup import conclude
from trainmaster.engine.observed import Observed
from trainmaster.engine.restart import State
from trainmaster.engine.status import Seat, counted, created, seats
from trainmaster.frameworks.framework import TrainingJob


def past_backoff(job: TrainingJob, seen: Observed, now: datetime) -> Plan | None:
    """Fail a job at its `backoffLimit`-th restart; with 0 at the first failure of any replica, whatever its policy."""
    limit = job.run_policy.backoff_limit
    if limit is None:
        return None
    taken = seats(job, seen)
    too_often = restarts(job, taken) >= max(limit, 1)
    failed_at_all = limit == 0 and any(seat.state in (State.FAILED, State.RESTARTING) for seat in taken)
    if not too_often and not failed_at_all:
        return None
    known = memory.recall(job.status)
    for seat in taken:
        if seat.pod and seat.state in (State.FAILED, State.RESTARTING):
            known = memory.note_end(known, seat.pod, comes_back=False)
    status = memory.keep(counted(created(job, now), taken, job), known)
    message = f"Job {job.name} has failed because it has reached the specified backoff limit"
    return conclude(job, seen, now, status, ConditionType.FAILED, message, [normal(f"{job.kind}Failed", message)])


def restarts(job: TrainingJob, taken: list[Seat]) -> int:
    """All restarts so far, with those that the present failures now ask for."""
    known = memory.recall(job.status)
    uncounted = [
        (seat.pod, seat.state) for seat in taken
        if seat.pod and seat.state is not State.LEAVING and not memory.noted(known, seat.pod)
    ]
    present = sum(pod.restarts + (state is State.RESTARTING) for pod, state in uncounted)
    return memory.restarts(known) + present
