"""A client and a process in a container, brought together until one of them has had enough."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import descriptors
from trainmaster.cluster.kubelet.exec import LAST_WORDS, Running
from trainmaster.cluster.kubelet.talk import STDERR, STDOUT, Asked, Talk, Typed, exited

# Seconds in which a client must take the last of it.
_PATIENCE = 30.0


class Partner(Protocol):
    """The process's side."""

    def said(self) -> Sequence[AsyncIterator[tuple[int, bytes]]]:
        """What it prints, with the stream; each of these is read beside the others."""
        ...

    async def typed(self, data: bytes) -> None:
        """Something for its input; nothing: the end of that. Raises OSError when it takes no more."""
        ...

    def resized(self, columns: int, rows: int) -> None: ...

    async def end(self) -> Object:
        """Return when it has ended, with what to tell the client."""
        ...


class Command:
    """A command that was started for the client."""

    def __init__(self, running: Running, argv: Sequence[str]) -> None:
        self._running = running
        self._argv = argv

    def said(self) -> Sequence[AsyncIterator[tuple[int, bytes]]]:
        streams = ((STDOUT, self._running.stdout), (STDERR, self._running.stderr))
        return [_pieces(stream, fd) for stream, fd in streams if fd >= 0]

    async def typed(self, data: bytes) -> None:
        if not data:
            self._running.close_stdin()
        elif self._running.stdin >= 0:
            await descriptors.write(self._running.stdin, data)

    def resized(self, columns: int, rows: int) -> None:
        self._running.resize(columns, rows)

    async def end(self) -> Object:
        return exited(self._argv, await self._running.end())


async def converse(talk: Talk, partner: Partner, asked: Asked) -> None:
    """Pass on what each says to the other, until the process has ended or the client is gone."""
    telling = [asyncio.create_task(_tell(talk, source, asked)) for source in partner.said()]
    listening = asyncio.create_task(_listen(talk, partner))
    ending = asyncio.create_task(partner.end())
    try:
        waiting: set[asyncio.Task[None] | asyncio.Task[Object]] = {listening, ending, *telling}
        while not ending.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if listening in done or any(task.exception() is not None for task in done):
                return                     # the client is gone
        await _finish(telling)
        async with asyncio.timeout(_PATIENCE):
            await talk.end(ending.result())
    except (ConnectionError, TimeoutError):
        return
    finally:
        tasks = [*telling, listening, ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _finish(telling: Sequence["asyncio.Task[None]"]) -> None:
    """What was printed before the end is told; what somebody left behind may still print is not waited for long."""
    if telling:
        await asyncio.wait(telling, timeout=LAST_WORDS)


async def _tell(talk: Talk, source: AsyncIterator[tuple[int, bytes]], asked: Asked) -> None:
    async for stream, data in source:
        if asked.stdout if stream == STDOUT else asked.stderr:
            await talk.say(stream, data)


async def _listen(talk: Talk, partner: Partner) -> None:
    """Returns when the client is gone. A command that takes no more input may still have something to say."""
    deaf = False
    with contextlib.suppress(ConnectionError):
        async for heard in talk.heard():
            if not isinstance(heard, Typed):
                partner.resized(heard.columns, heard.rows)
            elif not deaf:
                try:
                    await partner.typed(heard.data)
                except OSError:
                    deaf = True


async def _pieces(stream: int, fd: int) -> AsyncIterator[tuple[int, bytes]]:
    while data := await descriptors.read(fd):
        yield stream, data
