"""One connection that speaks SPDY: its frames as they come, pings answered, streams taken.

It is carried by a connection that was upgraded, or by the binary messages of a WebSocket, which is how kubectl since
1.31 takes SPDY through proxies that do not know it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Protocol

from aiohttp import WSMsgType, web

from trainmaster.cluster.kubelet import spdy
from trainmaster.cluster.kubelet.talk import Gone

PIECE = 1 << 16
# So many bytes at once in one frame, as kubectl does.
MOST_DATA = 1 << 15


class Wire(Protocol):
    """Carries the bytes of a session. Raises ConnectionError when the other side is gone."""

    async def read(self) -> bytes:
        """The next bytes; none at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class PlainWire:
    """An upgraded connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(PIECE)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


class MessageWire:
    """A WebSocket whose messages are pieces of the session."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def read(self) -> bytes:
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.BINARY:
                if message.data:
                    return bytes(message.data)
            elif message.type is not WSMsgType.TEXT:
                return b""

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)

    async def close(self) -> None:
        with suppress(ConnectionError):
            await self._socket.close()


class Session:
    """A session as the server sees it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._reader = spdy.Reader()
        self._writer = spdy.Writer()
        self._last = 0

    async def frames(self) -> AsyncIterator[spdy.Frame]:
        """What comes, until the client has gone. Streams are taken as they are opened. Raises Gone for nonsense."""
        try:
            while data := await self._wire.read():
                for frame in self._reader.feed(data):
                    if isinstance(frame, spdy.Ping):
                        if frame.number % 2:         # even ones answer ours, and there are none
                            await self._wire.write(self._writer.ping(frame.number))
                        continue
                    if isinstance(frame, spdy.Opened):
                        self._last = frame.stream
                        await self._wire.write(self._writer.reply(frame.stream))
                    yield frame
        except spdy.Broken as error:
            raise Gone(f"this is no SPDY: {error}") from error

    async def data(self, stream: int, data: bytes, *, fin: bool = False) -> None:
        for at in range(0, len(data), MOST_DATA):
            await self._wire.write(self._writer.data(stream, data[at:at + MOST_DATA]))
        if fin:
            await self._wire.write(self._writer.data(stream, b"", fin=True))

    async def reset(self, stream: int) -> None:
        await self._wire.write(self._writer.reset(stream))

    async def close(self) -> None:
        """Say good-bye and let go of the connection."""
        with suppress(ConnectionError):
            await self._wire.write(self._writer.leave(self._last))
        await self._wire.close()
