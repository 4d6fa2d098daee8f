"""`get jobs -w`: a row for each job whose row has changed. Several watches at once, hence an event loop."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from trainmaster.api.meta import Object, Resource
from trainmaster.kube import kubeconfig
from trainmaster.runtime.clock import RealClock
from trainmaster.runtime.informer import Informer
from trainmaster.sdk.client import AsyncClient
from trainmaster.sdk.jobs import Job

if TYPE_CHECKING:
    from trainmaster.cli.cluster import Asked
    from trainmaster.cli.get import View


def jobs(asked: "Asked", view: "View") -> None:
    """Until it is interrupted."""
    asyncio.run(_follow(asked, view))


async def _follow(asked: "Asked", view: "View") -> None:
    assert view.client.cluster is not None
    transport = kubeconfig.transport(view.client.cluster.access)
    shown: dict[str, list[object]] = {}
    async with AsyncClient(namespace=asked.namespace or view.session.namespace, transport=transport) as client:

        def changed(resource: Resource, _before: Object | None, after: Object | None) -> None:
            if after is None or (job := Job(resource, after)).owned:
                return
            row: list[object] = [job.state, job.roles(), job.why]
            if shown.get(job.uid) != row:
                first = job.uid not in shown and not begun.is_set()
                shown[job.uid] = row
                if not first:      # those that were there are in the table already
                    view.rows([job])

        begun = asyncio.Event()
        informers = []
        for resource in await client.session.job_kinds():
            informer = Informer(client.session.client, resource, clock=RealClock(), namespace=view.namespace,
                                labels=view.labels)
            informer.on_change(partial(changed, resource))
            informers.append(informer)
        async with asyncio.TaskGroup() as group:
            for informer in informers:
                group.create_task(informer.run())
            for informer in informers:
                await informer.synced()
            begun.set()
