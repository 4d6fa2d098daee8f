"""Send manifests to a cluster, as `kubectl create` would, and know which of them are jobs to follow."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.api.meta import Json, Object, Resource, labels_of, name_of, uid_of
from trainmaster.api.validation import problems
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import served
from trainmaster.kube.errors import AlreadyExists, ApiError, NotFound
from trainmaster.sdk.manifests import Manifest, ManifestError, unknown_kind

MANAGER = "trainmaster-run"
FOR_JOB = "trainmaster.dev/job"      # label of what was made for a job of that name, and is to go with it


@dataclass(frozen=True, slots=True)
class Submitted:
    """An object as the cluster has it, and what became of it: created, replaced, or there already."""

    resource: Resource
    thing: Object
    how: str

    @property
    def is_job(self) -> bool:
        return is_job(self.resource)


def is_job(resource: Resource) -> bool:
    """A training job is a kind of kubeflow's group whose name says so."""
    return resource.group == "kubeflow.org" and resource.kind.endswith("Job")


async def submit(client: Client, manifests: Sequence[Manifest], namespace: str) -> list[Submitted]:
    """Create the objects in order. A finished job of the same name makes room. Raises ManifestError."""
    kinds = {(s.resource.api_version, s.resource.kind): s.resource for s in await served(client)}
    unknown = [m for m in manifests if (m.thing["apiVersion"], m.thing["kind"]) not in kinds]
    if unknown:
        raise ManifestError(unknown_kind(unknown[0], list(kinds)))
    for manifest in manifests:   # all before any is sent: half of a file is worse than none of it
        if wrong := problems(manifest.thing):
            raise ManifestError("; ".join(f"{manifest.place(problem.field)}: {problem}" for problem in wrong))
    resources = [kinds[manifest.thing["apiVersion"], manifest.thing["kind"]] for manifest in manifests]
    # First, since what comes with a job may have the name of what goes with the old one.
    replaced = [await _make_room(client, manifest, resource, namespace)
                for manifest, resource in zip(manifests, resources, strict=True)]
    found = [
        await _submit(client, manifest, resource, namespace, replaced=gone)
        for manifest, resource, gone in zip(manifests, resources, replaced, strict=True)
    ]
    await _hand_over(client, found)
    return found


async def _make_room(client: Client, manifest: Manifest, resource: Resource, namespace: str) -> bool:
    """Remove a finished job of the same name; whether there was one."""
    if not is_job(resource) or not name_of(manifest.thing):
        return False
    where = manifest.thing["metadata"].get("namespace") or namespace
    try:
        there = await client.get(resource, name_of(manifest.thing), where)
    except NotFound:
        return False
    except ApiError as problem:
        raise ManifestError(f"{manifest.source}: {problem}") from problem
    if not finished(there):
        return False
    await _remove(client, resource, there, where)
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
        if not is_job(resource):
            return Submitted(resource, await _update(client, manifest, resource, where), "updated")
        there = await client.get(resource, name_of(thing), where)
        if not _holds(there.get("spec"), thing.get("spec")):
            raise ManifestError(f"{manifest.source}: another {resource.kind} of the name '{name_of(thing)}' is "
                                "running. Delete it first, or choose another name.") from problem
        return Submitted(resource, there, "runs already")
    except NotFound as problem:
        raise ManifestError(f"{manifest.source}: {problem}. Create the namespace first, or choose another with -n."
                            ) from problem
    except ApiError as problem:
        raise ManifestError(f"{manifest.source}: {problem}") from problem


async def _hand_over(client: Client, found: Sequence[Submitted]) -> None:
    """What was made for a job goes when the job does."""
    jobs = {name_of(one.thing): one for one in found if one.is_job}
    for one in found:
        job = jobs.get(labels_of(one.thing).get(FOR_JOB, ""))
        if job is not None and not one.is_job:
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
        raise ManifestError(f"{manifest.source}: {problem}") from problem


def _holds(there: Json, wanted: Json) -> bool:
    """Whether the stored value says all that was written; it may say more, since defaults were filled in."""
    if isinstance(there, dict) and isinstance(wanted, dict):
        return all(name in there and _holds(there[name], value) for name, value in wanted.items())
    if isinstance(there, list) and isinstance(wanted, list):
        return len(there) == len(wanted) and all(map(_holds, there, wanted))
    return bool(there == wanted)


async def _remove(client: Client, resource: Resource, thing: Object, namespace: str) -> None:
    """Delete it with all that it owns, and wait until it is gone."""
    name, uid = name_of(thing), uid_of(thing)
    page = await client.list(resource, namespace, fields=f"metadata.name={name}")
    await client.delete(resource, name, namespace, uid=uid, propagation="Foreground")
    async for event in client.watch(resource, namespace, fields=f"metadata.name={name}", revision=page.revision):
        if event.type == "DELETED" and uid_of(event.object) == uid:
            return


def finished(job: Object) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(c["type"] in ("Succeeded", "Failed") and c["status"] == "True" for c in conditions)
