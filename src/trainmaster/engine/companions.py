"""What exists beside pods and services: the job's pod group, and what its kind asks for (an autoscaler).

One of each, named like the job and owned by it. They are there while the job goes on and gone when it pauses or is
over; upstream leaves autoscalers behind (B-28). Only fields that are ours are compared and changed (B-23). What has the
name but is not ours is left alone: a pod group that a user made is used as it is (B-14), and that of another job, which
may have the same name if it is of another kind, is waited for and told about.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object, Resource, being_deleted, controller_of, name_of, uid_of
from trainmaster.engine import desired
from trainmaster.engine.actions import Action, CreateCompanion, DeleteCompanion, UpdateCompanion, normal
from trainmaster.engine.observed import Observed
from trainmaster.frameworks.framework import TrainingJob
from trainmaster.gang import dialects, groups

# What others keep on a job for themselves, and we for us: nothing that a group should carry.
_PRIVATE = ("kubectl.kubernetes.io/last-applied-configuration", "trainmaster.dev/")


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object that should be there, and which fields of its spec are ours."""

    resource: Resource
    spec: Object
    fields: tuple[str, ...]
    annotations: Mapping[str, str]


def looked_for(job: TrainingJob) -> list[tuple[Resource, str]]:
    """What the engine has to be shown of the namespace, by kind and name, whoever owns it."""
    found = [(resource, job.name) for resource in job.framework.companion_resources]
    spoken = desired.dialect_of(job)
    return found if spoken is None else [*found, (spoken.resource, groups.name(desired.gang_of(job), spoken))]


def kept(job: TrainingJob, seen: Observed) -> tuple[Action, ...]:
    """Make them as they should be."""
    made: list[Action] = []
    wanted = {each.resource: each for each in _wanted(job, seen)}
    for resource, each in wanted.items():
        there = seen.companions.get(resource)
        if there is None or is_another_jobs(there, desired.owner_reference(job)):      # which the server will tell
            made.append(CreateCompanion(resource, _manifest(job, each)))
        elif is_ours(there, job) and not being_deleted(there) and (change := _change(each, there)):
            made.append(UpdateCompanion(resource, name_of(there), uid_of(there), {"spec": change}))
    return (*made, *_deletions(job, seen, (found for found in seen.companions if found not in wanted)))


def dropped(job: TrainingJob, seen: Observed) -> tuple[Action, ...]:
    """Remove all of ours."""
    return _deletions(job, seen, seen.companions)


def is_held_back(job: TrainingJob, seen: Observed) -> bool:
    """Whether the job's scheduler has not let it in yet. A group on its way out is that of the run before."""
    spoken = desired.dialect_of(job)
    if spoken is None:
        return False
    there = seen.companions.get(spoken.resource)
    if there is not None and (being_deleted(there) or _is_anothers(there, job)):
        there = None
    return not dialects.is_let_in(spoken, there)


def is_another_jobs(there: Object, owner: Object) -> bool:
    """Whether it belongs to somebody else, and not to the job that had the owner's name before: that one is gone, and
    what it had follows."""
    other = controller_of(there)
    return other is not None and any(other.get(field) != owner[field] for field in ("kind", "name"))


def is_ours(there: Object, job: TrainingJob) -> bool:
    return (controller_of(there) or {}).get("uid") == job.uid


def _is_anothers(there: Object, job: TrainingJob) -> bool:
    return controller_of(there) is not None and not is_ours(there, job)


def _wanted(job: TrainingJob, seen: Observed) -> Iterable[Wanted]:
    for each in job.framework.companions(job.group):
        yield Wanted(each.resource, each.spec, tuple(each.spec), {})
    spoken = desired.dialect_of(job)
    gang = desired.gang_of(job)
    if spoken is not None and not groups.users_group(gang, spoken):
        copied = {key: value for key, value in job.annotations.items() if not key.startswith(_PRIVATE)}
        ours = tuple(field.value for field in spoken.fields)    # plain text: what becomes a key of JSON has to be
        yield Wanted(spoken.resource, groups.spec(gang, spoken, seen.priorities), ours, copied)


def _manifest(job: TrainingJob, wanted: Wanted) -> Object:
    meta: Object = {
        "name": job.name, "namespace": job.namespace, "ownerReferences": [desired.owner_reference(job)],
    }
    if wanted.annotations:
        meta["annotations"] = dict(wanted.annotations)
    resource = wanted.resource
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": wanted.spec}


def _change(wanted: Wanted, there: Object) -> Object:
    """The merge patch that makes our fields right. A queue once given stays, as upstream."""
    spec = there.get("spec") or {}
    made: Object = {}
    for field in wanted.fields:
        new, old = wanted.spec.get(field), spec.get(field)
        if _same(new, old) or (field == dialects.Field.QUEUE and old):
            continue
        made[field] = {**dict.fromkeys(old), **new} if isinstance(new, dict) and isinstance(old, dict) else new
    return made


def _same(one: Json, other: Json) -> bool:
    """Equal as far as they say the same: servers write amounts in a form of their own."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(*both) for both in zip(one, other, strict=True))
    if isinstance(one, str | int) and isinstance(other, str | int):
        return one == other or quantity.same(one, other)
    return bool(one == other) or (not one and not other)


def _deletions(job: TrainingJob, seen: Observed, resources: Iterable[Resource]) -> tuple[Action, ...]:
    made = []
    for resource in resources:
        there = seen.companions[resource]
        if is_ours(there, job) and not being_deleted(there):
            told = () if resource in job.framework.companion_resources else (
                normal("JobTerminated", "Job has been terminated. Deleting PodGroup"),
                normal("SuccessfulDeletePodGroup", f"Deleted PodGroup: {name_of(there)}"),
            )
            made.append(DeleteCompanion(resource, name_of(there), uid_of(there), told))
    return tuple(made)
