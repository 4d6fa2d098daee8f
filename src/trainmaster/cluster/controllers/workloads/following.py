"""What the controllers of workloads follow: one copy of the pods for all of them, and one of each kind of workload.

A pod wakes its owner, before and after its change; a pod that nobody owns wakes whoever would adopt it. News is
gathered for a moment, because it comes in bursts: a rollout of a hundred pods is a few looks and not a few hundred.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta

from trainmaster.api.core import PODS
from trainmaster.api.labels import holds
from trainmaster.api.meta import (
    Key,
    Object,
    Resource,
    controller_of,
    key_of,
    labels_of,
    metadata,
    namespace_of,
    uid_of,
)
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.cluster.controllers.workloads.pods import kept
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.recent import Recent

BURST = timedelta(milliseconds=50)
OWNER, ORPHANS, OF_JOB = "owner", "orphans", "job"

Selector = Callable[[Object], Object]


class Dependents:
    """Objects of one kind that workloads own, by owner, with what we wrote ourselves laid over."""

    def __init__(self, informer: Informer, clock: Clock) -> None:
        self.informer = informer
        self.recent = Recent(clock)
        informer.on_change(self.recent.shown)

    def of(self, owner: Object) -> list[Object]:
        uid = uid_of(owner)
        shown = self.informer.copy.by(OWNER, uid)
        return [self.recent.newest(thing) for thing in self.recent.over(shown, uid)]

    def candidates(self, owner: Object, selector: Object) -> list[Object]:
        """Those of an owner, and the orphans that it would adopt."""
        mine = self.of(owner)
        there = {uid_of(thing) for thing in mine}
        orphans = self.informer.copy.by(ORPHANS, namespace_of(owner))
        return mine + [one for one in orphans if uid_of(one) not in there and holds(selector, labels_of(one))]


def pods(client: Client, clock: Clock) -> Dependents:
    indexes = {**INDEXES, OF_JOB: job_index}
    return Dependents(Informer(Reduced(client, kept), PODS, clock=clock, indexes=indexes), clock)


def owner_index(thing: Object) -> Iterable[str]:
    owner = controller_of(thing)
    return [str(owner.get("uid"))] if owner else []


def orphan_index(thing: Object) -> Iterable[str]:
    return [] if controller_of(thing) else [namespace_of(thing)]


def job_index(pod: Object) -> Iterable[str]:
    """By the name of the Job, which is all that is left of one that is gone."""
    owner = controller_of(pod)
    return [str(Key(namespace_of(pod), str(owner.get("name"))))] if owner and owner.get("kind") == "Job" else []


INDEXES = {OWNER: owner_index, ORPHANS: orphan_index}


class Followed:
    """The workloads of one kind, and a controller that looks at each when it or one of its dependents changed."""

    def __init__(
        self, resource: Resource, things: Informer, dependents: Dependents, clock: Clock, selector: Selector,
        reconcile: Callable[[Key], Awaitable[datetime | None]], also: Sequence[Informer] = (),
    ) -> None:
        self._resource = resource
        self._clock = clock
        self._selector = selector
        self._recent = Recent(clock)
        self.things = things
        self.also = also          # what else has to run for it
        self.controller: Controller[Key] = Controller(
            resource.plural, reconcile, clock=clock, workers=4, informers=[things, dependents.informer, *also]
        )
        things.on_change(self._recent.shown)
        things.on_change(self._changed)
        dependents.informer.on_change(self._dependent_changed)

    def get(self, key: Key) -> Object | None:
        """The newest state that we know, which may be our own last write."""
        shown = self.things.copy.get(key.namespace, key.name)
        return None if shown is None else self._recent.newest(shown)

    def written(self, thing: Object) -> Object:
        self._recent.written(thing)
        return thing

    def _changed(self, before: Object | None, after: Object | None) -> None:
        if before is None or after is None or metadata(before).get("generation") != metadata(after).get("generation"):
            self.controller.queue.add(key_of(after or before or {}))
        else:
            self._soon(key_of(after))

    def _dependent_changed(self, before: Object | None, after: Object | None) -> None:
        for thing in (before, after):
            if thing is None:
                continue
            owner = controller_of(thing)
            if owner is not None:
                if owner.get("kind") == self._resource.kind:
                    self._soon(Key(namespace_of(thing), str(owner.get("name"))))
                continue
            for each in self.things.copy.by(IN_NAMESPACE, namespace_of(thing)):
                if holds(self._selector(each), labels_of(thing)):
                    self._soon(key_of(each))

    def _soon(self, key: Key) -> None:
        self.controller.queue.add_at(key, self._clock.now() + BURST)


IN_NAMESPACE = "namespace"


def workloads(client: Client, resource: Resource, clock: Clock) -> Informer:
    """The workloads of a kind; also found by owner, for those that are dependents themselves."""
    return Informer(
        client, resource, clock=clock, indexes={IN_NAMESPACE: lambda thing: [namespace_of(thing)], **INDEXES}
    )
