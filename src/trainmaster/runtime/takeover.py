"""A connection that stops being HTTP: taken over from aiohttp after an upgrade, as plain reader and writer.

aiohttp knows one upgrade, WebSocket, and would read anything else as the next request. Both ends of an upgrade are
silent until the 101 is sent, so that is the moment at which the transport gets another protocol. When the connection is
lost, aiohttp is told too, so that it forgets it.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from aiohttp import web

PIECE = 1 << 16


class _Protocol(asyncio.StreamReaderProtocol):
    def __init__(self, reader: asyncio.StreamReader, before: asyncio.BaseProtocol) -> None:
        super().__init__(reader)
        self._before = before

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._before.connection_lost(exc)


def upgraded(request: web.BaseRequest, headers: Mapping[str, str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Answer 101 with these headers and take the connection over. Raises ConnectionResetError if it is gone."""
    reader, writer = taken(request)
    lines = [b"HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}".encode() for name, value in headers.items())]
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n")
    return reader, writer


def taken(request: web.BaseRequest) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Take the connection over, with nothing answered yet. Raises ConnectionResetError if it is gone.

    aiohttp cancels the request's handler when the connection is lost.
    """
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has gone")
    reader = asyncio.StreamReader(limit=PIECE)
    protocol = _Protocol(reader, transport.get_protocol())
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    return reader, writer


async def joined(
    theirs: asyncio.StreamReader, ours: asyncio.StreamWriter, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Pass on what a client says and what is said to it, until there is no more for it: the far side has the last word,
    and a client that is gone ends it, too. The client's side is closed then, the far side is its owner's to close."""
    inward = asyncio.create_task(pump(theirs, writer))
    try:
        await pump(reader, ours)
    finally:
        inward.cancel()
        await asyncio.wait([inward])
        ours.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass everything on, no faster than it is taken; then say that there is no more."""
    with suppress(ConnectionError):
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
