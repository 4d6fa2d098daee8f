"""All controllers of the API itself, until cancelled: the one thing that whoever starts a cluster has to call.

A failure of an object stays with that object; one that escapes a controller is a bug, which is told, and the controller
is started again while the others go on. What several of them need is followed once: the kinds, and the metadata of all
objects, which the collector, the end of namespaces and the count of quotas share; so those are started again together.
"""

import asyncio
from collections.abc import Callable

from trainmaster.cluster.controllers import (
    aggregation,
    announce,
    endpoints,
    everywhere,
    expiry,
    namespaces,
    quotas,
    tokens,
)
from trainmaster.cluster.controllers.announce import Api
from trainmaster.cluster.controllers.garbage import Collector
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.cluster.controllers.storage import ephemeral
from trainmaster.cluster.controllers.storage import main as storage
from trainmaster.cluster.controllers.storage.main import Directories
from trainmaster.cluster.controllers.workloads import main as workloads
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.supervision import Work, kept_running


async def run(
    client_of: Callable[[str], Client], clock: Clock, *, authority: bytes, api: Api | None = None,
    directories: Directories | None = None,
) -> None:
    """Run until cancelled.

    `client_of` gives each controller a client of its own, by its name: what it may do goes with that name.
    `authority` is the PEM certificate that every namespace gets. With `api` the service `kubernetes` points there;
    without it, nobody announces the API server. With `directories`, claims get volumes there; without it, nobody binds
    them.
    """
    kinds = Kinds(client_of("kinds"), clock)
    parts: dict[str, Work] = {
        "kinds": kinds.run,
        "garbage-collector, namespaces, quotas, workloads, account-tokens, storage":
            lambda: _over_everything(client_of, clock, kinds, authority, directories),
        "everywhere": lambda: everywhere.run(client_of("everywhere"), clock, authority),
        "role-aggregation": lambda: aggregation.run(client_of("clusterrole-aggregation-controller"), clock),
        "event-expiry": lambda: expiry.run(client_of("event-expiry"), clock),
        "endpoints": lambda: endpoints.run(client_of("endpoints"), clock, kinds),
    }
    if api is not None:
        parts["announce"] = lambda: announce.run(client_of("announcer"), clock, kinds, api)
    async with asyncio.TaskGroup() as group:
        for name, work in parts.items():
            group.create_task(kept_running(name, work, clock))


async def _over_everything(
    client_of: Callable[[str], Client], clock: Clock, kinds: Kinds, authority: bytes,
    directories: Directories | None = None,
) -> None:
    collecting = client_of("generic-garbage-collector")
    inventory = Inventory(collecting, clock, kinds)
    collector = Collector(collecting, clock, inventory)
    async with asyncio.TaskGroup() as group:
        group.create_task(collector.run())
        group.create_task(namespaces.run(client_of("namespace-controller"), clock, inventory))
        group.create_task(quotas.run(client_of("resourcequota-controller"), clock, inventory))
        group.create_task(tokens.run(client_of("account-tokens"), clock, inventory, authority))
        group.create_task(workloads.run(client_of("workloads"), clock, inventory))
        if directories is not None:
            group.create_task(storage.run(client_of("persistent-volume-binder"), clock, inventory, directories))
            group.create_task(ephemeral.run(client_of("ephemeral-volume-controller"), clock))
        group.create_task(inventory.run())
