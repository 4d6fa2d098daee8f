"""Doors kept open by hand: bytes moved between a client and a backend, one of them perhaps in another network.

For what the kernel cannot rewrite: doors on the machine's loopback that lead into the cluster's network, the API server
that pods reach although it listens on the machine's loopback only, and cluster addresses where there is no nftables.
A relay ends with the agent; clients then connect again.
"""

import asyncio
import ipaddress
import random
import socket
import struct
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, cast

from trainmaster.cluster.network.forwarding import Backend, Door, Forward
from trainmaster.cluster.network.layout import POD_NETWORK, SERVICE_NETWORK
from trainmaster.runtime.log import logger

log = logger("network")

CONNECTIONS = 1024        # through one door at a time; the next ones wait in the kernel's queue
CLIENTS = 4096            # clients remembered for their affinity, and datagram clients at a time
_PIECE = 1 << 16
_CONNECT_SECONDS = 10.0
_SO_ORIGINAL_DST = 80
_SILENCE_SECONDS = 60.0   # a datagram client that says nothing for so long is forgotten

Open: TypeAlias = Callable[[Door], Awaitable[socket.socket]]      # a bound socket, listening if it is a stream's
Dial: TypeAlias = Callable[[int], Awaitable[socket.socket]]       # an unconnected one of a kind, in the right network


class Choice:
    """Which backend a client gets."""

    def __init__(
        self, forward: Forward, *, pick: Callable[[Sequence[Backend]], Backend] = random.choice,
        now: Callable[[], float] | None = None,
    ) -> None:
        self.forward = forward
        self._pick = pick
        self._now = now or asyncio.get_running_loop().time
        self._stays: OrderedDict[str, tuple[Backend, float]] = OrderedDict()

    def of(self, client: str) -> Backend | None:
        backends = self.forward.backends
        if not backends:
            return None
        if not self.forward.affinity:
            return self._pick(backends)
        before, until = self._stays.pop(client, (None, 0.0))
        backend = before if before in backends and self._now() < until else self._pick(backends)
        assert backend is not None
        self._stays[client] = backend, self._now() + self.forward.affinity
        while len(self._stays) > CLIENTS:
            self._stays.popitem(last=False)
        return backend


class Relays:
    """A set of doors, each kept by a task."""

    def __init__(self, opened: Open, dial: Dial) -> None:
        self._open = opened
        self._dial = dial
        self._doors: dict[Door, tuple[Choice, asyncio.Task[None], socket.socket]] = {}

    async def update(self, doors: Mapping[Door, Forward]) -> dict[Door, str]:
        """Have exactly these doors; those that cannot be opened, and why. Asking again tries those again."""
        for door in [door for door in self._doors if door not in doors]:
            await self._shut(door)
        failed: dict[Door, str] = {}
        for door, forward in doors.items():
            if door in self._doors:
                self._doors[door][0].forward = forward
                continue
            try:
                listener = await self._open(door)
            except OSError as error:
                failed[door] = error.strerror or str(error)
                continue
            choice = Choice(forward)
            serve = _streams if door.protocol == "TCP" else _datagrams
            self._doors[door] = choice, asyncio.create_task(serve(listener, choice, self._dial)), listener
        return failed

    async def close(self) -> None:
        for door in list(self._doors):
            await self._shut(door)

    async def _shut(self, door: Door) -> None:
        _, task, listener = self._doors.pop(door)
        task.cancel()
        try:
            await asyncio.gather(task, return_exceptions=True)
        finally:                       # we may be cancelled ourselves, and nobody else knows of it any more
            listener.close()           # a task that never ran could not


async def on_this_machine(kind: int) -> socket.socket:
    """Dial from the network that we are in."""
    return socket.socket(socket.AF_INET, kind)


async def open_on_this_machine(door: Door) -> socket.socket:
    kind = socket.SOCK_STREAM if door.protocol == "TCP" else socket.SOCK_DGRAM
    made = socket.socket(socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((door.address, door.port))
        if kind == socket.SOCK_STREAM:
            made.listen(128)
    except OSError:
        made.close()
        raise
    return made


async def outgoing(listener: socket.socket) -> None:
    """Lead connections that the kernel redirected here to where they were going, from this machine's own network."""
    await _accepted(listener, lambda client, _: destination(client), on_this_machine)


def destination(client: socket.socket) -> Backend | None:
    """Where a redirected connection was going; None for places to which no pod is led."""
    raw = client.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, 16)
    port, address = struct.unpack_from("!2xH4s", raw)
    found = socket.inet_ntoa(address)
    return (found, int(port)) if may_be_reached(found) else None


