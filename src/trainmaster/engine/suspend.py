"""Suspend and resume."""

from dataclasses import replace as with_fields
from datetime import datetime

from msgspec.structs import replace

from trainmaster.api.policy import ConditionType
from trainmaster.engine import companions, conditions, memory
from trainmaster.engine.actions import Action, DeletePod, DeleteService, Plan, normal
from trainmaster.engine.observed import Observed
from trainmaster.engine.status import created
from trainmaster.engine.waiting import onward
from trainmaster.frameworks.framework import TrainingJob


def suspended(job: TrainingJob, seen: Observed, now: datetime) -> Plan | None:
    """Remove everything of a job that is to pause, whatever `cleanPodPolicy` says.

    The condition is stored before the first pod goes: whoever finds half of the pods gone must know why, or the rest
    would look like failures.
    """
    if not job.run_policy.suspend:
        return None
    reason, message = f"{job.kind}Suspended", f"{job.kind} {job.name} is suspended."
    status = created(job, now)
    if status.says(ConditionType.RUNNING):
        status = conditions.put(status, ConditionType.RUNNING, reason, message, now, true=False)
    status = conditions.put(status, ConditionType.SUSPENDED, reason, message, now)
    idle = {role: replace(count, active=0) if count.active else count
            for role, count in status.replica_statuses.items()}
    status = replace(status, replica_statuses=idle)
    actions: tuple[Action, ...] = (
        *(DeleteService(found.name, found.uid) for found in seen.services.values() if not found.deleting),
        *(DeletePod(pod.name, pod.uid) for pod in seen.pods.values() if not pod.deleting),
        *companions.dropped(job, seen),
    )
    told = () if job.status.says(ConditionType.SUSPENDED) else (normal(reason, message),)
    return Plan(status, actions, write_ahead=bool(actions), events=told)


def resumed(job: TrainingJob, seen: Observed, now: datetime) -> Plan | None:
    """Start a suspended job again, from the first index, with a new start time.

    Pods of the run before that are still there are remembered by UID and mean nothing any more, however they end
    (upstream counts them as failures, B-66); their successors are made when they are gone. All this is stored before
    the first new pod, so as long as the status says Suspended, every pod is an old one.
    """
    if not job.status.says(ConditionType.SUSPENDED):
        return None
    reason, message = f"{job.kind}Resumed", f"{job.kind} {job.name} is resumed."
    status = conditions.put(created(job, now), ConditionType.SUSPENDED, reason, message, now, true=False)
    known = replace(memory.recall(status), completed={}, leaving=tuple(sorted(pod.uid for pod in seen.pods.values())))
    again = with_fields(job, status=memory.keep(replace(status, start_time=now), known))
    plan = onward(again, seen, now)
    return with_fields(plan, write_ahead=True, events=(normal(reason, message), *plan.events))
