"""What the status of a Deployment says: counts, and whether it is available, in progress, stuck. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from trainmaster.api.meta import Object, being_deleted, metadata, moment, name_of, timestamp
from trainmaster.cluster.controllers.workloads.replicas import FAILURE
from trainmaster.cluster.controllers.workloads.rollout import Sizes, available, bounds, is_complete

AVAILABLE, PROGRESSING = "Available", "Progressing"
NEW_AVAILABLE, TIMED_OUT, PAUSED = "NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused"
# A deadline that is none.
NEVER = 2**31 - 1
# Looked at a little after the deadline, since moments are whole seconds.
_LATE = timedelta(seconds=1)
# Told although it is nothing. A count of collisions that is there stays: the server takes a missing one for a smaller.
_ALSO_ZERO = frozenset({"terminatingReplicas", "collisionCount"})


def status(step: Sizes, now: datetime, failure: str = "") -> Object:
    """After a step. `failure`: why the new set could not be made."""
    deployment = step.deployment
    was, spec = deployment.get("status") or {}, deployment["spec"]
    found = _counts(step)
    conditions = _Conditions(was.get("conditions") or [], now)
    _, missing = bounds(deployment)
    if available(step.all) >= step.replicas - missing:
        conditions.put(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        conditions.put(AVAILABLE, "False", "MinimumReplicasUnavailable",
                       "Deployment does not have minimum availability.")
    if not has_deadline(deployment):
        conditions.drop(PROGRESSING)
    else:
        _pausing(conditions, paused=bool(spec.get("paused")))
        if failure and step.creates is not None:
            said = f"Failed to create new replica set \"{name_of(step.creates)}\": {failure}"
            conditions.put(PROGRESSING, "False", "ReplicaSetCreateError", said)
        elif not spec.get("paused") and not being_deleted(deployment):
            _progress(step, found, conditions, now)
    failures = [each for one in step.all for each in (one.get("status") or {}).get("conditions") or ()
                if each.get("type") == FAILURE]
    if failures:
        conditions.put(FAILURE, *(str(failures[0].get(field, "")) for field in ("status", "reason", "message")))
    else:
        conditions.drop(FAILURE)
    return {**{field: value for field, value in found.items() if value or field in _ALSO_ZERO},
            "conditions": conditions.found}


def look_again_at(deployment: Object, told: Object) -> datetime | None:
    """When the rollout would be late, if it is under way."""
    now = next((each for each in told.get("conditions") or () if each["type"] == PROGRESSING), None)
    ended = is_complete(deployment, told) or now is None or now.get("reason") in (NEW_AVAILABLE, TIMED_OUT, PAUSED)
    if ended or now is None or not has_deadline(deployment):
        return None
    return moment(now["lastUpdateTime"]) + timedelta(seconds=deployment["spec"]["progressDeadlineSeconds"]) + _LATE


def has_deadline(deployment: Object) -> bool:
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, NEVER)


def _counts(step: Sizes) -> Object:
    def total(sets: Iterable[Object], name: str) -> int:
        return sum(int((one.get("status") or {}).get(name) or 0) for one in sets)

    new = [step.new] if step.new is not None else []
    was = step.deployment.get("status") or {}
    found: Object = {
        "observedGeneration": int(metadata(step.deployment).get("generation") or 0),
        "replicas": total(step.all, "replicas"),
        "updatedReplicas": total(new, "replicas"),
        "readyReplicas": total(step.all, "readyReplicas"),
        "availableReplicas": available(step.all),
        "unavailableReplicas": max(0, step.total(step.all) - available(step.all)),
        "terminatingReplicas": total(step.all, "terminatingReplicas"),
    }
    return {**found, **({"collisionCount": was["collisionCount"]} if "collisionCount" in was else {})}


def _pausing(conditions: "_Conditions", *, paused: bool) -> None:
    reason = conditions.get(PROGRESSING).get("reason")
    if reason == TIMED_OUT:
        return
    if paused and reason != PAUSED:
        conditions.put(PROGRESSING, "Unknown", PAUSED, "Deployment is paused")
    elif not paused and reason == PAUSED:
        conditions.put(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed")


def _progress(step: Sizes, found: Object, conditions: "_Conditions", now: datetime) -> None:
    deployment, was = step.deployment, step.deployment.get("status") or {}
    who = f"ReplicaSet \"{name_of(step.new)}\"" if step.new is not None else f"Deployment \"{name_of(deployment)}\""
    if step.creates is not None:
        conditions.put(PROGRESSING, "True", "NewReplicaSetCreated",
                       f"Created new replica set \"{name_of(step.creates)}\"")
    elif step.new is not None and _is_unsaid(conditions.get(PROGRESSING), f"{who} has successfully progressed."):
        conditions.put(PROGRESSING, "True", "FoundNewReplicaSet", f"Found new replica set \"{name_of(step.new)}\"")
    current = conditions.get(PROGRESSING)
    if found["replicas"] == found["updatedReplicas"] and current.get("reason") == NEW_AVAILABLE:
        return      # nothing is rolled out
    if is_complete(deployment, found):
        conditions.put(PROGRESSING, "True", NEW_AVAILABLE, f"{who} has successfully progressed.")
    elif _moved(was, found):
        conditions.put(PROGRESSING, "True", "ReplicaSetUpdated", f"{who} is progressing.", anew=True)
    elif _is_late(deployment, current, now):
        conditions.put(PROGRESSING, "False", TIMED_OUT, f"{who} has timed out progressing.")


def _is_unsaid(condition: Object, last: str) -> bool:
    """Whether nobody has spoken of the new set yet: there was no reason to, or he died before he could."""
    return not condition or (condition.get("reason") == NEW_AVAILABLE and condition.get("message") != last)


def _moved(was: Object, found: Object) -> bool:
    def of(status: Object, name: str) -> int:
        return int(status.get(name) or 0)

    old_before, old_now = (of(each, "replicas") - of(each, "updatedReplicas") for each in (was, found))
    return old_now < old_before or any(
        of(found, name) > of(was, name) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _is_late(deployment: Object, condition: Object, now: datetime) -> bool:
    if not condition or condition.get("reason") in (NEW_AVAILABLE, PAUSED):
        return False
    if condition.get("reason") == TIMED_OUT:
        return True
    limit = timedelta(seconds=deployment["spec"]["progressDeadlineSeconds"])
    return moment(condition["lastUpdateTime"]) + limit < now


class _Conditions:
    """Conditions with two moments each: of the last change of truth, and of the last change of anything."""

    def __init__(self, was: Sequence[Object], now: datetime) -> None:
        self.found = list(was)
        self._now = timestamp(now)

    def get(self, type_: str) -> Object:
        return next((each for each in self.found if each.get("type") == type_), {})

    def put(self, type_: str, truth: str, reason: str, message: str, *, anew: bool = False) -> None:
        """Say something; nothing changes if truth and reason are as they were, unless it is said `anew`."""
        was = self.get(type_)
        if (was.get("status"), was.get("reason")) == (truth, reason) and not anew:
            return
        since = was["lastTransitionTime"] if was.get("status") == truth else self._now
        said = {"type": type_, "status": truth, "reason": reason, "message": message, "lastUpdateTime": self._now,
                "lastTransitionTime": since}
        self.drop(type_)
        self.found.append(said)

    def drop(self, type_: str) -> None:
        self.found = [each for each in self.found if each.get("type") != type_]


