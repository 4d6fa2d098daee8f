"""Nodes of this machine that are no more: its name changed, it is split into fewer, or fewer are simulated.

Nobody would ever end their pods. So these go at once, as on a node that does not come back, and whoever owns them makes
others. Pods that have ended are results: they stay, and so do their logs on disk, for the day the node is back.
"""

from collections.abc import Set as AbstractSet
from contextlib import suppress

from trainmaster.api.core import LEASES, NODE_LEASES, NODES, PODS
from trainmaster.api.meta import name_of, namespace_of, uid_of
from trainmaster.cluster.simulated.nodes import is_simulated
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.log import logger
from trainmaster.sdk.former import is_ours

log = logger("control-plane")

ALIVE = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="


async def retire(client: Client, here: AbstractSet[str]) -> None:
    """Remove nodes of ours that are not here, and the pods that were to run on them.

    Those of nodes that nobody knows are left to the controller that looks for them all the time.
    """
    known = {name_of(node): node for node in (await client.list(NODES)).items}
    gone = [name for name, node in known.items() if name not in here and (is_ours(node) or is_simulated(node))]
    for pod in (await client.list(PODS, fields=ALIVE)).items if gone else ():
        if pod["spec"]["nodeName"] in gone:
            log.info("a pod's node is no longer here", pod=name_of(pod), namespace=namespace_of(pod))
            with suppress(NotFound):
                await client.delete(PODS, name_of(pod), namespace_of(pod), uid=uid_of(pod), grace=0)
    for name in gone:
        log.info("a node is no longer here", node=name)
        for resource, namespace in ((LEASES, NODE_LEASES), (NODES, "")):
            with suppress(NotFound):
                await client.delete(resource, name, namespace)
