"""Ports of pods, brought to clients: many connections in one session.

kubectl speaks SPDY, plain or inside a WebSocket, and opens two streams for each connection: one for bytes, one for what
goes wrong. Other clients name their ports beforehand and have one connection to each, on channels of a WebSocket. The
connections are made from inside the pod's network, to its own loopback, so a server that listens on localhost alone is
reached, too.
"""

import asyncio
import contextlib
import ipaddress
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from aiohttp import web

from trainmaster.cluster.kubelet import spdy
from trainmaster.cluster.kubelet.channels import BASE64_V4, V4, V5, Channels
from trainmaster.cluster.kubelet.environment import shares_network
from trainmaster.cluster.kubelet.finding import Refused
from trainmaster.cluster.kubelet.holder import GATEWAY, PREFIX
from trainmaster.cluster.kubelet.launcher import Launcher
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.records import Failed
from trainmaster.cluster.kubelet.spdy_session import Session

PROTOCOL = "portforward.k8s.io"
TUNNEL = f"SPDY/3.1+{PROTOCOL}"
WEBSOCKET_PROTOCOLS = (TUNNEL, V5, V4, BASE64_V4)
PIECE = 1 << 15
# Pieces from the client that wait for one connection before the whole session does.
_MOST_WAITING = 32
_MOST_PORTS = 64
_MOST_CONNECTIONS = 512
_CONNECTING = 20.0
_POD_NETWORK = ipaddress.ip_network(f"{GATEWAY}/{PREFIX}", strict=False)

Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect: TypeAlias = Callable[[int], Awaitable[Connection]]


async def connected(launcher: Launcher, life: Life, port: int) -> Connection:
    """A connection to a port of a pod, from within. Raises Failed or OSError."""
    if life.sandbox is None or life.sandbox.ended:
        raise Failed("connect to the pod", 0, "it is not running")
    fourth, sixth = await launcher.pod_sockets(life.sandbox.pidfd, host_network=shares_network(life.pod))
    first: OSError | None = None
    for each, host in ((fourth, "127.0.0.1"), (sixth, "::1")):
        each.setblocking(False)
        try:
            async with asyncio.timeout(_CONNECTING):
                await asyncio.get_running_loop().sock_connect(each, (host, port))
        except OSError as error:
            first = first or error
            each.close()
            continue
        if each is fourth:
            sixth.close()
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return await asyncio.open_connection(sock=each)
    assert first is not None
    raise first


async def dialled(launcher: Launcher, address: str, port: int) -> Connection:
    """A connection to an address of the pods' network, from the cluster's. Raises Refused, Failed or OSError."""
    try:
        inside = ipaddress.ip_address(address) in _POD_NETWORK
    except ValueError:
        inside = False
    if not inside:
        raise Refused(403, f"{address} is not an address of a pod")
    made = await launcher.stream()
    try:
        async with asyncio.timeout(_CONNECTING):
            await asyncio.get_running_loop().sock_connect(made, (address, port))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return await asyncio.open_connection(sock=made)
    except BaseException:
        made.close()
        raise


def problem(port: int, error: Exception) -> bytes:
    """What went wrong, in the kubelet's words."""
    why = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error)
    return f"error forwarding port {port}: failed to connect to localhost:{port} inside the pod: {why}".encode()


def ports(given: Sequence[str]) -> list[int]:
    """Raises Refused."""
    found = [int(port) if port.isdecimal() else 0 for port in given]
    if any(not 0 < port < 65536 for port in found) or len(found) > _MOST_PORTS:
        raise Refused(400, f"invalid ports {given!r}")
    return found


async def on_spdy(session: Session, connect: Connect) -> None:
    """Serve a session until the client is gone."""
    forwarding = _Forwarding(session, connect)
    try:
        with contextlib.suppress(ConnectionError):
            async for frame in session.frames():
                await forwarding.take(frame)
    finally:
        await forwarding.close()
        await session.close()


