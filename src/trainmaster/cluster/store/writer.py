"""Takes batches from the loop to the disk and their outcome back, one at a time.

The loop hands over the next job only when it has heard of the last one, so no state is shared between the threads, what
a failed batch drags with it is decided in one place, and everything that came in while a commit ran is in the
next. Rejected: a thread that takes from a shared queue by itself; it may already be committing what a failure
should have stopped.
"""

import asyncio
import errno
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trainmaster.cluster.store.file import File
from trainmaster.cluster.store.pending import Transaction, Write, fitted, salvage


@dataclass(frozen=True, slots=True)
class Commit:
    batch: Sequence[Transaction]


@dataclass(frozen=True, slots=True)
class Forget:
    garbage: Sequence[int]
    oldest: int
    revision: int


Job = Commit | Forget


@dataclass(frozen=True, slots=True)
class Outcome:
    kept: Sequence[Transaction] = ()
    fallen: Sequence[Transaction] = ()
    lost: set[str] = field(default_factory=set)  # keys of the fallen
    reason: str = ""  # why something fell, could not be done, or went into the reserve
    low: bool = False  # the reserve is going to be used up: the past must make room


class Writer(Protocol):
    def submit(self, job: Job, done: Callable[[Outcome], None]) -> None:
        """Do the job elsewhere and call `done` in the loop. Never called again before `done` was."""

    async def close(self) -> None: ...


class Immediate:
    """Writes to nothing: a store in memory, whose writes still take effect only after a turn of the loop."""

    def submit(self, job: Job, done: Callable[[Outcome], None]) -> None:
        kept = job.batch if isinstance(job, Commit) else ()
        asyncio.get_running_loop().call_soon(done, Outcome(kept=kept))

    async def close(self) -> None:
        """Nothing to close."""


class Thread:
    """Writes to a file in a thread of its own."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._loop = asyncio.get_running_loop()
        # Bounded by the rule of `submit`: one job at most is under way.
        self._jobs: queue.SimpleQueue[tuple[Job, Callable[[Outcome], None]] | None] = queue.SimpleQueue()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        # A daemon: a process that ends without closing the store must end. The file is whole at every moment.
        threading.Thread(target=self._run, name="store-writer", daemon=True).start()

    def submit(self, job: Job, done: Callable[[Outcome], None]) -> None:
        self._jobs.put((job, done))

    async def close(self) -> None:
        self._jobs.put(None)
        await self._ended

    def _run(self) -> None:
        try:
            while (item := self._jobs.get()) is not None:
                job, done = item
                outcome = carry_out(job, self._file)
                self._loop.call_soon_threadsafe(done, outcome)
                self._tidy()
        except RuntimeError:  # the loop is gone, and with it everybody who waits
            self._close()
        else:
            self._close()
            self._loop.call_soon_threadsafe(self._ended.set_result, None)

    def _tidy(self) -> None:
        try:
            self._file.tidy()
        except (sqlite3.Error, OSError):
            return  # nothing is lost: the log has it, and the next commit says what is wrong

    def _close(self) -> None:
        try:
            self._file.close()
        except (sqlite3.Error, OSError):
            return  # the same: whatever was acknowledged is in the log


def carry_out(job: Job, file: File) -> Outcome:
    """Do the job. Whatever goes wrong is an outcome: the thread goes on, and those who wait hear of it."""
    try:
        match job:
            case Commit(batch):
                file.commit(_writes(batch), urgent=False)
                return Outcome(kept=batch)
            case Forget(garbage, oldest, revision):
                file.forget(garbage, oldest, revision)
                return Outcome()
    except Exception as error:  # noqa: BLE001 - this thread is the loop that owns the writes
        reason = sentence(error, file)
        return Outcome(reason=reason) if isinstance(job, Forget) else _second_try(job, file, reason)


def sentence(error: Exception, file: File) -> str:
    """Why a write is refused, for people."""
    full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"
    if full or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
        return f"No space left for {file.path}: only deletions are accepted until there is room again."
    return f"{file.path} cannot be written ({error}): writes are refused until it can be."


def _second_try(job: Commit, file: File, reason: str) -> Outcome:
    """What deletes goes into the reserve, as far as that goes."""
    lost: set[str] = set()
    kept, fallen = salvage(job.batch, lost)
    low = False
    if kept:
        try:
            file.make_room()
            fit = fitted(kept, file.room, file.pages, lost)
            if fit.writes:
                file.commit(fit.writes, urgent=True)
            kept, fallen, low = fit.kept, [*fallen, *fit.fallen], fit.bare
        except Exception:  # noqa: BLE001 - as above; the first reason is the one to tell
            fallen = list(job.batch)
            lost = {write.key for write in _writes(fallen)}
            kept = []
    return Outcome(kept, fallen, lost, reason, low or file.low)


def _writes(batch: Sequence[Transaction]) -> list[Write]:
    return [write for transaction in batch for write in transaction.writes]
