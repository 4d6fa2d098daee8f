"""What happens to pods and services once the job has ended, and the end itself."""

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from trainmaster.api.policy import CleanPodPolicy, ConditionType, JobStatus
from trainmaster.engine import companions, together, ttl
from trainmaster.engine.actions import Action, DeletePod, DeleteService, Event, Plan
from trainmaster.engine.observed import Observed, Pod
from trainmaster.engine.status import ended
from trainmaster.frameworks.framework import TrainingJob


def finished(job: TrainingJob, seen: Observed, now: datetime) -> Plan | None:
    """A job that has ended: its pods go as `cleanPodPolicy` says now, then the job as its TTL says."""
    if not job.status.finished:
        return None
    if (expired := ttl.expired(job, now)) is not None:
        return expired
    failed = job.status.says(ConditionType.FAILED)
    return Plan(_recounted(job, seen), leftovers(job, seen, failed=failed), look_again_at=ttl.ends(job, job.status))


def conclude(
    job: TrainingJob,
    seen: Observed,
    now: datetime,
    status: JobStatus,
    kind: ConditionType,
    message: str,
    events: Iterable[Event],
) -> Plan:
    """End the job. The verdict is stored before a pod that led to it is deleted."""
    final = ended(status, job, kind, message, now)
    actions = leftovers(job, seen, failed=kind is ConditionType.FAILED)
    return Plan(final, actions, write_ahead=bool(actions), events=tuple(events), look_again_at=ttl.ends(job, final))


def leftovers(job: TrainingJob, seen: Observed, *, failed: bool) -> tuple[Action, ...]:
    """What the policy removes, pods and the services of the same name; and what was beside them, in any case."""
    policy = together.cleaning(job, failed=failed)
    doomed = [pod for pod in seen.pods.values() if policy is CleanPodPolicy.ALL or not pod.ended or pod.lingers]
    return (*removal(seen, doomed if policy is not CleanPodPolicy.NONE else []), *companions.dropped(job, seen))


def removal(seen: Observed, doomed: list[Pod]) -> tuple[Action, ...]:
    """Delete pods with their services. Services first: they are found through their pods and must not outlive them."""
    services = [seen.services[pod.role, pod.index] for pod in doomed if (pod.role, pod.index) in seen.services]
    return (
        *(DeleteService(found.name, found.uid) for found in services if not found.deleting),
        *(DeletePod(pod.name, pod.uid) for pod in doomed if not pod.deleting),
    )


def _recounted(job: TrainingJob, seen: Observed) -> JobStatus:
    """A failed job's `active` follows the pods that are still running, downwards only (B-50)."""
    fresh = {}
    for role, count in job.status.replica_statuses.items():
        running = sum(
            pod.role == role.lower() and pod.phase == "Running" and not pod.deleting for pod in seen.pods.values()
        )
        fresh[role] = replace(count, active=min(count.active, running)) if count.active > running else count
    return replace(job.status, replica_statuses=fresh)
