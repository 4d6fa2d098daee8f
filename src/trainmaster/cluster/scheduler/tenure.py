"""How long pods of a queue may stay: T9k's `maxDuration`. Whatever made a pod that is too old is told to rest.

Counted from the creation of a pod, as T9k does, so that waiting counts as well. A pod that nobody made is deleted. Pods
of DaemonSets and those that the system needs stay.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, controller_of, metadata, moment, name_of, namespace_of, uid_of
from trainmaster.cluster.scheduler import owners
from trainmaster.cluster.scheduler.dialects import T9K
from trainmaster.cluster.scheduler.preemption import CRITICAL
from trainmaster.cluster.scheduler.snapshot import Pod, Queue, Snapshot, State
from trainmaster.kube.client import Client

OVER = frozenset({State.SUCCEEDED, State.FAILED, State.RELEASING})


@dataclass(frozen=True, slots=True)
class Overdue:
    """A pod that has been there for longer than its queue allows."""

    pod: Pod
    queue: str
    longest: float       # seconds


def overdue(snapshot: Snapshot, now: datetime) -> list[Overdue]:
    """One pod for each of their makers: what that is told is told for all of its pods."""
    found: dict[str, Overdue] = {}
    for pod, queue, end in _ends(snapshot):
        if end <= now:
            owner = controller_of(pod.raw)
            found.setdefault(str(owner["uid"]) if owner else pod.uid, Overdue(pod, queue.name, queue.longest))
    return list(found.values())


def next_end(snapshot: Snapshot, now: datetime) -> datetime | None:
    """When the next pod will be too old."""
    return min((end for _, _, end in _ends(snapshot) if end > now), default=None)


def _ends(snapshot: Snapshot) -> Iterator[tuple[Pod, Queue, datetime]]:
    bounded = {name: queue for (dialect, name), queue in snapshot.queues.items()
               if dialect == T9K.name and queue.longest}
    if not bounded:
        return
    for group in snapshot.groups.values():
        queue = bounded.get(group.queue) if group.key.dialect == T9K.name else None
        if queue is None:
            continue
        for pod in snapshot.pods_of(group.key):
            if pod.state not in OVER and pod.created and not _spared(pod):
                yield pod, queue, moment(pod.created) + timedelta(seconds=queue.longest)


def _spared(pod: Pod) -> bool:
    return pod.priority >= CRITICAL or (controller_of(pod.raw) or {}).get("kind") == "DaemonSet"


async def put_to_rest(client: Client, pod: Object) -> tuple[Object, str]:
    """End a pod by what made it; that, and what was done in words. Raises KubeError."""
    above = await owners.highest_of(client, pod)
    if above is None:
        await client.delete(PODS, name_of(pod), namespace_of(pod), uid=uid_of(pod))
        return pod, "deleted"
    resource, thing = above
    body = {**owners.REST[resource], "metadata": {"uid": metadata(thing)["uid"]}}
    await client.patch(resource, name_of(thing), namespace_of(thing), body)
    return thing, f"{resource.kind} {name_of(thing)} put to rest"
