"""An answer that comes in pieces: what the server hands out for a watch, a log that is followed, a long list."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass


@dataclass(slots=True)
class Tempo:
    """How fast the reader of a stream wants to be told, set by the transport: `rest` is awaited before each piece is
    put together, so that what happens meanwhile is in the same piece. Without one, at once."""

    rest: Callable[[], Awaitable[None]] | None = None


class Streaming:
    """A `kube.transport.Stream`. `finish` releases what feeds it and is safe to call more than once.

    `tempo` is there when the pieces can be made larger by waiting a little: those of a watch. `ends`: all of it is
    there and only on its way, as with a list; `length` is then how many bytes it has, if that is known.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: AsyncGenerator[bytes, None],
                 finish: Callable[[], Awaitable[None]], tempo: Tempo | None = None, *, ends: bool = False,
                 length: int | None = None) -> None:
        self.status = status
        self.headers = headers
        self.tempo = tempo
        self.ends = ends
        self.length = length
        self._body = body
        self._finish = finish

    def chunks(self) -> AsyncIterator[bytes]:
        return self._body

    async def close(self) -> None:
        # First the source, so that a reader that waits in another task is woken; a generator that never ran cannot
        # release anything itself.
        await self._finish()
        with suppress(RuntimeError):          # somebody is reading it right now: it ends by itself
            await self._body.aclose()


def in_pieces(status: int, headers: Mapping[str, str], begun: list[bytes], rest: Iterable[bytes],
              length: int | None = None) -> Streaming:
    """An answer whose end is made while its beginning is read, with a turn for others after each piece."""

    async def body() -> AsyncGenerator[bytes, None]:
        yield b"".join(begun)
        begun.clear()
        for piece in rest:
            await asyncio.sleep(0)
            yield piece

    async def finish() -> None:
        """Nothing feeds it but what it holds."""

    return Streaming(status, headers, body(), finish, ends=True, length=length)
