"""The shell around `names`: answers queries on the bridge's address, over UDP and TCP.

The sockets were made inside the cluster's network namespace and handed over; the agent itself stays in the host's. The
zone is rebuilt when a query comes after a change, so a burst of changes costs one rebuild and an idle cluster none.
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, cast

from trainmaster.api.meta import Object
from trainmaster.cluster.network.names import Zone, answer, build, elsewhere, with_more
from trainmaster.cluster.network.upstream import Upstream

_PATIENCE = 10.0         # seconds that a TCP client may be silent
_CONNECTIONS = 64        # TCP clients that are served at once; the next ones wait
_WAITING = 192           # of those; whoever comes then is turned away, or one pod could take all our descriptors


class Nameserver:
    """Serves the names of what two functions list, and passes on what is not ours."""

    def __init__(
        self, services: Callable[[], Iterable[Object]], pods: Callable[[], Iterable[Object]],
        upstream: Upstream | None = None, slices: Callable[[], Iterable[Object]] = tuple,
    ) -> None:
        self._services = services
        self._pods = pods
        self._upstream = upstream
        self._slices = slices
        self._zone: Zone | None = None
        self._gate = asyncio.Semaphore(_CONNECTIONS)
        self._open = 0

    def changed(self) -> None:
        """Something was added, changed or removed."""
        self._zone = None

    def here(self, query: bytes, *, stream: bool) -> bytes | None:
        """The answer, if we have it; None when somebody else must be asked."""
        if self._zone is None:
            self._zone = build(self._services(), self._pods(), self._slices())
        if self._upstream is not None:
            others, target = elsewhere(query, self._zone)
            if others or target:
                return None
        return answer(query, self._zone, stream=stream)

    async def answer(self, query: bytes, *, stream: bool) -> bytes:
        found = self.here(query, stream=stream)
        if found is not None or self._upstream is None or self._zone is None:
            return found or b""
        others, target = elsewhere(query, self._zone)
        if others:
            return await self._upstream.ask(query, stream=stream)
        return with_more(answer(query, self._zone, stream=stream), await self._upstream.addresses(target))

    async def serve(self, datagrams: socket.socket, stream: socket.socket) -> None:
        """Answer until cancelled; both sockets are closed then."""
        loop = asyncio.get_running_loop()
        datagrams.setblocking(False)
        stream.setblocking(False)
        transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), sock=datagrams)
        server = await asyncio.start_server(self._connected, sock=stream)
        try:
            await asyncio.Event().wait()
        finally:
            transport.close()
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= _CONNECTIONS + _WAITING:
                async with self._gate:
                    await self._converse(reader, writer)
        finally:
            self._open -= 1
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            while True:
                async with asyncio.timeout(_PATIENCE):
                    (length,) = struct.unpack("!H", await reader.readexactly(2))
                    reply = await self.answer(await reader.readexactly(length), stream=True)
                    writer.write(struct.pack("!H", len(reply)) + reply)
                    await writer.drain()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: Nameserver) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)   # what a datagram endpoint always gives

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        reply = self._server.here(data, stream=False)
        if reply is None:
            task = asyncio.create_task(self._ask(data, addr))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._send(reply, addr)

    async def _ask(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        self._send(await self._server.answer(data, stream=False), addr)

    def _send(self, reply: bytes, addr: tuple[str | Any, int]) -> None:
        if reply and self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(reply, addr)