def may_be_reached(address: str) -> bool:
    """Whether pods are led there. Not to this machine's loopback, nor to the link-local addresses at which clouds give
    a machine its credentials."""
    found = ipaddress.IPv4Address(address)
    inside = any(found in ipaddress.IPv4Network(network) for network in (POD_NETWORK, SERVICE_NETWORK))
    return not (inside or found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
                or found in ipaddress.IPv4Network("0.0.0.0/8") or address == "255.255.255.255")


async def _streams(listener: socket.socket, choice: Choice, dial: Dial) -> None:
    await _accepted(listener, lambda _, address: choice.of(address), dial)


async def _accepted(
    listener: socket.socket, where: Callable[[socket.socket, str], Backend | None], dial: Dial
) -> None:
    gate = asyncio.Semaphore(CONNECTIONS)
    tasks: set[asyncio.Task[None]] = set()
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    try:
        while True:
            await gate.acquire()
            try:
                client, address = await loop.sock_accept(listener)
            except OSError as error:       # out of descriptors: others may end
                log.warning("a connection could not be accepted", cause=error)
                gate.release()
                await asyncio.sleep(1.0)
                continue
            try:
                backend = where(client, address[0])
            except OSError as error:       # nobody knows any more where it was going
                log.debug("a connection leads nowhere", cause=error)
                backend = None
            task = asyncio.create_task(_connected(client, backend, dial))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            task.add_done_callback(partial(_gone, client, gate))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _gone(client: socket.socket, gate: asyncio.Semaphore, _: object) -> None:
    client.close()           # a task that never ran could not
    gate.release()


async def _connected(client: socket.socket, backend: Backend | None, dial: Dial) -> None:
    with client:
        if backend is None:
            return
        client.setblocking(False)
        try:
            with await dial(socket.SOCK_STREAM) as server:
                server.setblocking(False)
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await asyncio.get_running_loop().sock_connect(server, backend)
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                # A group: a pump that goes on after the sockets are closed would meet others under their numbers.
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pump(client, server))
                    group.create_task(_pump(server, client))
        except* (OSError, TimeoutError) as error:
            log.debug("a connection ended", backend=backend[0], port=backend[1], cause=error)


async def _pump(source: socket.socket, target: socket.socket) -> None:
    """Bytes one way until their end, which is passed on: the other way may go on."""
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, _PIECE):
        await loop.sock_sendall(target, data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


async def _datagrams(listener: socket.socket, choice: Choice, dial: Dial) -> None:
    listener.setblocking(False)
    transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Datagrams(choice, dial), sock=listener)
    try:
        await asyncio.Event().wait()
    finally:
        protocol.close()
        transport.close()


class _Datagrams(asyncio.DatagramProtocol):
    """One socket to a backend for each client, so that answers find their way."""

    def __init__(self, choice: Choice, dial: Dial) -> None:
        self._choice = choice
        self._dial = dial
        self._transport: asyncio.DatagramTransport | None = None
        self._clients: dict[tuple[str, int], tuple[asyncio.Queue[bytes], asyncio.Task[None]]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)   # what a datagram endpoint always gives

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        if addr not in self._clients:
            if len(self._clients) >= CLIENTS:
                return
            queue: asyncio.Queue[bytes] = asyncio.Queue(64)
            task = asyncio.create_task(self._converse(addr, queue))
            self._clients[addr] = queue, task
            task.add_done_callback(lambda _: self._clients.pop(addr, None))
        with suppress(asyncio.QueueFull):                 # as a full socket would: dropped
            self._clients[addr][0].put_nowait(data)

    def close(self) -> None:
        for _, task in self._clients.values():
            task.cancel()

    async def _converse(self, client: tuple[str | Any, int], queue: asyncio.Queue[bytes]) -> None:
        backend = self._choice.of(str(client[0]))
        if backend is None:
            return
        loop = asyncio.get_running_loop()
        with suppress(OSError, TimeoutError), await self._dial(socket.SOCK_DGRAM) as server:
            server.setblocking(False)
            await loop.sock_connect(server, backend)
            answers = asyncio.create_task(self._answer(server, client))
            try:
                while True:
                    async with asyncio.timeout(_SILENCE_SECONDS):
                        data = await queue.get()
                    await loop.sock_sendall(server, data)
            finally:
                answers.cancel()
                await asyncio.gather(answers, return_exceptions=True)

    async def _answer(self, server: socket.socket, client: tuple[str | Any, int]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            with suppress(ConnectionRefusedError):        # nobody there yet
                data = await loop.sock_recv(server, _PIECE)
                if self._transport is not None:
                    self._transport.sendto(data, client)
