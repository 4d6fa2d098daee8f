"""An answer that goes on: what the server hands out for a watch or a log that is followed."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress


class Streaming:
    """A `kube.transport.Stream`. `finish` releases what feeds it and is safe to call more than once."""

    def __init__(self, status: int, headers: Mapping[str, str], body: AsyncGenerator[bytes, None],
                 finish: Callable[[], Awaitable[None]]) -> None:
        self.status = status
        self.headers = headers
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
