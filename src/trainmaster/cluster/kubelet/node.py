"""One node: its Node object and lease, the pods that are bound to it, and its own API."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator

from trainmaster.api.core import PODS
from trainmaster.cluster.kubelet import register
from trainmaster.cluster.kubelet.checks import Checks
from trainmaster.cluster.kubelet.environment import shares_network
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.following import Following
from trainmaster.cluster.kubelet.formerpods import FormerPods
from trainmaster.cluster.kubelet.hooks import Hooks
from trainmaster.cluster.kubelet.host import Host
from trainmaster.cluster.kubelet.leftovers import Leftovers
from trainmaster.cluster.kubelet.pods import Pods
from trainmaster.cluster.kubelet.reaching import reach_by
from trainmaster.cluster.kubelet.server import Server
from trainmaster.cluster.kubelet.servicelinks import service_links
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.cluster.kubelet.starting import Starter
from trainmaster.cluster.kubelet.supplies import Supplies
from trainmaster.cluster.kubelet.usage import Usage
from trainmaster.cluster.kubelet.visits import Visits
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

log = logger("kubelet")


class Node:
    """A node of a machine, asking the cluster as itself. `drain` ends the pods of the whole machine."""

    def __init__(
        self, host: Host, settings: NodeSettings, client: Client, drain: Callable[[], Awaitable[None]]
    ) -> None:
        clock, launcher = host.clock, host.namespaces.launcher
        self.settings = settings
        self._host, self._client = host, client
        self._mine = Informer(client, PODS, clock=clock, fields=f"spec.nodeName={settings.name}")
        self._events = Events(client, clock)
        host.lend(self._mine)
        offers, reach = register.offered(settings), reach_by(launcher)
        following = Following(client, clock)
        supplies = Supplies(client, clock, offers, lambda pod: service_links(
            pod, host.services.copy.all(), settings.api if shares_network(pod) else None), following.read)
        starter = Starter(
            settings, supplies, host.images, clock, self._events, launcher, rootless=host.namespaces.rootless,
            allocatable=offers, groups=host.groups, privacy=host.privacy, addresses=host.addresses,
        )
        self.pods = Pods(
            settings, client, clock, self._events, starter, self._mine, Checks(clock, self._events, reach),
            Hooks(clock, self._events, reach), supplies, following, host.former, host.keeping.keep,
        )
        self._server = Server(
            self.pods, Visits(self.pods, launcher),
            (Leftovers(self.pods, host.keeping), FormerPods(host.former, host.keeping, clock)),
            Usage(settings.name, host.groups, clock, whole=settings.share == 1), clock, drain,
        )

    def work(self) -> Iterator[Coroutine[None, None, None]]:
        """What goes on all the time."""
        yield self._mine.run()
        yield self._events.run()

    async def registered(self) -> None:
        """Return when the cluster knows this node."""
        trouble = False
        while True:
            try:
                await register.register(self.settings, self._client, self._host.clock)
                return
            except KubeError as error:
                if not trouble:
                    log.warning("the node could not be registered, trying again", node=self.settings.name, cause=error)
                trouble = True
                await self._host.clock.sleep(1.0)

    async def keep_alive(self) -> None:
        await register.keep_alive(self.settings, self._client, self._host.clock, self._host.notes)

    async def serve(self, ready: Callable[[], None]) -> None:
        await self.pods.known()
        await self._server.run(self.settings.socket, ready)
