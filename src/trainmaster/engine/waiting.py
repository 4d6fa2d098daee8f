"""A job that its gang scheduler has not let in yet: no pods, no start, so no deadline runs; only its group is there.

Upstream is woken by the group alone and only through its owner (B-14); here time wakes it too.
"""

from datetime import datetime, timedelta

from msgspec.structs import replace

from trainmaster.engine import companions, memory
from trainmaster.engine.actions import Plan
from trainmaster.engine.observed import Observed
from trainmaster.engine.progress import progress
from trainmaster.engine.status import created
from trainmaster.frameworks.framework import TrainingJob

# A watch tells at once; this is for the day on which it does not.
RECHECK = timedelta(minutes=1)


def onward(job: TrainingJob, seen: Observed, now: datetime) -> Plan:
    """What a job does that nothing stops."""
    return waiting(job, seen, now) or progress(job, seen, now)


def waiting(job: TrainingJob, seen: Observed, now: datetime) -> Plan | None:
    """Wait, if nothing of the job is there yet. What runs already is judged whatever became of its group."""
    known = memory.recall(job.status)
    if seen.pods or known.completed or not companions.is_held_back(job, seen):
        return None
    status = created(job, now)
    status = replace(status, last_reconcile_time=status.last_reconcile_time or now)
    return Plan(status, companions.kept(job, seen), look_again_at=now + RECHECK)
