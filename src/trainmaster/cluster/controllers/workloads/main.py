"""Runs the controllers of workloads, each family from the moment the first object of it is there.

A cluster for training may never see a Deployment; then none of this has a watch open or a copy in memory. What there is
comes from the inventory, which is followed anyway.
"""

import asyncio
from collections.abc import Callable

from trainmaster.api.budgets import BUDGETS
from trainmaster.api.core import BATCH_JOBS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from trainmaster.api.meta import Resource
from trainmaster.cluster.controllers.graph import Item
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.cluster.controllers.workloads import following
from trainmaster.cluster.controllers.workloads.budgets import Budgets
from trainmaster.cluster.controllers.workloads.completion import FINALIZER
from trainmaster.cluster.controllers.workloads.deployments import Deployments
from trainmaster.cluster.controllers.workloads.following import Dependents, Followed
from trainmaster.cluster.controllers.workloads.jobs import Jobs
from trainmaster.cluster.controllers.workloads.replica_sets import REPLICATION_CONTROLLERS, ReplicaSets
from trainmaster.cluster.controllers.workloads.stateful_sets import REVISIONS, StatefulSets
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock


async def run(client: Client, clock: Clock, inventory: Inventory) -> None:
    """Until cancelled."""
    seen: dict[tuple[str, str], asyncio.Event] = {}

    def first(*resources: Resource) -> asyncio.Event:
        event = asyncio.Event()
        seen.update({(each.group, each.plural): event for each in resources})
        return event

    def something_changed(_before: Item | None, after: Item | None) -> None:
        if after is None:
            return
        if (event := seen.get((after.resource.group, after.resource.plural))) is not None:
            event.set()
        if FINALIZER in after.finalizers:
            # A pod of a Job that may be gone: somebody must let it go.
            seen[BATCH_JOBS.group, BATCH_JOBS.plural].set()

    families: list[tuple[asyncio.Event, Callable[[Dependents], list[Followed]]]] = [
        (first(REPLICA_SETS, DEPLOYMENTS), lambda pods: _deployments(client, clock, pods)),
        (first(REPLICATION_CONTROLLERS),
         lambda pods: [ReplicaSets(REPLICATION_CONTROLLERS, client, clock, pods).followed]),
        (first(STATEFUL_SETS), lambda pods: [_stateful_sets(client, clock, pods)]),
        (first(BATCH_JOBS), lambda pods: [Jobs(client, clock, pods).followed]),
    ]
    budgets = first(BUDGETS)
    inventory.on_change(something_changed)
    async with asyncio.TaskGroup() as group:
        pods = _Pods(client, clock, group)
        group.create_task(_budgets(budgets, client, clock, inventory.kinds))
        for event, family in families:
            group.create_task(_once(event, family, pods, group))


class _Pods:
    """The pods, followed from the first time somebody needs them."""

    def __init__(self, client: Client, clock: Clock, group: asyncio.TaskGroup) -> None:
        self._client = client
        self._clock = clock
        self._group = group
        self._pods: Dependents | None = None

    def get(self) -> Dependents:
        if self._pods is None:
            self._pods = following.pods(self._client, self._clock)
            self._group.create_task(self._pods.informer.run())
        return self._pods


async def _once(
    event: asyncio.Event, family: Callable[[Dependents], list[Followed]], pods: _Pods, group: asyncio.TaskGroup
) -> None:
    await event.wait()
    for followed in family(pods.get()):
        for informer in (followed.things, *followed.also):
            group.create_task(informer.run())
        group.create_task(followed.controller.run())


def _deployments(client: Client, clock: Clock, pods: Dependents) -> list[Followed]:
    sets = ReplicaSets(REPLICA_SETS, client, clock, pods).followed
    return [sets, Deployments(client, clock, Dependents(sets.things, clock)).followed]


async def _budgets(event: asyncio.Event, client: Client, clock: Clock, kinds: Kinds) -> None:
    await event.wait()
    await Budgets(client, clock, kinds).run()


def _stateful_sets(client: Client, clock: Clock, pods: Dependents) -> Followed:
    revisions = Dependents(following.workloads(client, REVISIONS, clock), clock)
    return StatefulSets(client, clock, pods, revisions).followed
