"""Takes batches from the loop to the disk and their outcome back, one at a time.

The loop hands over the next job only when it has heard of the last one, so no state is shared between the threads, what
a failed batch drags with it is decided in one place, and everything that came in while a commit ran is in the
next. Rejected: a thread that takes from a shared queue by itself; it may already be committing what a failure
should have stopped.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trainmaster.cluster.store.file import File
from trainmaster.cluster.store.pending import Transaction, salvage


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
    reason: str = ""  # why something fell or could not be done


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
        self._jobs: queue.SimpleQueue[tuple[Job, Callable[[Outcome], None]] | None] = queue.SimpleQueue()
        self._ended = self._loop.create_future()
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
                self._loop.call_soon_threadsafe(done, carry_out(job, self._file))
                self._tidy()
            self._file.close()
            self._loop.call_soon_threadsafe(self._ended.set_result, None)
        except RuntimeError:  # the loop is gone, and with it everybody who waits
            self._file.close()

    def _tidy(self) -> None:
        try:
            self._file.tidy()
        except (sqlite3.Error, OSError):
            return  # nothing is lost: the log still has it, and the next commit says what is wrong


def carry_out(job: Job, file: File) -> Outcome:
    """Do the job. A disk that refuses is an outcome, not an error."""
    try:
        match job:
            case Commit(batch):
                file.commit([write for transaction in batch for write in transaction.writes])
                return Outcome(kept=batch)
            case Forget(garbage, oldest, revision):
                file.forget(garbage, oldest, revision)
                return Outcome()
    except (sqlite3.Error, OSError) as error:
        reason = sentence(error, file)
        if isinstance(job, Forget):
            return Outcome(reason=reason)
        return _second_try(job, file, reason)


def sentence(error: sqlite3.Error | OSError, file: File) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return f"No space left for {file.path}: new objects and changes are refused until there is, deletions go on."
    return f"{file.path} cannot be written ({error}): writes are refused until it can."


def _second_try(job: Commit, file: File, reason: str) -> Outcome:
    """What deletes may still fit."""
    lost: set[str] = set()
    kept, fallen = salvage(job.batch, lost)
    if kept:
        try:
            file.commit([write for transaction in kept for write in transaction.writes])
        except (sqlite3.Error, OSError):
            fallen = list(job.batch)
            lost = {write.key for transaction in fallen for write in transaction.writes}
            kept = []
    return Outcome(kept, fallen, lost, reason)
