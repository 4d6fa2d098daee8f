"""Groups for pods of a gang scheduler that name none: one for all pods of an owner, made, named on the pods, and
deleted when the owner wants no pods any more.

Everything can be repeated: a pod that is not tied yet is found again, and so is a group that exists already.
"""

import asyncio
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from contextlib import suppress

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, Resource, controller_of, metadata, name_of
from trainmaster.cluster.scheduler import dialects, owners
from trainmaster.cluster.scheduler.dialects import Dialect
from trainmaster.cluster.scheduler.settings import Verdict
from trainmaster.cluster.scheduler.snapshot import Snapshot
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from trainmaster.runtime.log import logger

log = logger("scheduler")
SCALED = ("ReplicaSet", "StatefulSet")      # their number of pods may become none, and they stay


class Adoption:
    """`again` asks for another decision in a moment, after something went wrong."""

    def __init__(self, client: Client, served: tuple[Dialect, ...], lacks: Collection[Resource],
                 gate: asyncio.Semaphore, again: Callable[[], None]) -> None:
        self._client = client
        self._served = served
        self._lacks = lacks
        self._gate = gate
        self._again = again
        self._empty: set[str] = set()      # UIDs of groups of ours without pods, looked into

    def alone(self, snapshot: Snapshot) -> list[Object]:
        """Pods of a group-wise scheduler that name no group."""
        return [pod.raw for dialect in self._served
                for pod in list(snapshot.waiting.get(dialect.scheduler, {}).values()) if pod.group is None]

    async def give_group(self, pod: Object) -> None:
        """Make the group, then name it on the pod."""
        dialect = dialects.serving(pod["spec"]["schedulerName"])
        assert dialect is not None
        try:
            async with self._gate:
                above = await owners.owner_of(self._client, pod)
                group = dialects.group_for(pod, dialect, controller_of(pod), above[1] if above else None)
                kind = next(each for each in dialect.group_kinds if each not in self._lacks)
                with suppress(AlreadyExists):
                    await self._client.create(kind, {**group, "apiVersion": kind.api_version})
                meta = metadata(pod)
                body = {"metadata": {"uid": meta["uid"], **dialects.tied(dialect, name_of(group))}}
                await self._client.patch(PODS, meta["name"], meta["namespace"], body)
        except (NotFound, Conflict):
            return
        except KubeError as problem:
            log.warning("could not make a group", pod=name_of(pod), problem=problem)
            self._again()

    def emptied(self, verdict: Verdict) -> bool:
        """Whether a group that we made for the pods of a set has none left, which is looked into once."""
        group = verdict.group
        owner = controller_of(group.raw) or {}
        if verdict.members or owner.get("kind") not in SCALED or group.key.key.name != f"podgroup-{owner.get('uid')}":
            self._empty.discard(group.uid)
            return False
        known = group.uid in self._empty
        self._empty.add(group.uid)
        return not known

    async def clear(self, verdict: Verdict) -> None:
        """A set of no pods needs no group. Between two of its pods it does: then it still wants some."""
        group = verdict.group
        resource, place = dialects.by_name(group.key.dialect).kind_of(group.raw), group.key.key
        try:
            async with self._gate:
                above = await owners.owner_of(self._client, group.raw)
                if above is not None and above[1]["spec"].get("replicas") == 0:
                    await self._client.delete(resource, place.name, place.namespace, uid=group.uid)
        except (NotFound, Conflict):
            return
        except KubeError as problem:
            log.warning("could not delete a group", group=group.key, problem=problem)
            self._empty.discard(group.uid)
            self._again()

    def forget(self, known: AbstractSet[str]) -> None:
        """All but these are gone."""
        self._empty &= known
