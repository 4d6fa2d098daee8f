"""The node agent: wires its parts and runs until cancelled. Pods go on when it ends; the next one adopts them."""

import asyncio
import os
import resource
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

from trainmaster.api.core import PODS, SERVICES
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import cgroups, holder, register
from trainmaster.cluster.kubelet.capability import explain, gather
from trainmaster.cluster.kubelet.cgroups import Cgroups
from trainmaster.cluster.kubelet.checks import Checks
from trainmaster.cluster.kubelet.environment import shares_network
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.following import Following
from trainmaster.cluster.kubelet.former import Former
from trainmaster.cluster.kubelet.formerpods import FormerPods
from trainmaster.cluster.kubelet.hooks import Hooks
from trainmaster.cluster.kubelet.images import Images
from trainmaster.cluster.kubelet.keeping import Keeping
from trainmaster.cluster.kubelet.launcher import Launcher, Process
from trainmaster.cluster.kubelet.leftovers import Leftovers
from trainmaster.cluster.kubelet.plans import homes
from trainmaster.cluster.kubelet.pods import Pods
from trainmaster.cluster.kubelet.privacy import Privacy
from trainmaster.cluster.kubelet.reaching import reach_by
from trainmaster.cluster.kubelet.records import HOLDER, Failed
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.rootfs import SECRET_DIRECTORIES
from trainmaster.cluster.kubelet.server import Server
from trainmaster.cluster.kubelet.servicelinks import service_links
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.cluster.kubelet.starting import Starter
from trainmaster.cluster.kubelet.supplies import Supplies
from trainmaster.cluster.kubelet.usage import Usage
from trainmaster.cluster.kubelet.visits import Visits
from trainmaster.cluster.network.doors import Doors
from trainmaster.cluster.network.forwarding import ENDPOINT_SLICES, has_door, is_behind_door, opens_door
from trainmaster.cluster.network.nameserver import Nameserver
from trainmaster.cluster.network.upstream import Upstream, resolvers
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

__all__ = ["NodeSettings", "NotPossible", "run"]

log = logger("kubelet")


class NotPossible(Exception):
    """This machine cannot run pods; the message says why and what to do."""


async def run(
    settings: NodeSettings, *, client: Client, images: Images, clock: Clock, ready: Callable[[], None]
) -> None:
    """Be a node until cancelled. Raises NotPossible, with cause and remedy, when this machine cannot make sandboxes."""
    _allow_many_files()
    for directory in (settings.run, settings.pods, settings.logs, settings.volumes):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    launcher = Launcher(settings.run)
    node = _Node(settings, launcher)
    try:
        try:
            await node.enter()
        except Failed as failed:
            raise NotPossible(str(explain(failed, gather()))) from failed
        await _serve(settings, node, client, images, clock, ready)
    finally:
        node.leave()
        await launcher.close()


async def _serve(
    settings: NodeSettings, node: "_Node", client: Client, images: Images, clock: Clock, ready: Callable[[], None]
) -> None:
    mine = Informer(client, PODS, clock=clock, fields=f"spec.nodeName={settings.name}")
    everyone = Informer(client, PODS, clock=clock)
    services = Informer(client, SERVICES, clock=clock)
    slices = Informer(client, ENDPOINT_SLICES, clock=clock)
    events = Events(client, clock)
    groups = await asyncio.to_thread(cgroups.begin, settings.run)
    if groups.missing:
        log.warning("limits are kept without the kernel's help: memory is watched", cause=groups.missing)
    privacy = Privacy(os.geteuid(), frozenset([
        *homes(os.environ.get("HOME", ""), os.getuid()), *map(str, settings.hidden), *SECRET_DIRECTORIES]))
    supplies = Supplies(
        client, clock, register.offered(settings), lambda pod: service_links(
            pod, services.copy.all(), settings.api if shares_network(pod) else None)
    )
    starter = Starter(
        settings, supplies, images, clock, events, node.launcher, rootless=node.rootless,
        allocatable=register.offered(settings), groups=groups, privacy=privacy,
    )
    reach, former = reach_by(node.launcher), Former(settings.logs, clock)
    keeping = Keeping(settings.volumes / "pods", client, clock)
    pods = Pods(
        settings, client, clock, events, starter, mine, Checks(clock, events, reach), Hooks(clock, events, reach),
        supplies, Following(client, clock), former, keeping.keep,
    )
    outside = Upstream(_resolvers, clock.monotonic)
    nameserver = Nameserver(services.copy.all, everyone.copy.all, outside, slices.copy.all)
    doors = Doors(
        services.copy.all, slices.copy.all, mine.copy.all, api=settings.api, clock=clock,
        complain=lambda thing, text: events.warning(thing, "PortNotOpen", text),
    )
    for informer in (services, everyone, slices):
        informer.on_change(lambda before, after: nameserver.changed())  # noqa: ARG005  any change will do
    for informer, concerns in ((services, has_door), (slices, is_behind_door), (mine, opens_door)):
        informer.on_change(partial(_tell_doors, doors, concerns))

    async def serve_network(launcher: Launcher, ready: Callable[[], None]) -> None:
        for informer in (services, slices):
            await informer.synced()
        sockets = [await launcher.open_socket(socket.AF_INET, kind, 0, (holder.GATEWAY, 53))
                   for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM)]
        async with asyncio.TaskGroup() as group:
            group.create_task(nameserver.serve(*sockets))
            group.create_task(doors.run(launcher, node.holder_pid, ready))

    async def drain() -> None:
        await pods.drain()
        node.draining = True
        await asyncio.to_thread(holder.end, settings.run)
        await asyncio.to_thread(cgroups.end, settings.run)
        await asyncio.to_thread(remove, settings.pods)

    def begun_again() -> None:
        groups.sweep()
        pods.try_again()

    async with asyncio.TaskGroup() as group:
        for informer in (mine, everyone, services, slices):
            group.create_task(informer.run())
        group.create_task(events.run())
        group.create_task(privacy.keep(clock))
        group.create_task(keeping.run())
        group.create_task(node.hold(serve_network, begun_again))
        await _registered(settings, client, clock)
        group.create_task(register.keep_alive(settings, client, clock, lambda: notes(groups, doors)))
        await node.started.wait()
        group.create_task(pods.run())
        usage, visits = Usage(settings.name, groups, clock), Visits(pods, node.launcher)
        left = (Leftovers(pods, keeping), FormerPods(former, keeping, clock))
        server = Server(pods, visits, left, usage, clock, drain)
        group.create_task(server.run(settings.socket, ready))


