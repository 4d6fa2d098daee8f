"""Send manifests to a cluster, as `kubectl create` would, and know which of them are jobs to follow."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.api.meta import Json, Object, Resource, labels_of, name_of, uid_of
from trainmaster.api.validation import problems
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import survey
from trainmaster.kube.errors import AlreadyExists, ApiError, NotFound
from trainmaster.sdk.errors import ManifestError, TimedOut
from trainmaster.sdk.jobs import Job, is_training
from trainmaster.sdk.manifests import Manifest, refusal, unknown_kind
from trainmaster.sdk.removal import remove
from trainmaster.sdk.session import Clock

MANAGER = "trainmaster-run"
FOR_JOB = "trainmaster.dev/job"      # label of what was made for a job of that name, and is to go with it


@dataclass(frozen=True, slots=True)
class Submitted:
    """An object as the cluster has it, and what became of it: created, replaced, or there already."""

    resource: Resource
    thing: Object
    how: str

    @property
    def is_training(self) -> bool:
        return is_training(self.resource)


async def submit(client: Client, clock: Clock, manifests: Sequence[Manifest], namespace: str) -> list[Submitted]:
    """Create the objects in order. A finished job of the same name makes room. Raises ManifestError."""
    there = await survey(client)
    kinds = {(s.resource.api_version, s.resource.kind): s.resource for s in there.kinds}
    unknown = [m for m in manifests if (m.thing["apiVersion"], m.thing["kind"]) not in kinds]
    if unknown:
        if (problem := there.failed.get(unknown[0].thing["apiVersion"])) is not None:
            raise problem      # its group does not answer; that another one does not is no matter
        raise ManifestError(unknown_kind(unknown[0], list(kinds)))
    for manifest in manifests:   # all before any is sent: half of a file is worse than none of it
        if wrong := problems(manifest.thing):
            raise ManifestError("; ".join(f"{manifest.place(problem.field)}: {problem}" for problem in wrong))
    resources = [kinds[manifest.thing["apiVersion"], manifest.thing["kind"]] for manifest in manifests]
    # First, since what comes with a job may have the name of what goes with the old one.
    replaced = [await _make_room(client, clock, manifest, resource, namespace)
                for manifest, resource in zip(manifests, resources, strict=True)]
    found = [
        await _submit(client, manifest, resource, namespace, replaced=gone)
        for manifest, resource, gone in zip(manifests, resources, replaced, strict=True)
    ]
    await _hand_over(client, found)
    return found


async def _make_room(
    client: Client, clock: Clock, manifest: Manifest, resource: Resource, namespace: str
) -> bool:
    """Remove a finished job of the same name; whether there was one."""
    if not is_training(resource) or not name_of(manifest.thing):
        return False
    where = manifest.thing["metadata"].get("namespace") or namespace
    try:
        there = await client.get(resource, name_of(manifest.thing), where)
    except NotFound:
        return False
    except ApiError as problem:
        raise refusal(manifest, problem) from problem
    if not Job(resource, there).finished:
        return False
    try:
        await remove(client, clock, resource, there)
    except TimedOut as problem:
        raise ManifestError(f"{manifest.source}: {problem}") from problem
    return True


async def _submit(
    client: Client, manifest: Manifest, resource: Resource, namespace: str, *, replaced: bool
) -> Submitted:
    thing = manifest.thing
    where = (thing["metadata"].get("namespace") or namespace) if resource.namespaced else ""
    try:
        made = await _create(client, resource, thing, where)
        return Submitted(resource, made, "replaced the finished one" if replaced else "created")
    except AlreadyExists as problem:
        if not is_training(resource):
            return Submitted(resource, await _update(client, manifest, resource, where), "updated")
        there = await client.get(resource, name_of(thing), where)
        if not _holds(there.get("spec"), thing.get("spec")):
            raise ManifestError(f"{manifest.source}: another {resource.kind} of the name '{name_of(thing)}' is "
                                "running. Delete it first, or choose another name.") from problem
        return Submitted(resource, there, "runs already")
    except ApiError as problem:
        raise refusal(manifest, problem) from problem


async def _hand_over(client: Client, found: Sequence[Submitted]) -> None:
    """What was made for a job goes when the job does."""
    jobs = {name_of(one.thing): one for one in found if one.is_training}
    for one in found:
        job = jobs.get(labels_of(one.thing).get(FOR_JOB, ""))
        if job is not None and not one.is_training:
            about = one.thing["metadata"]
            await client.patch(one.resource, about["name"], about["namespace"], owned_by(job.resource, job.thing))


def owned_by(resource: Resource, job: Object) -> Object:
    """The patch that makes an object go with the job."""
    owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name_of(job), "uid": uid_of(job)}
    return {"metadata": {"ownerReferences": [owner]}}


async def _create(client: Client, resource: Resource, thing: Object, namespace: str) -> Object:
    query = [("fieldManager", MANAGER), ("fieldValidation", "Strict")]
    return await client.request("POST", resource.path(namespace), query=query, body=thing)


async def _update(client: Client, manifest: Manifest, resource: Resource, namespace: str) -> Object:
    """What comes with a job, such as a ConfigMap, is brought to what the file says.

    One that cannot change says it already; but it must not go with the job that it was made for before.
    """
    fixed = manifest.thing.get("immutable")
    patch: Object = {"metadata": {"ownerReferences": None}} if fixed else manifest.thing
    try:
        return await client.patch(resource, name_of(manifest.thing), namespace, patch)
    except ApiError as problem:
        raise refusal(manifest, problem) from problem


def _holds(there: Json, wanted: Json) -> bool:
    """Whether the stored value says all that was written; it may say more, since defaults were filled in."""
    if isinstance(there, dict) and isinstance(wanted, dict):
        return all(name in there and _holds(there[name], value) for name, value in wanted.items())
    if isinstance(there, list) and isinstance(wanted, list):
        return len(there) == len(wanted) and all(map(_holds, there, wanted))
    return bool(there == wanted)
