"""What the nodes of one machine share: its namespaces and network, its control groups, and what pods left on its disk.

A machine may be split into several nodes (`trainmaster up --nodes`). Each has an identity, pods and an API of its own;
what there is once per machine is here, and asks the cluster as the first of them. Pods of all of them are in one
network, so their addresses come from one place, and their folders lie side by side: a UID is nobody else's.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path

from trainmaster.api.core import ENDPOINT_SLICES, PODS, SERVICES
from trainmaster.api.meta import Object, uid_of
from trainmaster.cluster.kubelet import cgroups, holder, reap, records
from trainmaster.cluster.kubelet.cgroups import Cgroups
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.former import Former
from trainmaster.cluster.kubelet.images import Images
from trainmaster.cluster.kubelet.keeping import Keeping
from trainmaster.cluster.kubelet.launcher import Launcher
from trainmaster.cluster.kubelet.namespaces import Namespaces
from trainmaster.cluster.kubelet.plans import homes
from trainmaster.cluster.kubelet.privacy import Privacy
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.rootfs import SECRET_DIRECTORIES
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.cluster.network.addresses import Addresses
from trainmaster.cluster.network.doors import Doors
from trainmaster.cluster.network.forwarding import has_door, is_behind_door, opens_door
from trainmaster.cluster.network.nameserver import Nameserver
from trainmaster.cluster.network.upstream import Upstream, resolvers
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer


class Host:
    """One machine. `settings` and `client` are those of its first node."""

    def __init__(
        self, settings: NodeSettings, client: Client, clock: Clock, images: Images, namespaces: Namespaces,
        groups: Cgroups,
    ) -> None:
        self.clock, self.images, self.namespaces, self.groups = clock, images, namespaces, groups
        self.services = Informer(client, SERVICES, clock=clock)
        self.addresses = Addresses(in_use(settings.pods))
        self.privacy = Privacy(os.geteuid(), frozenset([
            *homes(os.environ.get("HOME", ""), os.getuid()), *map(str, settings.hidden), *SECRET_DIRECTORIES]))
        self.former = Former(settings.logs, clock)
        self.keeping = Keeping(settings.volumes / "pods", client, clock)
        self._settings = settings
        self._pods: list[Informer] = []            # of each node, those that are bound to it
        self._everyone = Informer(client, PODS, clock=clock)
        self._slices = Informer(client, ENDPOINT_SLICES, clock=clock)
        self._events = Events(client, clock)
        self._nameserver = Nameserver(self.services.copy.all, self._everyone.copy.all,
                                      Upstream(_resolvers, clock.monotonic), self._slices.copy.all)
        self._doors = Doors(
            self.services.copy.all, self._slices.copy.all, self._bound, api=settings.api, clock=clock,
            complain=lambda thing, text: self._events.warning(thing, "PortNotOpen", text),
        )
        for informer in (self.services, self._everyone, self._slices):
            informer.on_change(lambda before, after: self._nameserver.changed())  # noqa: ARG005  any change will do
        self.services.on_change(partial(_tell_doors, self._doors, has_door))
        self._slices.on_change(partial(_tell_doors, self._doors, is_behind_door))

    def lend(self, pods: Informer) -> None:
        """A node's own pods may open doors of the machine."""
        self._pods.append(pods)
        pods.on_change(partial(_tell_doors, self._doors, opens_door))

    def work(self) -> Iterator[Coroutine[None, None, None]]:
        """What goes on all the time."""
        for informer in (self._everyone, self.services, self._slices):
            yield informer.run()
        yield self._events.run()
        yield self.privacy.keep(self.clock)
        yield self.keeping.run()

    async def serve_network(self, launcher: Launcher, ready: Callable[[], None]) -> None:
        for informer in (self.services, self._slices):
            await informer.synced()
        sockets = [await launcher.open_socket(socket.AF_INET, kind, 0, (holder.GATEWAY, 53))
                   for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM)]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nameserver.serve(*sockets))
            group.create_task(self._doors.run(launcher, self.namespaces.holder_pid, ready))

    async def left_behind(self) -> Sequence[Object]:
        """Pods that an earlier agent ran and that have no object any more. Their like on disk is removed.

        To be asked before any node starts a pod, whose folders it could not tell from an earlier one's.
        """
        await self._everyone.synced()
        known = {uid_of(pod) for pod in self._everyone.copy.all()}
        left = await asyncio.to_thread(list, reap.left_behind(self._settings, known))
        known |= {uid_of(pod) for pod in left}
        for orphan in await asyncio.to_thread(list, reap.orphans(self._settings, known)):
            await asyncio.to_thread(remove, orphan)
        return left

    async def end(self) -> None:
        """The pods of all nodes have ended: so do the namespaces."""
        self.namespaces.draining = True
        await asyncio.to_thread(holder.end, self._settings.run)
        await asyncio.to_thread(cgroups.end, self._settings.run)
        await asyncio.to_thread(remove, self._settings.pods)

    def notes(self) -> dict[str, tuple[str, str, str]]:
        """What nodes here do otherwise than others would, as conditions of a Node. Only what is found out by then."""
        found = {"LimitsKept": ("True", "ControlGroups", f"by control groups of version {self.groups.version}")}
        if self.groups.missing:
            found["LimitsKept"] = (
                "False", "Watched", f"memory is watched, the rest is not limited: {self.groups.missing}")
        if self._doors.way_out is not None:
            leads = self._doors.by_kernel
            reason = "Link" if not self._doors.way_out else "Relay" if leads else "NoWayOut"
            found["OutsideReachable"] = (str(leads), reason, self._doors.way_out or "by slirp4netns")
        return found

    def _bound(self) -> Iterator[Object]:
        for informer in self._pods:
            yield from informer.copy.all()


def in_use(pods: Path) -> dict[str, str]:
    """The addresses of sandboxes that live, by the pod's UID: other nodes must not give them away meanwhile."""
    found: dict[str, str] = {}
    for entry in pods.iterdir() if pods.is_dir() else ():
        record = records.read(str(entry), records.SANDBOX)
        handle = records.open_process(record) if record else None
        if record is not None and handle is not None:
            os.close(handle)
            found[entry.name] = str(record.get("address", ""))
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
