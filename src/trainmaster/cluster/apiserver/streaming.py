"""An answer that comes in pieces: what the server hands out for a watch, a log that is followed, a long list."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass


@dataclass(slots=True)
class Tempo:
    """How fast the reader of a stream wants to be told, set by the transport: `rest` is awaited before each piece is
    put together, so that what happens meanwhile is in the same piece. Without one, at once."""

    rest: Callable[[], Awaitable[None]] | None = None


class Streaming:
    """A `kube.transport.Stream`. `finish` releases what feeds it and is safe to call more than once.

    `tempo` is there when the pieces can be made larger by waiting a little: those of a watch.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: AsyncGenerator[bytes, None],
                 finish: Callable[[], Awaitable[None]], tempo: Tempo | None = None) -> None:
        self.status = status
        self.headers = headers
        self.tempo = tempo
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
