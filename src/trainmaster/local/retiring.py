"""Nodes of this machine that are no more: its name changed, it is split into fewer, or fewer are simulated.

Nobody would ever end their pods. So these go at once, as on a node that does not come back, and whoever owns them makes
others. Pods that have ended are results: they stay, and so do their logs on disk, for the day the node is back.
"""

from collections.abc import Set as AbstractSet
from contextlib import suppress

from trainmaster.api.core import LEASES, NODES, PODS
from trainmaster.api.meta import name_of, namespace_of, uid_of
from trainmaster.cluster.kubelet.register import LEASE_NAMESPACE
from trainmaster.cluster.simulated.nodes import is_simulated
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.log import logger
from trainmaster.sdk.former import is_ours

log = logger("control-plane")

ENDED = ("Succeeded", "Failed")


async def retire(client: Client, here: AbstractSet[str]) -> None:
    """Remove nodes of ours that are not here, and the pods that were to run on them."""
    for node in (await client.list(NODES)).items:
        name = name_of(node)
        if name in here or not (is_ours(node) or is_simulated(node)):
            continue
        log.info("a node is no longer here", node=name)
        for pod in (await client.list(PODS, fields=f"spec.nodeName={name}")).items:
            if (pod.get("status") or {}).get("phase") not in ENDED:
                with suppress(NotFound):
                    await client.delete(PODS, name_of(pod), namespace_of(pod), uid=uid_of(pod), grace=0)
        for resource, namespace in ((LEASES, LEASE_NAMESPACE), (NODES, "")):
            with suppress(NotFound):
                await client.delete(resource, name, namespace)
