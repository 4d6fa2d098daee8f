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
from trainmaster.cluster.network.names import Zone, answer, build

_PATIENCE = 10.0         # seconds that a TCP client may be silent
_CONNECTIONS = 64        # TCP clients at once; the next ones wait


class Nameserver:
    """Serves the names of what two functions list."""

    def __init__(self, services: Callable[[], Iterable[Object]], pods: Callable[[], Iterable[Object]]) -> None:
        self._services = services
        self._pods = pods
        self._zone: Zone | None = None
        self._gate = asyncio.Semaphore(_CONNECTIONS)

    def changed(self) -> None:
        """Something was added, changed or removed."""
        self._zone = None

    def answer(self, query: bytes, *, stream: bool) -> bytes:
        if self._zone is None:
            self._zone = build(self._services(), self._pods())
        return answer(query, self._zone, stream=stream)

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
        async with self._gate:
            try:
                with suppress(asyncio.IncompleteReadError, TimeoutError, ConnectionError):
                    while True:
                        async with asyncio.timeout(_PATIENCE):
                            (length,) = struct.unpack("!H", await reader.readexactly(2))
                            reply = self.answer(await reader.readexactly(length), stream=True)
                            writer.write(struct.pack("!H", len(reply)) + reply)
                            await writer.drain()
            finally:
                writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: Nameserver) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)   # what a datagram endpoint always gives

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        reply = self._server.answer(data, stream=False)
        if reply and self._transport is not None:
            self._transport.sendto(reply, addr)
