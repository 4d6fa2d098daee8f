"""Looking on: a client at the streams that a container was started with."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import doorway
from trainmaster.cluster.kubelet.exec import caller_of
from trainmaster.cluster.kubelet.launcher import received
from trainmaster.cluster.kubelet.talk import SUCCESS

_MOST_PRINTED = 1 << 17
_ANSWER = 10.0


class Attached:
    """The container's side of a conversation, as `conversation.Partner`. Must be closed."""

    def __init__(self, shim: socket.socket) -> None:
        self._shim = shim
        self._over = asyncio.Event()

    def said(self) -> Sequence[AsyncIterator[tuple[int, bytes]]]:
        return [self._printed()]

    async def _printed(self) -> AsyncIterator[tuple[int, bytes]]:
        loop = asyncio.get_running_loop()
        try:
            while message := await loop.sock_recv(self._shim, _MOST_PRINTED):
                yield message[0], message[1:]
        except ConnectionError:
            return
        finally:
            self._over.set()

    async def typed(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        if not data:
            await loop.sock_sendall(self._shim, bytes([doorway.END]))
        for at in range(0, len(data), doorway.MOST_TYPED):
            await loop.sock_sendall(self._shim, bytes([doorway.STDIN]) + data[at:at + doorway.MOST_TYPED])

    def resized(self, columns: int, rows: int) -> None:
        try:
            self._shim.send(bytes([doorway.RESIZE]) + doorway.SIZE.pack(columns & 0xFFFF, rows & 0xFFFF))
        except OSError:
            return                         # it has ended, or does not read: then nobody looks at its window

    async def end(self) -> Object:
        await self._over.wait()
        return SUCCESS

    def close(self) -> None:
        self._shim.close()


async def attached(attempt: Path, *, stdin: bool) -> Attached:
    """Look on at the container whose attempt this is. Raises Failed."""
    shim = await caller_of(attempt, {"do": "attach", "stdin": stdin})
    try:
        await received(shim, 0, "attach to the container", patience=_ANSWER)
    except BaseException:
        shim.close()
        raise
    return Attached(shim)
