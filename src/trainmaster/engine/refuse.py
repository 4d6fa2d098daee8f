"""What happens to a job that cannot be run as it is written: it says so, at once and where people look."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from trainmaster.api.kubeflow_v1 import JobKind
from trainmaster.api.policy import ConditionType, JobStatus
from trainmaster.engine import conditions
from trainmaster.engine.actions import Plan, normal, warning
from trainmaster.engine.cleanup import conclude
from trainmaster.engine.observed import Observed
from trainmaster.engine.status import counted, created, seats
from trainmaster.frameworks.framework import TrainingJob


def refused(
    kind: JobKind, name: str, uid: str, status: JobStatus, wrong: Sequence[str], now: datetime
) -> Plan:
    """Fail a job that never started. One that runs goes on: a senseless edit must not cost the training."""
    moment = now.replace(microsecond=0)
    reason = f"{kind.kind}FailedValidation"
    why = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
    message = f"{kind.kind} failed validation because {why}"
    if status.finished:
        return Plan(status)
    if status.start_time is not None:
        return Plan(status, events=(warning(reason, message, about=uid),))
    made = status
    if made.condition(ConditionType.CREATED) is None:
        created = f"{kind.kind} {name} is created."
        made = conditions.put(made, ConditionType.CREATED, f"{kind.kind}Created", created, moment)
    made = conditions.put(made, ConditionType.FAILED, reason, message, moment)
    return Plan(replace(made, completion_time=moment), events=(warning(reason, message),))


def unmakeable(job: TrainingJob, seen: Observed, now: datetime, pod: str, why: str) -> Plan | None:
    """Fail a job one of whose pods the API server will never take: whoever waits for it would wait for ever.

    As long as others run, it is left at telling: then it was an edit, or more replicas than before.
    """
    if job.status.finished or any(found.phase == "Running" for found in seen.pods.values()):
        return None
    moment = now.replace(microsecond=0)
    message = f"Job {job.name} has failed because pod {pod} cannot be made: {why}"
    status = counted(created(job, moment), seats(job, seen), job)
    events = [normal(f"{job.kind}Failed", message)]
    return conclude(job, seen, moment, status, ConditionType.FAILED, message, events)
