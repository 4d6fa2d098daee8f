"""A conversation on a WebSocket: each message has a number in front that says which stream it belongs to.

The versions differ little. Since v4 the end is told as a Status, since v5 a client can say that one stream is over, and
two of them write everything as text for browsers that could not do otherwise.
"""

import base64
import binascii
import contextlib
from collections.abc import AsyncIterator

import orjson
from aiohttp import WSMessage, WSMsgType, web

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.talk import ERROR, RESIZE, STDIN, Gone, Heard, Typed, size

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
BASE64_V4 = "v4.base64.channel.k8s.io"
PROTOCOLS = (V5, V4, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io", BASE64_V4, "base64.channel.k8s.io")
_WITH_STATUS = frozenset({V5, V4, BASE64_V4})
_CLOSE = 255
# kubectl sends 32 KiB at once.
MOST_HEARD = 1 << 22
ASK_EVERY = 30.0


def upgrade(protocols: tuple[str, ...]) -> web.WebSocketResponse:
    """A WebSocket that is yet to be prepared."""
    return web.WebSocketResponse(protocols=protocols, heartbeat=ASK_EVERY, compress=False, max_msg_size=MOST_HEARD)


class Channels:
    """A client on a WebSocket, as `talk.Talk`."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._protocol = socket.ws_protocol or ""
        self._text = "base64" in self._protocol

    async def heard(self) -> AsyncIterator[Heard]:
        async for message in self._socket:
            channel, data = self.decoded(message)
            if channel == STDIN:
                if data:               # an empty message is no end: browsers send some as they begin
                    yield Typed(data)
            elif channel == RESIZE:
                if (found := size(data)) is not None:
                    yield found
            elif channel == _CLOSE and self._protocol == V5 and data[:1] == bytes([STDIN]):
                yield Typed(b"")

    def decoded(self, message: WSMessage) -> tuple[int, bytes]:
        """The channel and the content of a message. Raises Gone for what is none."""
        if self._text and message.type is WSMsgType.TEXT:
            try:
                return int(message.data[:1] or "0"), base64.b64decode(message.data[1:], validate=True)
            except (ValueError, binascii.Error) as error:
                raise Gone("a message that is not base64") from error
        raw = message.data.encode() if message.type is WSMsgType.TEXT else bytes(message.data)
        return (raw[0], raw[1:]) if raw else (STDIN, b"")

    async def say(self, stream: int, data: bytes) -> None:
        if self._text:
            await self._socket.send_str(f"{stream}{base64.b64encode(data).decode()}")
        else:
            await self._socket.send_bytes(bytes([stream]) + data)

    async def end(self, status: Object) -> None:
        if self._protocol in _WITH_STATUS:
            await self.say(ERROR, orjson.dumps(status))
        elif status.get("status") != "Success":
            await self.say(ERROR, str(status.get("message", "")).encode())
        await self._socket.close()

    async def close(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._socket.close()
