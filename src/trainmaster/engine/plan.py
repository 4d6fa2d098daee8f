"""The order of the policies. Same inputs, same plan: no I/O, no clock, nothing remembered between calls."""

from datetime import datetime

from trainmaster.api.policy import MANAGED_BY_US
from trainmaster.engine.actions import Plan
from trainmaster.engine.backoff import past_backoff
from trainmaster.engine.cleanup import finished
from trainmaster.engine.deadline import past_deadline
from trainmaster.engine.observed import Observed
from trainmaster.engine.progress import progress
from trainmaster.engine.suspend import resumed, suspended
from trainmaster.frameworks.framework import TrainingJob


def plan(job: TrainingJob, seen: Observed, now: datetime) -> Plan:
    """Decide the next step for one job.

    The first policy that has an opinion wins, so the order below is the precedence of the rules. Waiting for a gang
    belongs between the limits and progress: a job that waits can still be suspended, fail or be cleaned up.
    """
    moment = now.replace(microsecond=0)  # moments are stored in whole seconds; deciding on the same is deciding once
    for policy in (not_ours, finished, suspended, resumed, past_backoff, past_deadline):
        if (decided := policy(job, seen, moment)) is not None:
            return decided
    return progress(job, seen, moment)


def not_ours(job: TrainingJob, seen: Observed, now: datetime) -> Plan | None:  # noqa: ARG001  a policy like the others
    """Leave alone what is being deleted (the garbage collector has it), what others run, and what has no roles."""
    managed_elsewhere = job.run_policy.managed_by not in (None, MANAGED_BY_US)
    return Plan(job.status) if job.deleting or managed_elsewhere or not job.roles else None
