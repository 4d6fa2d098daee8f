"""A watch on a WebSocket, as Java clients ask for it: each event is one text message, and nothing else is different.
A log on a WebSocket, as browsers do: its pieces as they come.

What the server hands out is the same stream of lines that HTTP sends in chunks; the frames are aiohttp's work.
"""

import asyncio
import base64
from collections.abc import Mapping
from contextlib import suppress

from aiohttp import WSMsgType, web

from trainmaster.cluster.apiserver.streaming import Streaming

# Seconds between questions whether the other side is still there; a client has nothing to say but its answers.
ASK_EVERY = 30.0
MOST_HEARD = 4096
PLAIN = "text/plain"
BINARY, BASE64 = "binary.k8s.io", "base64.binary.k8s.io"


def wanted(headers: Mapping[str, str], stream: Streaming) -> bool:
    """Whether this stream is a watch or a log and was asked for as a WebSocket."""
    upgrade = "upgrade" in (part.strip() for part in headers.get("connection", "").lower().split(","))
    told = stream.tempo is not None or (stream.status == 200 and stream.headers.get("Content-Type") == PLAIN)
    return upgrade and headers.get("upgrade", "").lower() == "websocket" and told


async def sent(incoming: web.BaseRequest, stream: Streaming, patience: float) -> web.StreamResponse:
    """Send the stream to its end, or until the client goes or does not read for `patience` seconds."""
    socket = web.WebSocketResponse(protocols=() if stream.tempo is not None else (BINARY, BASE64),
                                   heartbeat=ASK_EVERY, compress=False, max_msg_size=MOST_HEARD)
    heard: asyncio.Task[None] | None = None
    try:
        await socket.prepare(incoming)
        heard = asyncio.ensure_future(_heard(socket, stream))
        async for chunk in stream.chunks():
            async with asyncio.timeout(patience):
                await _send(socket, stream, chunk)
        with suppress(ConnectionError):
            await socket.close()
    except (ConnectionError, TimeoutError):
        if incoming.transport is not None:
            incoming.transport.abort()
    finally:
        await stream.close()
        if heard is not None:
            heard.cancel()
            await asyncio.wait([heard])
    return socket


async def _send(socket: web.WebSocketResponse, stream: Streaming, chunk: bytes) -> None:
    if stream.tempo is not None:
        for line in chunk.splitlines():
            await socket.send_str(line.decode())
    elif socket.ws_protocol == BASE64:
        await socket.send_str(base64.b64encode(chunk).decode())
    else:
        await socket.send_bytes(chunk)


async def _heard(socket: web.WebSocketResponse, stream: Streaming) -> None:
    """Listen, because only who listens learns that the client is gone."""
    while (await socket.receive()).type not in {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR}:
        pass
    await stream.close()
