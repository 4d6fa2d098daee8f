"""How the list of conditions changes: ordered by last change, and never again once the job has ended.

Upstream lets Succeeded and Failed both become true (B-12); here the first terminal condition is the last change.
"""

from datetime import datetime

from msgspec.structs import replace

from trainmaster.api.policy import Condition, ConditionType, JobStatus

_EXCLUDE = {ConditionType.RUNNING: ConditionType.RESTARTING, ConditionType.RESTARTING: ConditionType.RUNNING}
_TERMINAL = (ConditionType.SUCCEEDED, ConditionType.FAILED)


def put(
    status: JobStatus, kind: ConditionType, reason: str, message: str, now: datetime, *, true: bool = True
) -> JobStatus:
    """The status with the condition said. Saying it again with the same status and reason changes nothing."""
    if status.finished:
        return status
    word = str(true)
    before = status.condition(kind)
    if before and (before.status, before.reason) == (word, reason):
        return status
    same_status = before is not None and before.status == word
    made = Condition(
        type=kind.value,
        status=word,
        reason=reason,
        message=message,
        last_update_time=now,
        last_transition_time=before.last_transition_time if before and same_status else now,
    )
    others = [found for found in status.conditions if found.type not in (kind, _EXCLUDE.get(kind))]
    if kind in _TERMINAL:
        others = [replace(found, status="False") if found.type == ConditionType.RUNNING else found for found in others]
    return replace(status, conditions=(*others, made))
