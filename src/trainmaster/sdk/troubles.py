"""What keeps the replicas of jobs that should run from running, in one sentence a job: for lists of jobs.

A job whose replicas end each time after the start is running as far as its conditions go; only its pods know. One list
of pods is asked for all jobs together, and only if one of them should run. `explain` says more about a single job.
"""

from collections.abc import Sequence

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, controller_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Forbidden, NotFound
from trainmaster.sdk.jobs import RUNNING, WAITING, Job
from trainmaster.sdk.replicas import end_in_words, last_end, replica_of
from trainmaster.sdk.session import some

ALIVE = "status.phase!=Succeeded,status.phase!=Failed"
MOST = 1000            # pods that are looked at: the reason is a courtesy, and a list must stay quick
MOST_NAMED = 16        # jobs that are asked for by their names, else all


async def troubles(client: Client, jobs: Sequence[Job], namespace: str) -> dict[str, str]:
    """By the UID of the job, for those that have any."""
    found: dict[str, list[Object]] = {}
    about = list(filter(_should_run, jobs))
    for label in sorted({job.pod_label for job in about}):
        names = sorted({job.name for job in about if job.pod_label == label})
        chosen = f"{label} in ({','.join(names)})" if len(names) <= MOST_NAMED else label
        try:
            page = await client.list(PODS, namespace, labels=chosen, fields=ALIVE, limit=MOST)
        except (Forbidden, NotFound):
            continue      # the jobs are what was asked for
        for pod in page.items:
            if (owner := controller_of(pod)) is not None:
                found.setdefault(str(owner.get("uid", "")), []).append(pod)
    return {uid: said for uid, pods in found.items() if (said := told(pods))}


def reasoned(job: Job, waits: str, pods: Sequence[Object]) -> Job:
    """The job with what its group waits for, or else with what ails its pods, if it should run. Pure."""
    job = Job(job.resource, job.object, waits)
    return Job(job.resource, job.object, waits, told(pods)) if _should_run(job) else job


def told(pods: Sequence[Object]) -> str:
    """What most of the replicas that are in trouble have in common, "" if all is well. Pure."""
    members: dict[str, list[str]] = {}
    for pod in pods:
        if why := _trouble(pod):
            members.setdefault(why, []).append(replica_of(pod).name)
    if not members:
        return ""
    why, names = max(members.items(), key=lambda each: len(each[1]))
    rest = sum(map(len, members.values())) - len(names)
    return f"{some(sorted(names), 3)}: {why}" + (f" (and {rest} more in trouble)" if rest else "")


def _should_run(job: Job) -> bool:
    return job.state in (RUNNING, WAITING) and not job.waits


def _trouble(pod: Object) -> str:
    replica, last = replica_of(pod), last_end(pod)
    if replica.state == "Running":
        if not replica.restarts or last is None:
            return ""
        times = "once" if replica.restarts == 1 else f"{replica.restarts} times"
        return f"started again {times}, last after: {end_in_words(pod, last)}"
    return "" if replica.ended or replica.state == "Terminating" else replica.why
