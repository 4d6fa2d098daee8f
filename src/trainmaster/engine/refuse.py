"""What happens to a job that cannot be run as it is written: it says so, at once and where people look."""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from trainmaster.api.kubeflow_v1 import JobKind
from trainmaster.api.policy import ConditionType, JobStatus
from trainmaster.engine import conditions
from trainmaster.engine.actions import Plan, warning


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
