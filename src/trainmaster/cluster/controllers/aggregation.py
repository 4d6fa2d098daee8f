"""ClusterRoles that gather: `admin`, `edit`, `view` and whichever else select their rules from other roles by label.

Every change of a role may concern every role that gathers; there are few of those, so all are looked at again. One that
gathers may itself be gathered from: its change comes back as news, until nothing changes any more.
"""

import asyncio
from datetime import datetime

from trainmaster.api.core import CLUSTER_ROLES
from trainmaster.api.meta import Object, being_deleted, name_of
from trainmaster.api.roles import gathered
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer


async def run(client: Client, clock: Clock) -> None:
    """Keep gathered rules true until cancelled."""
    informer = Informer(client, CLUSTER_ROLES, clock=clock)

    async def reconcile(name: str) -> datetime | None:
        role = informer.copy.get("", name)
        if role is None or being_deleted(role) or not role.get("aggregationRule"):
            return None
        rules = gathered(role, informer.copy.all())
        if rules != (role.get("rules") or []):
            try:
                await client.replace(CLUSTER_ROLES, {**role, "rules": rules})
            except NotFound:
                return None
        return None

    controller: Controller[str] = Controller(
        "role-aggregation", reconcile, clock=clock, workers=1, informers=[informer]
    )

    def changed(before: Object | None, after: Object | None) -> None:
        if before is not None and after is not None and before.get("rules") == after.get("rules") \
                and before["metadata"].get("labels") == after["metadata"].get("labels") \
                and before.get("aggregationRule") == after.get("aggregationRule"):
            return
        for role in informer.copy.all():
            if role.get("aggregationRule"):
                controller.queue.add(name_of(role))

    informer.on_change(changed)
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run())
        group.create_task(controller.run())
