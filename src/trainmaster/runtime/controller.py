"""Workers around a reconcile function: failures contained, delays kept, a bounded number at once.

A key that fails is tried again later while the others go on. What failed is said once per episode, not once per try.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Generic, TypeVar

from trainmaster.kube.errors import ApiError, Conflict, Forbidden, Invalid, is_transient
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger
from trainmaster.runtime.workqueue import Onlooker, Workqueue

K = TypeVar("K", bound=Hashable)

log = logger("controller")


class Controller(Generic[K]):
    """Calls `reconcile` for the keys of its queue; the moment it returns is when it wants to look again."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[datetime | None]],
        *,
        clock: Clock,
        workers: int = 4,
        informers: Sequence[Informer] = (),
        onlooker: Onlooker | None = None,
    ) -> None:
        self.name = name
        self.queue: Workqueue[K] = Workqueue(clock, onlooker)
        self._reconcile = reconcile
        self._workers = workers
        self._informers = informers
        self._failing: dict[K, str] = {}    # what was last said about a key that fails
        self._idle: set[asyncio.Task[Any]] = set()
        self._stopping = False

    async def run(self) -> None:
        """Work as soon as the local copies are complete, until cancelled (at once) or stopped (after those in hand)."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    def stop(self) -> None:
        """Take no further key; `run` returns when those in hand are done."""
        self._stopping = True
        for worker in self._idle:
            worker.cancel()

    async def _work(self) -> None:
        async with self._may_be_stopped():
            for informer in self._informers:
                await informer.synced()
        while not self._stopping:
            async with self._may_be_stopped():
                key = await self.queue.get()
            try:
                await self._once(key)
            finally:
                self.queue.done(key)
            await asyncio.sleep(0)    # neither a full queue nor a reconcile in memory waits for anything; others do

    @asynccontextmanager
    async def _may_be_stopped(self) -> AsyncIterator[None]:
        me = asyncio.current_task()
        assert me is not None
        self._idle.add(me)
        try:
            yield
        finally:
            self._idle.discard(me)

    async def _once(self, key: K) -> None:
        try:
            moment = await self._reconcile(key)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._failed(key, error)    # something inside was cancelled, not we
        except Exception as error:  # noqa: BLE001  this loop owns the task; one key must not stop the others
            self._failed(key, error)
        else:
            self._succeeded(key, moment)

    def _succeeded(self, key: K, moment: datetime | None) -> None:
        if self._failing.pop(key, None) is not None:
            log.info("works again", controller=self.name, key=key, attempts=self.queue.attempts(key))
        self.queue.forget(key)
        if moment is not None:
            self.queue.add_at(key, moment)

    def _failed(self, key: K, error: BaseException) -> None:
        cause = f"{type(error).__name__}: {error}"
        fields = {"controller": self.name, "key": key, "attempt": self.queue.attempts(key) + 1, "cause": cause}
        # A conflict is the ordinary way to learn of somebody else's write, and over with the next look.
        if isinstance(error, Conflict) or self._failing.get(key) == cause:
            log.debug("failed again", **fields)
        else:
            self._failing[key] = cause
            # What is forbidden or invalid is somebody's will, of a quota or a template, say. The server's words tell
            # what it is about; where it was asked for would tell no more.
            if is_transient(error) or isinstance(error, Forbidden | Invalid):
                log.warning("failed, will be tried again", **fields)
            else:
                log.exception("failed, will be tried again", **fields)  # noqa: LOG004  called while it is handled
        self.queue.retry(key, (error.retry_after or 0.0) if isinstance(error, ApiError) else 0.0)
