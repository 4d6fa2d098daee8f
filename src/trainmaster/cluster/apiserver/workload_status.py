"""What the status of a Deployment, ReplicaSet, StatefulSet, DaemonSet or ReplicationController may say. Pure.

The numbers come from a controller, which need not be ours: counts are not below zero, no count of a part is above the
count of the whole, and the number of collisions, from which names are made, never goes down. One table for all five;
the order of its fields is the order in which a real server names what is wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks
from trainmaster.cluster.apiserver.causes import Cause


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one kind, as rules for its status."""

    fields: tuple[str, ...]
    of_replicas: tuple[str, ...] = ()         # never more than there are pods
    ready: str = "readyReplicas"              # how the text calls the bound of the available ones

    def __call__(self, thing: Object, old: Object) -> Iterator[Cause]:
        status = thing.get("status") or {}
        yield from checks.not_negative(status, "status", *self.fields)
        for field in self.of_replicas:
            yield from _at_most(status, field, "replicas", "status.replicas")
        if self.of_replicas:
            yield from _at_most(status, "availableReplicas", "readyReplicas", self.ready)
        was, now = ((each.get("status") or {}).get("collisionCount") for each in (old, thing))
        if was is not None and (now is None or now < was):
            yield causes.invalid("status.collisionCount", now or 0, "cannot be decremented")


def _at_most(status: Object, field: str, bound: str, said: str) -> Iterator[Cause]:
    found = status.get(field) or 0
    if found > (status.get(bound) or 0):
        yield causes.invalid(f"status.{field}", found, f"cannot be greater than {said}")


_SET = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")
_OF_SET = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")

DEPLOYMENT = Counts(
    ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
     "terminatingReplicas", "collisionCount"),
    ("updatedReplicas", "readyReplicas", "availableReplicas"))
REPLICA_SET = Counts((*_SET, "terminatingReplicas"), _OF_SET)
REPLICATION_CONTROLLER = Counts(_SET, _OF_SET)
STATEFUL_SET = Counts(
    ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
     "collisionCount"),
    ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"), ready="status.readyReplicas")
DAEMON_SET = Counts(
    ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
     "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"))


def keep_labels(thing: Object, old: Object) -> None:
    """The labels of a deployment are not written through its status; those of the others are."""
    found = old["metadata"].get("labels")
    thing["metadata"] = {**thing["metadata"], "labels": found}
    if found is None:
        del thing["metadata"]["labels"]
