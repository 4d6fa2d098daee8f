"""The order of the policies. Same inputs, same plan: no I/O, no clock, nothing remembered between calls."""

from dataclasses import replace
from datetime import datetime

from trainmaster.api.policy import MANAGED_BY_US
from trainmaster.engine import memory
from trainmaster.engine.actions import DeletePod, Plan
from trainmaster.engine.backoff import past_backoff
from trainmaster.engine.cleanup import finished
from trainmaster.engine.deadline import past_deadline
from trainmaster.engine.observed import Observed
from trainmaster.engine.suspend import resumed, suspended
from trainmaster.engine.waiting import onward
from trainmaster.frameworks.framework import TrainingJob


def plan(job: TrainingJob, seen: Observed, now: datetime) -> Plan:
    """Decide the next step for one job.

    The first policy that has an opinion wins, so the order below is the precedence of the rules. Waiting for a gang
    stands between the limits and progress: a job that waits can still be suspended, fail or be cleaned up.
    """
    moment = now.replace(microsecond=0)  # moments are stored in whole seconds; deciding on the same is deciding once
    for policy in (not_ours, finished, suspended, resumed, past_backoff, past_deadline):
        if (decided := policy(job, seen, moment)) is not None:
            return with_last_words(decided, seen)
    return with_last_words(onward(job, seen, moment), seen)


def with_last_words(decided: Plan, seen: Observed) -> Plan:
    """The plan, with the end of every failed pod that it deletes written down first, whichever policy deletes it."""
    doomed = {action.uid for action in decided.actions if isinstance(action, DeletePod)}
    known = memory.recall(decided.status)
    for pod in seen.pods.values():
        if pod.uid in doomed and pod.phase == "Failed":
            known = memory.note_end(known, pod, comes_back=False)
    if known == memory.recall(decided.status):
        return decided
    return replace(decided, status=memory.keep(decided.status, known), write_ahead=True)


def not_ours(job: TrainingJob, seen: Observed, now: datetime) -> Plan | None:  # noqa: ARG001  a policy like the others
    """Leave alone what is being deleted (the garbage collector has it), what others run, and what has no roles."""
    managed_elsewhere = job.run_policy.managed_by not in (None, MANAGED_BY_US)
    return Plan(job.status) if job.deleting or managed_elsewhere or not job.roles else None