_LAST_WORDS = 1.0


class _Node:
    """The cluster's namespaces as the agent needs them: there, and made again if they are lost."""

    def __init__(self, settings: NodeSettings, launcher: Launcher) -> None:
        self.launcher = launcher
        self.rootless = False
        self.draining = False
        self.holder_pid = 0
        self.started = asyncio.Event()
        self._run = settings.run
        self._holder: Process | None = None

    async def enter(self) -> None:
        """Have a holder and the helper inside it."""
        _forget_dead_holder(self._run)
        await self.launcher.start()
        found = holder.find(str(self._run))
        if found is None:
            raise RuntimeError("the holder of the cluster's namespaces ended as soon as it was started")
        self._holder = Process(found[0], lambda: None)
        self.holder_pid = int(str(found[1].get("pid")))
        self.rootless = bool(found[1].get("rootless"))

    async def hold(
        self, serve: Callable[[Launcher, Callable[[], None]], Coroutine[None, None, None]],
        begun_again: Callable[[], None],
    ) -> None:
        """Serve the cluster's network; if the holder is lost, begin again with another, and say so."""
        while True:
            assert self._holder is not None
            ended = asyncio.create_task(self._holder.end())
            serving = asyncio.create_task(serve(self.launcher, self.started.set))
            try:
                await asyncio.wait([ended, serving], return_when=asyncio.FIRST_COMPLETED)
                if serving.done() and not ended.done():
                    # What it lacks may be the network that ended a moment ago.
                    async with asyncio.timeout(_LAST_WORDS):
                        await ended
            except TimeoutError:
                serving.result()
                raise
            finally:
                for task in (ended, serving):
                    task.cancel()
                await asyncio.gather(ended, serving, return_exceptions=True)
            if self.draining:
                return
            log.error("the holder of the cluster's namespaces is gone, and with it every container; starting another")
            await self.launcher.close()
            await self.enter()
            begun_again()

    def leave(self) -> None:
        if self._holder is not None:
            self._holder.forget()


def notes(groups: Cgroups, doors: Doors) -> dict[str, tuple[str, str, str]]:
    """What this node does otherwise than others would, as conditions of the Node. Only what is found out by then."""
    found = {"LimitsKept": ("True", "ControlGroups", f"by control groups of version {groups.version}")}
    if groups.missing:
        found["LimitsKept"] = ("False", "Watched", f"memory is watched, the rest is not limited: {groups.missing}")
    if doors.way_out is not None:
        leads = doors.by_kernel
        reason = "Link" if not doors.way_out else "Relay" if leads else "NoWayOut"
        found["OutsideReachable"] = (str(leads), reason, doors.way_out or "by slirp4netns")
    return found


def _tell_doors(
    doors: Doors, concerns: Callable[[Object], bool], before: Object | None, after: Object | None
) -> None:
    """A training job of a hundred replicas changes a thousand objects without a door; each would cost a plan."""
    if any(thing is not None and concerns(thing) for thing in (before, after)):
        doors.changed()


def _resolvers() -> list[str]:
    """Those of this machine, which change when it moves."""
    try:
        return resolvers(Path("/etc/resolv.conf").read_text())
    except OSError:
        return []


def _forget_dead_holder(run: Path) -> None:
    """A record whose process is gone would keep the next holder from claiming the name."""
    if not holder.alive(run):
        (run / HOLDER).unlink(missing_ok=True)


async def _registered(settings: NodeSettings, client: Client, clock: Clock) -> None:
    trouble = False
    while True:
        try:
            await register.register(settings, client, clock)
            return
        except KubeError as error:
            if not trouble:
                log.warning("the node could not be registered, trying again", cause=error)
            trouble = True
            await clock.sleep(1.0)


def _allow_many_files() -> None:
    """Each pod takes two descriptors for life, each log reader two more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 1 << 16) if hard != resource.RLIM_INFINITY else 1 << 16
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
