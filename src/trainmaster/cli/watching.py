"""`get jobs -w`: a row for each job whose row has changed. Several watches at once, hence an event loop."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainmaster.kube import kubeconfig
from trainmaster.sdk.client import AsyncClient
from trainmaster.sdk.jobs import Job
from trainmaster.sdk.watching import Watching

if TYPE_CHECKING:
    from trainmaster.cli.get import View


def jobs(view: "View", shown: Sequence[Job], names: Sequence[str] = ()) -> None:
    """What changes of the jobs that were shown, and those that come; until it is interrupted."""
    asyncio.run(_follow(view, shown, names))


async def _follow(view: "View", shown: Sequence[Job], names: Sequence[str]) -> None:
    assert view.client.cluster is not None
    transport = kubeconfig.transport(view.client.cluster.access)
    async with AsyncClient(namespace=view.session.namespace, transport=transport) as client:
        await Watching(client.session, view.namespace or (view.session.namespace if names else ""), view.rows,
                       labels=view.labels, names=names).run(shown)
