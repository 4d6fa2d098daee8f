"""Reads an asynchronous stream from plain code: its loop runs in a thread, and a bounded queue lies between them."""

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, suppress
from typing import Generic, TypeVar

T = TypeVar("T")

HELD = 256


def aside(stream: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
    """What the stream yields, and what it raises. Leaving early stops it."""
    reading: _Reading[T] = _Reading(stream)
    reading.thread.start()
    try:
        while True:
            item = reading.items.get()
            if isinstance(item, _End):
                if item.problem is not None:
                    raise item.problem
                return
            yield item
    finally:
        reading.stop()


class _End:
    def __init__(self, problem: BaseException | None) -> None:
        self.problem = problem


class _Reading(Generic[T]):
    def __init__(self, stream: Callable[[], AsyncGenerator[T, None]]) -> None:
        self.items: queue.Queue[T | _End] = queue.Queue(HELD)
        self.thread = threading.Thread(target=self._run, name="trainmaster-stream", daemon=True)
        self._stream = stream
        self._stopped = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self) -> None:
        self._stopped.set()
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):      # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
        self.thread.join(timeout=5)

    def _run(self) -> None:
        try:
            asyncio.run(self._read())
        except asyncio.CancelledError:
            return
        except BaseException as problem:  # noqa: BLE001  it is raised where the stream is read
            self._put(_End(problem))
        else:
            self._put(_End(None))

    async def _read(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stopped.is_set():
            return
        async with aclosing(self._stream()) as items:
            async for item in items:
                try:
                    self.items.put_nowait(item)
                except queue.Full:
                    await asyncio.to_thread(self._put, item)

    def _put(self, item: "T | _End") -> None:
        """Waits for room, but not for a reader who has gone."""
        while not self._stopped.is_set():
            with suppress(queue.Full):
                return self.items.put(item, timeout=0.2)
        return None