class _Forwarding:
    """The connections of one session."""

    def __init__(self, session: Session, connect: Connect) -> None:
        self._session = session
        self._connect = connect
        self._errors: dict[tuple[str, str], int] = {}                        # (request, port) -> its error stream
        self._waiting: dict[int, asyncio.Queue[bytes]] = {}                  # data stream -> bytes; none: their end
        self._tasks: dict[int, asyncio.Task[None]] = {}                      # data stream -> its connection

    async def take(self, frame: spdy.Frame) -> None:
        match frame:
            case spdy.Opened(stream, headers, _):
                await self._opened(stream, headers.get("streamtype", ""), headers.get("requestid", ""),
                                   headers.get("port", ""))
            case spdy.Data(stream, data, fin) if stream in self._waiting:
                if data:
                    await self._waiting[stream].put(data)
                if fin:
                    await self._waiting[stream].put(b"")
            case spdy.Reset(stream, _) if stream in self._tasks:
                self._tasks[stream].cancel()

    async def _opened(self, stream: int, kind: str, request: str, port: str) -> None:
        if kind == "error":
            self._errors[request, port] = stream
        elif kind == "data" and port.isdecimal() and 0 < int(port) < 65536 and len(self._tasks) < _MOST_CONNECTIONS:
            error = self._errors.pop((request, port), 0)
            self._waiting[stream] = asyncio.Queue(_MOST_WAITING)
            task = self._tasks[stream] = asyncio.create_task(self._one(stream, error, int(port)))
            task.add_done_callback(lambda _: self._forget(stream))
        else:
            await self._session.reset(stream)

    def _forget(self, stream: int) -> None:
        self._tasks.pop(stream, None)
        queue = self._waiting.pop(stream, None)
        while queue is not None and not queue.empty():      # the session may be waiting for room
            queue.get_nowait()

    async def _one(self, stream: int, error: int, port: int) -> None:
        with contextlib.suppress(ConnectionError):
            try:
                reader, writer = await self._connect(port)
            except (Failed, OSError) as trouble:
                if error:
                    await self._session.data(error, problem(port, trouble), fin=True)
                await self._session.data(stream, b"", fin=True)
                return
            inward = asyncio.create_task(_typed(self._waiting[stream], writer))
            try:
                while data := await reader.read(PIECE):
                    await self._session.data(stream, data)
                await self._session.data(stream, b"", fin=True)
                if error:
                    await self._session.data(error, b"", fin=True)
            finally:
                inward.cancel()
                writer.close()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def on_channels(client: web.WebSocketResponse, wanted: Sequence[int], connect: Connect) -> None:
    """Serve one connection to each of these ports, until all of them are over or the client is gone."""
    channels = Channels(client)
    queues: list[asyncio.Queue[bytes]] = [asyncio.Queue(_MOST_WAITING) for _ in wanted]
    tasks = [asyncio.create_task(_channel(channels, 2 * at, port, queues[at], connect))
             for at, port in enumerate(wanted)]

    async def listen() -> None:
        async for message in client:
            channel, data = channels.decoded(message)
            if channel % 2 == 0 and channel // 2 < len(queues) and data and not tasks[channel // 2].done():
                await queues[channel // 2].put(data)

    listening = asyncio.create_task(listen())
    try:
        waiting: set[asyncio.Task[None]] = set(tasks)
        while waiting and not listening.done():
            _, waiting = await asyncio.wait({*waiting, listening}, return_when=asyncio.FIRST_COMPLETED)
            waiting.discard(listening)
    finally:
        for task in (listening, *tasks):
            task.cancel()
        await asyncio.gather(listening, *tasks, return_exceptions=True)
        with contextlib.suppress(ConnectionError):
            await client.close()


async def _channel(
    channels: Channels, channel: int, port: int, typed: "asyncio.Queue[bytes]", connect: Connect
) -> None:
    for each in (channel, channel + 1):
        await channels.say(each, struct.pack("<H", port))
    try:
        reader, writer = await connect(port)
    except (Failed, OSError) as trouble:
        await channels.say(channel + 1, problem(port, trouble))
        return
    inward = asyncio.create_task(_typed(typed, writer))
    try:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(PIECE):
                await channels.say(channel, data)
    finally:
        inward.cancel()
        writer.close()


async def _typed(queue: "asyncio.Queue[bytes]", writer: asyncio.StreamWriter) -> None:
    """From the client to the pod."""
    with contextlib.suppress(ConnectionError):
        while data := await queue.get():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    while True:                     # the pod takes no more: let the client's bytes go nowhere, not hold up the others
        await queue.get()
