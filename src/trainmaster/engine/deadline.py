"""The active deadline."""

from datetime import datetime, timedelta

from trainmaster.api.policy import ConditionType, JobStatus
from trainmaster.engine.actions import Plan, normal
from trainmaster.engine.cleanup import conclude
from trainmaster.engine.observed import Observed
from trainmaster.engine.status import created, judge, seats, tally
from trainmaster.frameworks.framework import Succeeded, TrainingJob


def past_deadline(job: TrainingJob, seen: Observed, now: datetime) -> Plan | None:
    """Fail a job that has been active longer than `activeDeadlineSeconds`.

    Active time starts at the latest start, so a suspended job does not use up its time. A job that has succeeded is
    not failed because we look late.
    """
    end = ends(job, job.status)
    if end is None or now < end or isinstance(judge(job, tally(seats(job, seen), job.roles)), Succeeded):
        return None
    message = f"Job {job.name} has failed because it was active longer than specified deadline"
    events = [normal(f"{job.kind}Failed", message)]
    return conclude(job, seen, now, created(job, now), ConditionType.FAILED, message, events)


def ends(job: TrainingJob, status: JobStatus) -> datetime | None:
    seconds, started = job.run_policy.active_deadline_seconds, status.start_time
    return None if seconds is None or started is None else started + timedelta(seconds=seconds)
