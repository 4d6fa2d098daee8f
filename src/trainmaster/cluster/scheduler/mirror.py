"""The snapshot, kept from watches, with what we did ourselves laid over it until the watches show it.

Changes are queued as they come and folded in between two decisions, never during one.
"""

import asyncio
from collections.abc import Callable, Collection, Generator, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from trainmaster.api import groups
from trainmaster.api.budgets import BUDGETS
from trainmaster.api.core import (
    CLAIMS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    STORAGE_CLASSES,
)
from trainmaster.api.meta import Key, Object, Resource, key_of, labels_of, name_of, namespace_of, uid_of
from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.census import ALLOCATED
from trainmaster.cluster.scheduler.dialects import Dialect
from trainmaster.cluster.scheduler.gangs import RUNNING
from trainmaster.cluster.scheduler.limits import read_limit
from trainmaster.cluster.scheduler.snapshot import Claim, GroupKey, Pod, Snapshot, State, on_node, read_budget, read_pod
from trainmaster.cluster.scheduler.volumes import Chosen
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer

K = TypeVar("K")
Take = Callable[[Object | None, Object | None], None]


class Mirror:
    """`snapshot` shows the cluster as of the last `fold`; `changed` is called when there is something to fold."""

    def __init__(self, client: Client, clock: Clock, served: tuple[Dialect, ...], comeback: float,
                 changed: Callable[[], None], lacks: Collection[Resource] = ()) -> None:
        self.snapshot = Snapshot()
        self.informers: list[Informer] = []
        self._client = client
        self._clock = clock
        self._comeback = comeback
        self._changed = changed
        self._news: list[Callable[[], None]] = []
        self._learned = asyncio.Event()
        self._bound: dict[str, str] = {}      # pod UID -> node: bindings that the watch has not shown yet
        # Where several objects may be meant by one name: all of them, by where they stand.
        self._queues: dict[tuple[str, str], dict[str, Object]] = {}
        self._groups: dict[GroupKey, dict[str, Object]] = {}
        self.pods = self._follow(PODS, self._pod)
        self._follow(NODES, self._node)
        self._follow(PRIORITY_CLASSES, self._class)
        # Waited for a little: who may not read them decides without.
        self.claims = self._informer(CLAIMS, self._claim)
        self.volumes = self._informer(PERSISTENT_VOLUMES, self._volume)
        self.storage = [self.claims, self.volumes, self._informer(STORAGE_CLASSES, self._storage_class)]
        self.beside = [*self.storage, self._informer(RESOURCE_QUOTAS, self._limit)]
        self._follow(NAMESPACES, self._space)
        self._follow(BUDGETS, self._budget)
        for dialect in served:
            for kind in dialect.group_kinds:
                if kind not in lacks:
                    self._follow(kind, partial(self._group, dialect))
            for kind in dialect.queue_kinds:
                if kind not in lacks:
                    self._follow(kind, partial(self._queue, dialect))

    def fold(self, now: datetime) -> Generator[None, None, None]:
        """Take in what the watches told since the last time, piece by piece."""
        news, self._news = self._news, []
        for change in news:
            change()
            yield
        moment = now.timestamp()
        self.snapshot.claims = [claim for claim in self.snapshot.claims
                                if claim.until > moment and claim.group in self.snapshot.groups]

    def assume(self, uid: str, node: str) -> None:
        """Count a pod as bound until the watch says how it is. Not while a decision is made."""
        self._bound[uid] = node
        pod = self.snapshot.pods.get(uid)
        if pod is not None:
            self.snapshot.put_pod(on_node(pod, node))
            for name in pod.demands.claims:
                self.snapshot.storage.chosen.setdefault(Key(pod.key.namespace, name), Chosen(uid, node))

    def mistaken(self, uid: str) -> None:
        """It was not bound: from the next decision on it counts as what the watch has shown."""
        self._news.append(partial(self._not_bound, uid))

    def _not_bound(self, uid: str) -> None:
        if self._bound.pop(uid, None) is not None and (pod := self.snapshot.pods.get(uid)) is not None:
            self._unchoose(pod)
            self.snapshot.put_pod(read_pod(pod.raw, pod.group))

    def _unchoose(self, pod: Pod) -> None:
        chosen = self.snapshot.storage.chosen
        for key in [Key(pod.key.namespace, name) for name in pod.demands.claims]:
            if key in chosen and chosen[key].pod == pod.uid:
                del chosen[key]

    async def learn_storage(self) -> None:
        """Claims count from the moment that all of them are known."""
        for informer in self.storage:
            await informer.synced()
        self._news.append(self._know_storage)
        self._learned.set()
        self._changed()

    async def learned(self) -> None:
        """Return when claims count."""
        await self._learned.wait()

    def _know_storage(self) -> None:
        self.snapshot.storage.known = True

    def _follow(self, resource: Resource, take: Take) -> Informer:
        informer = self._informer(resource, take)
        self.informers.append(informer)
        return informer

    def _informer(self, resource: Resource, take: Take) -> Informer:
        informer = Informer(self._client, resource, clock=self._clock)

        def told(before: Object | None, after: Object | None) -> None:
            self._news.append(partial(take, before, after))
            self._changed()

        informer.on_change(told)
        return informer

    def _pod(self, before: Object | None, after: Object | None) -> None:
        seen = after or before
        assert seen is not None
        uid = uid_of(seen)
        if after is None or after["spec"].get("nodeName"):
            self._bound.pop(uid, None)
        had = self.snapshot.pods.get(uid)
        if had is not None and uid not in self._bound:
            self._unchoose(had)
        if after is None:
            self.snapshot.drop_pod(uid)
        else:
            self.snapshot.put_pod(read_pod(after, dialects.group_of(after), self._bound.get(uid, "")))
        if had is not None and had.state in {*ALLOCATED, State.RELEASING}:
            self._lost(had, self.snapshot.pods.get(uid))

    def _lost(self, had: Pod, left: Pod | None) -> None:
        """A member of a running gang is gone: the gang has first call on its room for a while."""
        if had.group is None or (left is not None and left.state is not State.FAILED):
            return
        group = self.snapshot.groups.get(had.group)
        running = sum(1 for pod in self.snapshot.pods_of(had.group) if pod.state in ALLOCATED)
        if not running:      # all of it is gone: nobody is waiting for the rest
            self.snapshot.claims = [claim for claim in self.snapshot.claims if claim.group != had.group]
        elif group is not None and group.phase == RUNNING and running < group.least:
            until = self._clock.now().timestamp() + self._comeback
            self.snapshot.claims.append(Claim(had.group, had.node, had.requests, until))

    def _node(self, before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.snapshot.put_node(after)
        elif before is not None:
            self.snapshot.drop_node(name_of(before))

    def _claim(self, before: Object | None, after: Object | None) -> None:
        _kept(self.snapshot.storage.claims, key_of(after or before or {}), after)

    def _volume(self, before: Object | None, after: Object | None) -> None:
        _kept(self.snapshot.storage.volumes, name_of(after or before or {}), after)

    def _storage_class(self, before: Object | None, after: Object | None) -> None:
        _kept(self.snapshot.storage.classes, name_of(after or before or {}), after)

    def _class(self, before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.snapshot.classes[name_of(after)] = after
        elif before is not None:
            self.snapshot.classes.pop(name_of(before), None)

    def _space(self, before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.snapshot.spaces[name_of(after)] = labels_of(after)
        elif before is not None:
            self.snapshot.spaces.pop(name_of(before), None)

    def _budget(self, before: Object | None, after: Object | None) -> None:
        if after is not None:
            self.snapshot.budgets[key_of(after)] = read_budget(after)
        elif before is not None:
            self.snapshot.budgets.pop(key_of(before), None)

    def _limit(self, before: Object | None, after: Object | None) -> None:
        limit = read_limit(after) if after is not None else None
        if limit is not None:
            self.snapshot.limits[key_of(after or {})] = limit
        else:
            self.snapshot.limits.pop(key_of(after or before or {}), None)

    def _group(self, dialect: Dialect, before: Object | None, after: Object | None) -> None:
        thing = after or before or {}
        key = GroupKey(dialect.name, key_of(thing))
        there = _first(self._groups, key, str(thing.get("apiVersion")), after,
                       [kind.api_version for kind in dialect.group_kinds]) if dialect.later else after
        if there is not None:
            self.snapshot.groups[key] = dialects.read_group(there, dialect)
        else:
            self.snapshot.groups.pop(key, None)
            self.snapshot.censuses.pop(key, None)
            self.snapshot.resting.pop(key, None)

    def _queue(self, dialect: Dialect, before: Object | None, after: Object | None) -> None:
        """Of T9k's queues of one name, which may be in several namespaces, that of the system counts."""
        thing = after or before or {}
        name = (dialect.name, name_of(thing))
        source = f"{thing.get('apiVersion')} {namespace_of(thing)}"
        system = f"{groups.T9K_QUEUES.api_version} {dialects.T9K_SYSTEM}"
        there = _first(self._queues, name, source, after,
                       [system, *(f"{kind.api_version} " for kind in dialect.queue_kinds)])
        if there is not None:
            self.snapshot.queues[name] = dialects.read_queue(there)
        else:
            self.snapshot.queues.pop(name, None)


def _first(known: dict[K, dict[str, Object]], name: K, source: str, thing: Object | None,
           order: Sequence[str]) -> Object | None:
    """Of all objects of one name the one that counts, after one of them has changed: by the order, then by source."""
    same = known.setdefault(name, {})
    _kept(same, source, thing)
    if not same:
        del known[name]
        return None
    return same[min(same, key=lambda each: (order.index(each) if each in order else len(order), each))]


def _kept(known: dict[K, Object], key: K, thing: Object | None) -> None:
    if thing is not None:
        known[key] = thing
    else:
        known.pop(key, None)
