"""Change a job that is there: more or fewer replicas, suspend, resume, start again, delete.

Each is one request wherever one can do it; what takes several is safe to repeat, but for making a job anew that has
ended: its name must be free first. So that is tried out before anything is removed.
"""

from collections.abc import Mapping
from contextlib import aclosing

from trainmaster.api.core import CONFIG_MAPS, PODS
from trainmaster.api.meta import Object, metadata, name_of, uid_of
from trainmaster.kube.errors import Forbidden, KubeError
from trainmaster.sdk.errors import NoReplica, NotPossible, TimedOut
from trainmaster.sdk.jobs import Job, is_training
from trainmaster.sdk.removal import PATIENCE, remove
from trainmaster.sdk.replicas import replica_of
from trainmaster.sdk.session import JobRef, Session
from trainmaster.sdk.submit import FOR_JOB, owned_by

# Written by whoever handled the old object; the new one gets its own.
_OF_THE_OLD = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "deletionTimestamp",
               "deletionGracePeriodSeconds", "finalizers", "selfLink", "ownerReferences")


async def scale(session: Session, job: JobRef, replicas: int | Mapping[str, int], namespace: str | None = None) -> Job:
    """So many replicas: of each role named, or of the one role that has a number to change. Raises NoReplica."""
    there = await session.find(job, namespace)
    if not is_training(there.resource):
        raise NotPossible(f"{_called(there)}: the number of pods of a plain Job is its parallelism; change it with "
                          "kubectl.")
    specs = {name.lower(): name for name in there.replica_specs()}
    asked = {_only_role(there): replicas} if isinstance(replicas, int) else replicas
    wanted: dict[str, Object] = {}
    for role, number in asked.items():
        if role.lower() not in specs:
            raise NoReplica(f"{_called(there)} has no role '{role}'. It has {', '.join(sorted(specs))}.")
        if number < 0:
            raise NotPossible(f"{role}={number}: the number of replicas cannot be below 0.")
        wanted[specs[role.lower()]] = {"replicas": number}
    if there.finished:
        raise NotPossible(f"{_called(there)} has {there.state.lower()}; there is nothing to scale.")
    return await _patched(session, there, {"spec": {there.replica_field(): wanted}})


def _only_role(job: Job) -> str:
    roles = list(job.replica_specs())
    if len(roles) == 1:
        return roles[0]
    if "Worker" in roles:
        return "Worker"
    raise NotPossible(f"{_called(job)} has the roles {', '.join(roles)}: say which, as in {roles[0].lower()}=2."
                      if roles else f"{_called(job)} has no roles.")


async def suspend(session: Session, job: JobRef, namespace: str | None = None) -> Job:
    """Its pods go, the job stays. Raises NotPossible for one that has ended."""
    return await _suspended(session, await session.find(job, namespace), True)


async def resume(session: Session, job: JobRef, namespace: str | None = None) -> Job:
    return await _suspended(session, await session.find(job, namespace), False)


async def _suspended(session: Session, job: Job, wanted: bool) -> Job:
    if job.finished:
        what = "suspended" if wanted else "resumed"
        raise NotPossible(f"{_called(job)} has {job.state.lower()}, so it cannot be {what}. "
                          f"`trainmaster restart {job.name}` runs it again.")
    inner: Object = {"suspend": wanted}
    return await _patched(session, job, {"spec": {"runPolicy": inner} if is_training(job.resource) else inner})


async def restart(session: Session, job: JobRef, namespace: str | None = None, *, replica: str = "") -> Job:
    """From the beginning: a job that has ended is made anew, one that runs gets new pods; or only one replica does."""
    there = await session.find(job, namespace)
    if replica:
        return await _restart_replica(session, there, replica)
    if there.finished:
        return await _again(session, there)
    await _suspended(session, there, True)
    await _without_pods(session, there)
    return await _suspended(session, there, False)


async def _restart_replica(session: Session, job: Job, replica: str) -> Job:
    if job.finished:
        raise NotPossible(f"{_called(job)} has {job.state.lower()}; restart the job as a whole.")
    pods = (await session.client.list(PODS, job.namespace, labels=job.pods)).items
    meant = [pod for pod in pods if replica.lower() in (replica_of(pod).name, name_of(pod))]
    if not meant and _is_to_be_made(job, replica):
        return job      # with a new pod, as was asked
    if not meant:
        names = ", ".join(sorted(replica_of(pod).name for pod in pods)) or "none"
        raise NoReplica(f"{_called(job)} has no replica '{replica}' (found: {names}).")
    await session.client.delete(PODS, name_of(meant[0]), job.namespace, uid=uid_of(meant[0]))
    return job


