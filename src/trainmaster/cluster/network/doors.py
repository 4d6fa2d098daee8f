"""The shell around `forwarding`: keeps the doors of services and pods open, by the kernel where it can, else by hand.

Driven by changes of services, their endpoints and pods; nothing is asked in between. What could not be opened (a port
of the machine that somebody else has) is said once and tried again when something changes, and now and then.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from trainmaster.api.meta import Object
from trainmaster.cluster.network import relay, wayout
from trainmaster.cluster.network.forwarding import LOOPBACK, Backend, Door, Forward, plan
from trainmaster.cluster.network.layout import GATEWAY, SERVICE_NETWORK, WAY_OUT_PORT
from trainmaster.cluster.network.netlink import Netlink
from trainmaster.cluster.network.nftables import NETLINK_NETFILTER, Nftables, Refused
from trainmaster.cluster.network.relay import Relays
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.first import first
from trainmaster.runtime.log import logger

log = logger("network")

AGAIN_SECONDS = 30.0


class Network(Protocol):
    """Makes sockets inside the cluster's network; an address to bind to makes a stream's socket listen."""

    async def open_socket(
        self, family: int, kind: int, protocol: int = 0, bind: tuple[str, int] | None = None
    ) -> socket.socket: ...


class Doors:
    """All doors of one cluster. `complain` is told, with the object that asked, what cannot be opened."""

    def __init__(
        self, services: Callable[[], Iterable[Object]], slices: Callable[[], Iterable[Object]],
        pods: Callable[[], Iterable[Object]], *, api: Backend | None, clock: Clock,
        complain: Callable[[Object, str], None],
    ) -> None:
        self._services = services
        self._slices = slices
        self._pods = pods
        self._api = api
        self._clock = clock
        self._complain = complain
        self._changed = asyncio.Event()
        self._said: dict[Door, str] = {}
        self.by_kernel = False
        self.way_out: str | None = None    # why there is none, or not a whole one; None: not known yet

    def changed(self) -> None:
        """Something was added, changed or removed."""
        self._changed.set()

    async def run(self, network: Network, holder: int, ready: Callable[[], None]) -> None:
        """Keep the doors until cancelled; `ready` when those that are asked for now are open. `holder` is a process in
        the cluster's network."""
        async def dial(kind: int) -> socket.socket:
            return await network.open_socket(socket.AF_INET, kind)

        async def opened(door: Door) -> socket.socket:
            kind = socket.SOCK_STREAM if door.protocol == "TCP" else socket.SOCK_DGRAM
            return await network.open_socket(socket.AF_INET, kind, 0, (door.address, door.port))

        slirp = await wayout.start(holder)
        led = Door(GATEWAY, 0 if isinstance(slirp, wayout.Slirp) else WAY_OUT_PORT, "TCP")
        kernel = await self._kernel(network, led.port)
        self.way_out = self._told(slirp if isinstance(slirp, str) else "")
        listener = await opened(led) if led.port and self.by_kernel else None
        leading: asyncio.Task[None] | None = None
        if isinstance(slirp, wayout.Slirp):
            leading = asyncio.create_task(slirp.watch())
        elif listener is not None:
            leading = asyncio.create_task(relay.outgoing(listener))
        inside = Relays(opened, dial)
        outside = Relays(relay.open_on_this_machine, dial)
        api = Relays(opened, relay.on_this_machine)
        try:
            always = {Door(GATEWAY, self._api[1], "TCP"): Forward((self._api,))} if self._api is not None else {}
            while True:
                self._changed.clear()
                wanted = plan(self._services(), self._slices(), self._pods(), GATEWAY)
                if kernel is not None:
                    kernel = await self._rewritten(kernel, wanted.inside, network, led.port)
                if kernel is None:
                    for door, why in (await inside.update(wanted.inside)).items():
                        log.warning("a service's address cannot be served", address=door.address, port=door.port,
                                    cause=why)
                for door, why in (await api.update({**wanted.shared, **always})).items():
                    log.warning("pods cannot be led to this machine", port=door.port, cause=why)
                failed_outside = await outside.update(wanted.outside)
                self._tell(failed_outside, wanted.askers)
                ready()
                await self._next(bool(failed_outside))
        finally:
            for relays in (inside, outside, api):
                await relays.close()
            if leading is not None:
                leading.cancel()
                await asyncio.gather(leading, return_exceptions=True)
            if listener is not None:
                listener.close()
            if isinstance(slirp, wayout.Slirp):
                await slirp.close()
            if kernel is not None:
                kernel.close()

    def _told(self, why: str) -> str:
        if not why and self.by_kernel:
            return ""
        if not self.by_kernel:
            return "pods have no way out: the kernel does not rewrite addresses here"
        return f"pods reach the outside by TCP only, through the node agent: {why}"

    async def _kernel(self, network: Network, way_out: int) -> Nftables | None:
        """nftables, if this kernel has it; else every service address becomes one of our own, to listen on."""
        try:
            channel = await network.open_socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
            made = Nftables(channel, SERVICE_NETWORK)
            await asyncio.to_thread(made.begin, way_out)
        except (Refused, OSError) as error:
            log.warning("service addresses are served by relays: the kernel does not rewrite them", cause=error)
            await self._take_addresses(network)
            return None
        self.by_kernel = True
        return made

    async def _take_addresses(self, network: Network) -> None:
        self.by_kernel = False
        with await network.open_socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as channel:
            Netlink(channel=channel).own_network(SERVICE_NETWORK)

    async def _rewritten(
        self, kernel: Nftables, doors: Mapping[Door, Forward], network: Network, way_out: int
    ) -> Nftables | None:
        """Tell the kernel; if it refuses, once more from the beginning, and then never again."""
        for attempt in (1, 2):
            try:
                await asyncio.to_thread(kernel.update, doors)
                return kernel
            except Refused as error:
                log.warning("service addresses could not be changed", attempt=attempt, cause=error)
            try:
                await asyncio.to_thread(kernel.begin, way_out)
            except Refused:
                break
        kernel.close()
        await self._take_addresses(network)
        return None

    def _tell(self, failed: Mapping[Door, str], askers: Mapping[Door, Object]) -> None:
        for door, why in failed.items():
            if self._said.get(door) != why and door in askers:
                self._complain(askers[door], f"port {door.port} of {LOOPBACK} cannot be opened for {door.protocol}: "
                                             f"{why}; it is tried again")
        self._said = dict(failed)

    async def _next(self, trouble: bool) -> None:
        """Wait for a change, or for a while when something is to be tried again."""
        if not trouble:
            await self._changed.wait()
            return
        await first(self._changed.wait(), self._clock.sleep(AGAIN_SECONDS))
