"""What controllers of workloads look at in a pod, and the questions they ask of it. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from trainmaster.api.meta import Json, Object, being_deleted, controller_of, metadata, moment

KEEPERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job"})
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SMALL = ("name", "namespace", "uid", "resourceVersion")
_ABOUT = (*_SMALL, "labels", "annotations", "ownerReferences", "finalizers", "deletionTimestamp", "creationTimestamp")
_SPEC = ("nodeName", "restartPolicy")
_STATUS = ("phase", "reason", "startTime", "conditions")
_RESULT = ("name", "restartCount")


def kept(pod: Object) -> Object:
    """A pod cut down to what is looked at; one that belongs to somebody else, to its name."""
    owner = controller_of(pod)
    about = metadata(pod)
    if owner is not None and owner.get("kind") not in KEEPERS:
        return {"metadata": _some(about, (*_SMALL, "ownerReferences"))}
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": _some(about, _ABOUT),
        "spec": _some(spec, _SPEC),
        "status": {
            **_some(status, _STATUS),
            "containerStatuses": list(map(_result, status.get("containerStatuses") or ())),
            "initContainerStatuses": list(map(_result, status.get("initContainerStatuses") or ())),
        },
    }


def phase_of(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def has_ended(pod: Object) -> bool:
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Neither ended nor on its way out."""
    return not has_ended(pod) and not being_deleted(pod)


def condition_of(pod: Object, type_: str) -> Object:
    conditions: Sequence[Object] = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), {})


def is_ready(pod: Object) -> bool:
    return bool(condition_of(pod, "Ready").get("status") == "True")


def ready_since(pod: Object) -> datetime | None:
    since = condition_of(pod, "Ready").get("lastTransitionTime") if is_ready(pod) else None
    return moment(since) if since else None


def available_at(pod: Object, wait: int) -> datetime | None:
    """When a pod has been ready for long enough, if it stays so. A pod that is not ready has no such moment."""
    since = ready_since(pod)
    return since + timedelta(seconds=wait) if since is not None else None


def is_available(pod: Object, wait: int, now: datetime) -> bool:
    if not is_ready(pod):
        return False
    at = available_at(pod, wait)
    return not wait or (at is not None and at <= now)


def restarts_of(pod: Object) -> int:
    status = pod.get("status") or {}
    return sum(int(each.get("restartCount") or 0)
               for field in ("initContainerStatuses", "containerStatuses") for each in status.get(field) or ())


def results_of(pod: Object) -> list[Object]:
    """The ends of its containers, those that run before the others first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def created(thing: Object) -> str:
    return str(metadata(thing).get("creationTimestamp") or "")


def from_template(template: Object, owner: Object, *, name: str = "", finalizers: Sequence[str] = ()) -> Object:
    """A pod of an owner. Without a name the server gives it one that begins like the owner's."""
    about = template.get("metadata") or {}
    namespace, whose = metadata(owner).get("namespace", ""), metadata(owner).get("name", "")
    meta: Object = {
        **({"name": name} if name else {"generateName": f"{whose}-"}), "namespace": namespace,
        "labels": dict(about.get("labels") or {}), "annotations": dict(about.get("annotations") or {}),
        "finalizers": [*(about.get("finalizers") or ()), *finalizers], "ownerReferences": [reference(owner)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {field: value for field, value in meta.items() if value},
            "spec": template.get("spec") or {}}


def reference(owner: Object) -> Object:
    about = metadata(owner)
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": about["name"], "uid": about["uid"],
            "controller": True, "blockOwnerDeletion": True}


def _result(status: Object) -> Object:
    ended = (status.get("state") or {}).get("terminated")
    return {**_some(status, _RESULT), **({"state": {"terminated": ended}} if ended else {})}


def _some(thing: Mapping[str, Json], fields: Sequence[str]) -> Object:
    return {field: thing[field] for field in fields if field in thing}