def _is_to_be_made(job: Job, replica: str) -> bool:
    """Whether a replica that has no pod now gets one: of a job that was resumed or scaled a moment ago, say."""
    suspended = ((job.object.get("spec") or {}).get("runPolicy") or {}).get("suspend")
    names = {f"{role.name.lower()}-{index}" for role in job.roles() for index in range(role.replicas)}
    return is_training(job.resource) and not suspended and replica.lower().removeprefix(f"{job.name}-") in names


async def _again(session: Session, job: Job) -> Job:
    """The same job once more, under the same name."""
    about = {name: value for name, value in metadata(job.object).items() if name not in _OF_THE_OLD}
    fresh = {**{name: value for name, value in job.object.items() if name != "status"}, "metadata": about}
    await _try_out(session, job, fresh)
    kept = await _made_for(session, job)
    for name in kept:      # else the script that was sent goes with the old job, and the new one waits for it
        await session.client.patch(CONFIG_MAPS, name, job.namespace, {"metadata": {"ownerReferences": None}})
    await remove(session.client, session.clock, job.resource, job.object)
    try:
        made = await session.client.create(job.resource, fresh, namespace=job.namespace)
    except KubeError as problem:
        raise NotPossible(f"{_called(job)} was removed and could not be made again: {problem}. Submit it anew from its "
                          "manifest or script.") from problem
    for name in kept:
        await session.client.patch(CONFIG_MAPS, name, job.namespace, owned_by(job.resource, made))
    return Job(job.resource, made)


async def _try_out(session: Session, job: Job, fresh: Object) -> None:
    """Whether the cluster would take it, under another name and as a dry run: a job that is removed and then refused
    would be lost. A quota that only the old one fills is no reason."""
    named = {**fresh, "metadata": {**fresh["metadata"], "name": f"{job.name[:40].rstrip('-')}-again"}}
    try:
        await session.client.request("POST", job.resource.path(job.namespace), query=[("dryRun", "All")], body=named)
    except Forbidden as problem:
        if "exceeded quota" not in str(problem):
            raise


async def _made_for(session: Session, job: Job) -> list[str]:
    """The names of what `trainmaster run` sent for this job, and is to go with it."""
    page = await session.client.list(CONFIG_MAPS, job.namespace, labels=f"{FOR_JOB}={job.name}")
    return [name_of(one) for one in page.items
            if any(owner["uid"] == job.uid for owner in metadata(one).get("ownerReferences") or ())]


async def _without_pods(session: Session, job: Job) -> None:
    """Returns once no pod of the job is left. Raises TimedOut."""
    ends = session.clock.monotonic() + PATIENCE
    while True:
        page = await session.client.list(PODS, job.namespace, labels=job.pods)
        left = {uid_of(pod) for pod in page.items}
        if not left:
            return
        seconds = int(ends - session.clock.monotonic())
        if seconds <= 0:
            raise TimedOut(f"{_called(job)} was suspended, but {len(left)} of its pods have not ended after "
                           f"{PATIENCE:.0f} s. `trainmaster resume {job.name}` goes on with it.")
        watch = session.client.watch(PODS, job.namespace, labels=job.pods, revision=page.revision, timeout=seconds)
        async with aclosing(watch) as events:
            async for event in events:
                if event.type == "DELETED":
                    left.discard(uid_of(event.object))
                if not left:
                    break


async def delete(session: Session, job: JobRef, namespace: str | None = None, *, wait: bool = True) -> Job:
    """With all that it owns. Returns once it is gone, unless told not to wait."""
    there = await session.find(job, namespace)
    await remove(session.client, session.clock, there.resource, there.object, wait=wait)
    return there


async def _patched(session: Session, job: Job, patch: Object) -> Job:
    return Job(job.resource, await session.client.patch(job.resource, job.name, job.namespace, patch))


def _called(job: Job) -> str:
    return f"{job.kind} {job.namespace}/{job.name}"
