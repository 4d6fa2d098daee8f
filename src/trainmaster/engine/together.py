"""Opt-in, by annotation: what one failed replica means for the others (B-42).

Most frameworks cannot take back a single rank: the others hang until they are restarted too. Off by default, because
upstream restarts replicas one by one and people rely on it.
"""

from collections.abc import Sequence
from dataclasses import replace as with_fields

from msgspec.structs import replace

from trainmaster.api.policy import CleanPodPolicy, OnReplicaFailure
from trainmaster.engine import memory
from trainmaster.engine.observed import Observed
from trainmaster.engine.restart import State
from trainmaster.engine.status import Seat
from trainmaster.frameworks.framework import TrainingJob


def restarted(job: TrainingJob, seen: Observed, taken: Sequence[Seat]) -> TrainingJob:
    """The job, with everybody sent away who did not fail, if somebody who did comes back and all are to.

    Those sent away count for nothing however they end, so a whole gang costs its limit one restart; what some of them
    had completed is done again, because the others need them.
    """
    fails = any(seat.state is State.RESTARTING and seat.news for seat in taken)
    if not fails or job.on_replica_failure is not OnReplicaFailure.RESTART_ALL:
        return job
    known = memory.recall(job.status)
    stay = {seat.pod.uid for seat in taken if seat.pod and seat.state is State.RESTARTING}
    leaving = {pod.uid for pod in seen.pods.values()} - stay
    known = replace(known, leaving=tuple(sorted({*known.leaving, *leaving})), completed={})
    return with_fields(job, status=memory.keep(job.status, known))


def failure(job: TrainingJob, taken: Sequence[Seat]) -> str:
    """Why the job fails with its first replica, if it is to; else nothing."""
    failed = [seat for seat in taken if seat.state in (State.FAILED, State.RESTARTING)]
    if not failed or job.on_replica_failure is not OnReplicaFailure.FAIL_ALL:
        return ""
    role = failed[0].role
    count = sum(seat.role is role for seat in failed)
    return f"Job {job.name} has failed because {count} {role.name} replica(s) failed and it is to fail with the first"


def cleaning(job: TrainingJob, *, failed: bool) -> CleanPodPolicy:
    """Which pods go at the end: if all are to fail with one, those that still run do."""
    policy = job.run_policy.clean_pod_policy
    if failed and policy is CleanPodPolicy.NONE and job.on_replica_failure is OnReplicaFailure.FAIL_ALL:
        return CleanPodPolicy.RUNNING
    return policy
