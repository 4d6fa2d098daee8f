"""The node agent: wires its parts and runs until cancelled. Pods go on when it ends; the next one adopts them."""

import asyncio
import os
import resource
from collections.abc import Callable, Sequence

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import cgroups, records
from trainmaster.cluster.kubelet.capability import explain, gather
from trainmaster.cluster.kubelet.host import Host
from trainmaster.cluster.kubelet.images import Images
from trainmaster.cluster.kubelet.launcher import Launcher
from trainmaster.cluster.kubelet.namespaces import Namespaces
from trainmaster.cluster.kubelet.node import Node
from trainmaster.cluster.kubelet.pressure import Pressure
from trainmaster.cluster.kubelet.records import Failed
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.cluster.kubelet.usage import Usage
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

__all__ = ["NodeSettings", "NotPossible", "run"]

log = logger("kubelet")


class NotPossible(Exception):
    """This machine cannot run pods; the message says why and what to do."""


async def run(
    nodes: Sequence[tuple[NodeSettings, Client]], *, images: Images, clock: Clock, ready: Callable[[], None]
) -> None:
    """Be the nodes of this machine until cancelled, each as itself to the cluster; their folders are the same.

    Raises NotPossible, with cause and remedy, when this machine cannot make sandboxes.
    """
    _allow_many_files()
    os.umask(0o022)          # pods of other users read their volumes; around those is a directory of the owner's alone
    settings, client = nodes[0]
    for directory in (settings.run, settings.pods, settings.logs, settings.volumes):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    spoken = await asyncio.to_thread(records.newest, str(settings.run))
    if spoken > records.PROTOCOL:
        raise NotPossible(f"pods of a later release of Trainmaster run below {settings.run}, and this one cannot read "
                          "what they write. Start that release again, or take its pods down: trainmaster down.")
    launcher = Launcher(settings.run)
    namespaces = Namespaces(settings.run, launcher)
    try:
        try:
            await namespaces.enter()
        except Failed as failed:
            raise NotPossible(str(explain(failed, gather()))) from failed
        groups = await asyncio.to_thread(cgroups.begin, settings.run)
        if groups.missing:
            log.warning("limits are kept without the kernel's help: memory is watched", cause=groups.missing)
        await _serve(Host(settings, client, clock, images, namespaces, groups), nodes, ready)
    finally:
        namespaces.leave()
        await launcher.close()


async def _serve(host: Host, wanted: Sequence[tuple[NodeSettings, Client]], ready: Callable[[], None]) -> None:
    nodes: list[Node] = []
    silent = len(wanted)

    async def drain() -> None:
        await asyncio.gather(*(node.pods.drain() for node in nodes))
        await host.end()

    def begun_again() -> None:
        host.groups.sweep()
        for node in nodes:
            node.pods.try_again()

    def served() -> None:
        nonlocal silent
        silent -= 1
        if not silent:
            ready()

    nodes += [Node(host, settings, client, drain) for settings, client in wanted]
    pressure = Pressure([node.pods for node in nodes], Usage("", host.groups, host.clock), host.clock, wanted[0][0].run)
    async with asyncio.TaskGroup() as group:
        for work in (pressure.run(), *host.work(), *(each for node in nodes for each in node.work())):
            group.create_task(work)
        group.create_task(host.namespaces.hold(host.serve_network, begun_again))
        await asyncio.gather(*(node.registered() for node in nodes))
        for node in nodes:
            group.create_task(node.keep_alive())
        await host.namespaces.started.wait()
        group.create_task(_run_pods(host, nodes))
        for node in nodes:
            group.create_task(node.serve(served))


async def _run_pods(host: Host, nodes: Sequence[Node]) -> None:
    left = await host.left_behind()
    async with asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(node.pods.run(_of(node, nodes, left)))


def _of(node: Node, nodes: Sequence[Node], left: Sequence[Object]) -> list[Object]:
    """What a node left behind; the first also has what nobody here did."""
    others = {each.settings.name for each in nodes[1:]}
    if node is nodes[0]:
        return [pod for pod in left if pod["spec"].get("nodeName") not in others]
    return [pod for pod in left if pod["spec"].get("nodeName") == node.settings.name]


def _allow_many_files() -> None:
    """Each pod takes two descriptors for life, each log reader two more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 1 << 16) if hard != resource.RLIM_INFINITY else 1 << 16
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
