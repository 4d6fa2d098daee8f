"""Clients of the node's own socket, for tests: WebSockets with channels, and SPDY as kubectl speaks it."""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp

from trainmaster.cluster.kubelet import spdy

PATIENCE = 60.0
WebSocket: TypeAlias = "aiohttp.ClientWebSocketResponse[bool]"


@asynccontextmanager
async def address(path: Path) -> AsyncIterator[str]:
    """Of a Unix socket whose path may be too long for one."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


@asynccontextmanager
async def websocket(path: Path, target: str, *protocols: str) -> AsyncIterator[WebSocket]:
    async with (
        address(path) as where,
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(where)) as session,
        session.ws_connect(f"http://kubelet{target}", protocols=protocols, max_msg_size=0) as socket,
    ):
        yield socket


async def heard(socket: WebSocket) -> dict[int, bytes]:
    """What came on each channel, until the server closed."""
    found: dict[int, bytes] = defaultdict(bytes)
    async with asyncio.timeout(PATIENCE):
        async for message in socket:
            found[message.data[0]] += message.data[1:]
    return found


def code_of(status: bytes) -> int:
    """The exit code that a Status tells."""
    said: dict[str, Any] = json.loads(status)
    if said["status"] == "Success":
        return 0
    assert "NonZeroExitCode" == said["reason"], said
    return int(said["details"]["causes"][0]["message"])


class SpdyClient:
    """One session, from the client's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._in = spdy.Reader()
        self._out = spdy.Writer()
        self._next = 1
        self.protocol = ""

    def open(self, **headers: str) -> int:
        stream, self._next = self._next, self._next + 2
        self._writer.write(self._out.open(stream, headers))
        return stream

    def send(self, stream: int, data: bytes, *, fin: bool = False) -> None:
        self._writer.write(self._out.data(stream, data, fin=fin))

    def ping(self, number: int) -> None:
        self._writer.write(self._out.ping(number))

    async def frames(self) -> AsyncIterator[spdy.Frame]:
        async with asyncio.timeout(PATIENCE):
            while data := await self._reader.read(1 << 16):
                for frame in self._in.feed(data):
                    yield frame

    async def heard(self) -> tuple[dict[int, bytes], list[spdy.Frame]]:
        """What came on each stream, and what else did, until the server closed."""
        said: dict[int, bytes] = defaultdict(bytes)
        others: list[spdy.Frame] = []
        async for frame in self.frames():
            if isinstance(frame, spdy.Data):
                said[frame.stream] += frame.data
            else:
                others.append(frame)
        return said, others


@asynccontextmanager
async def spdy_client(path: Path, target: str, *protocols: str) -> AsyncIterator[SpdyClient]:
    async with address(path) as where:
        reader, writer = await asyncio.open_unix_connection(where)
        lines = [f"POST {target} HTTP/1.1", "Host: kubelet", "Connection: Upgrade", "Upgrade: SPDY/3.1",
                 *(f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols)]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 101 "), head
        client = SpdyClient(reader, writer)
        client.protocol = next(line.split()[1] for line in head.splitlines() if line.startswith("X-Stream"))
        try:
            yield client
        finally:
            writer.close()
