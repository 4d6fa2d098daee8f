"""When the finished job itself goes."""

from datetime import datetime, timedelta

from trainmaster.api.policy import JobStatus
from trainmaster.engine.actions import DeleteJob, Plan
from trainmaster.frameworks.framework import TrainingJob


def ends(job: TrainingJob, status: JobStatus) -> datetime | None:
    """When the job may be deleted, if ever."""
    seconds = job.run_policy.ttl_seconds_after_finished
    if seconds is None or status.completion_time is None:
        return None
    return status.completion_time + timedelta(seconds=seconds)


def expired(job: TrainingJob, now: datetime) -> Plan | None:
    """Delete a job whose time after the end is over; the garbage collector has the rest."""
    end = ends(job, job.status)
    if end is None or now < end:
        return None
    return Plan(job.status, (DeleteJob(job.uid, job.framework.deleted_reason),))
