"""The store itself: decides in the loop, lets a writer make it durable, shows it afterwards.

A write is decided on the newest state, including writes that are still on their way (`latest`), gets its revision at
once and is queued; readers and subscribers see it when it is durable. What was refused is taken back together with
everything built on it. A conflict with a write that is still on its way waits for its fate, so that nobody is
ever told of something that a crash could undo.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from trainmaster.cluster.store.compaction import Compaction
from trainmaster.cluster.store.file import File, Row
from trainmaster.cluster.store.history import Entry, History, Window
from trainmaster.cluster.store.objects import Objects, resource_of
from trainmaster.cluster.store.pending import Transaction, Write, salvage
from trainmaster.cluster.store.records import (
    Ahead,
    Change,
    Closed,
    Compacted,
    Create,
    Delete,
    Encode,
    Record,
    Refused,
    Stale,
    Step,
    Update,
)
from trainmaster.cluster.store.subscriptions import Subscription, Subscriptions
from trainmaster.cluster.store.writer import Commit, Forget, Immediate, Outcome, Thread, Writer
from trainmaster.runtime.log import logger

BATCH_WRITES = 64  # SQLite keeps a statement of some 30 KB for every number of rows
BATCH_BYTES = 4 << 20
TURNS = 3  # of the loop for which a batch waits at most, as long as each brings a write
STEPS = 500  # of a transaction
QUEUE_BYTES = 64 << 20  # beyond this a writer waits before it decides


log = logger("store")


class Store:
    """Use `Store.open`. Everything but the writer's own thread runs in one event loop."""

    def __init__(self, writer: Writer, *, revision: int, history: History, objects: Objects) -> None:
        self._writer = writer
        self._objects = objects
        self._history = history
        self._subscriptions = Subscriptions(history, revision)
        self._assigned = revision  # newest revision given to a write, whatever became of it
        self._pending: dict[str, Transaction] = {}  # with the newest undecided write of a key
        self._queue: deque[Transaction] = deque()
        self._queued = 0  # bytes
        self._compaction = Compaction()
        self._busy = False
        self._scheduled = False
        self._forgot = False  # the last job was to forget: writes go first
        self._turn: asyncio.Future[None] | None = None  # done at the end of the batch under way
        self._closing = False
        self.trouble = ""  # why the last write was refused, as a sentence; "" when the disk takes writes

    @classmethod
    def open(cls, path: Path | None, *, window: Window | None = None) -> "Store":
        """Open or make the file; None keeps everything in memory. Raises Newer, Damaged or Locked."""
        objects = Objects()
        if path is None:
            return cls(Immediate(), revision=1, history=History(0, window or Window()), objects=objects)
        file = File(path)
        try:
            contents = file.load()
            history = History(contents.oldest, window or Window())
            current, garbage = _replay(contents.rows, history)
        except BaseException:
            file.close()
            raise
        objects.fill(current)
        store = cls(Thread(file), revision=contents.revision, history=history, objects=objects)
        store._compaction.add([*garbage, *history.trim()])
        return store

    @property
    def revision(self) -> int:
        """Newest committed revision. An empty store is at 1, because clients give 0 a meaning of its own."""
        return self._subscriptions.revision

    @property
    def oldest(self) -> int:
        """Oldest revision that a watch can resume from and a list can be read at."""
        return self._history.oldest

    def get(self, key: str) -> Record | None:
        return self._objects.get(key)

    def latest(self, key: str) -> Record | None:
        """The newest state, be it durable or not: what a writer decides on, never what a reader is shown."""
        pending = self._pending.get(key)
        return self._objects.get(key) if pending is None else pending.after(key)

    async def durable(self, key: str) -> bool:
        """Wait until it is certain what becomes of the state that `latest` tells; whether it is durable then.

        For whoever refuses something because of that state: told too early, a refusal speaks of what nobody can read.
        """
        if (pending := self._pending.get(key)) is not None:
            try:
                await asyncio.shield(pending.done)
            except Refused:
                return False
        return True

    def scan(self, prefix: str, *, after: str = "", limit: int = 0, at: int = 0) -> list[Record]:
        """Committed objects whose keys begin with the prefix and come after `after`, in key order."""
        return self._objects.scan(prefix, after, limit, self._undone(prefix, at))

    def count(self, prefix: str, *, after: str = "", at: int = 0) -> int:
        return self._objects.count(prefix, after, self._undone(prefix, at))

    async def create(self, key: str, encode: Encode) -> Record:
        return (await self.transact(Create(key, encode)))[0]

    async def update(self, key: str, encode: Encode, expected: int, *, urgent: bool = False) -> Record:
        """Replace what is at revision `expected`. `urgent`: part of a deletion, goes on when the disk is full."""
        return (await self.transact(Update(key, encode, expected, urgent)))[0]

    async def delete(self, key: str, expected: int, encode: Encode | None = None) -> Record:
        """Delete what is at revision `expected`. Returns its last state, at the revision of the deletion."""
        return (await self.transact(Delete(key, expected, encode)))[0]

    async def transact(self, *steps: Step) -> list[Record]:
        """Do all of the steps, on different keys, or none. Each gets a revision of its own.

        Raises Stale (somebody was faster) or Refused (the disk). Cancelling the caller does not take the write back.
        """
        while True:
            if self._closing:
                raise Closed
            writes = self._decide(steps) if self._queued < QUEUE_BYTES else None
            if writes is not None:
                break
            await self._end_of_batch()
        transaction = Transaction(writes, all(map(_is_urgent, steps)), asyncio.get_running_loop().create_future())
        self._assigned = writes[-1].revision
        self._pending.update((write.key, transaction) for write in writes)
        self._queue.append(transaction)
        self._queued += transaction.size
        self._schedule()
        await transaction.done
        return [write.record for write in writes]

    def subscribe(self, prefix: str, after: int) -> Subscription:
        """Changes below the prefix with a revision > `after`, in order, none missed. Raises Compacted or Ahead."""
        self._check(after)
        return self._subscriptions.add(prefix, after)

    async def compact(self, before: int) -> None:
        """Forget changes up to and including revision `before`; returns when they are gone from the disk too."""
        if self._closing:
            raise Closed
        self._compaction.add(self._history.forget(min(before, self.revision)))
        done = self._compaction.wait()
        self._schedule()
        await done

    async def close(self) -> None:
        """Finish what was begun, refuse what comes, end all subscriptions."""
        self._closing = True
        while self._busy or self._queue or self._compaction.waited_for:
            await self._end_of_batch()
        self._subscriptions.close()
        await self._writer.close()

    def _decide(self, steps: Sequence[Step]) -> tuple[Write, ...] | None:
        """The writes that the steps mean, or None if the fate of an earlier write must be known first."""
        if len(steps) != 1 and not 0 < len({step.key for step in steps}) == len(steps) <= STEPS:
            raise ValueError(f"a transaction has 1 to {STEPS} steps and each is on a key of its own")
        for step in steps:
            if not _fits(step, self.latest(step.key)):
                committed = self._objects.get(step.key)
                if step.key not in self._pending or not _fits(step, committed):
                    raise Stale(step.key, committed)
                return None
        return tuple(self._write(step, revision) for revision, step in enumerate(steps, start=self._assigned + 1))

    def _write(self, step: Step, revision: int) -> Write:
        before = self.latest(step.key)
        if isinstance(step, Delete):
            final = None if step.encode is None else _compact(step.encode(revision))
            return Write(step.key, revision, before, None, final)
        if not resource_of(step.key):
            raise ValueError(f"{step.key!r} is not a key: expected /<group>/<plural>/...")
        created = revision if before is None else before.created
        return Write(step.key, revision, before, Record(step.key, _compact(step.encode(revision)), revision, created))

    def _schedule(self) -> None:
        """Start a job when a turn of the loop has brought no write, so that all of a burst share it.

        Also for the sake of the writer's thread: while the loop computes it waits for the interpreter.
        """
        if not self._busy and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._settle, self._assigned, TURNS)

    def _settle(self, assigned: int, turns: int) -> None:
        if turns and assigned != self._assigned:
            asyncio.get_running_loop().call_soon(self._settle, self._assigned, turns - 1)
        else:
            self._start()

    def _start(self) -> None:
        self._scheduled = False
        if self._busy:
            return
        if self._compaction.due and not (self._queue and self._forgot):  # the two take turns
            self._busy = self._forgot = True
            garbage = self._compaction.take(in_need=bool(self.trouble))
            job = Forget(garbage, self.oldest, self.revision)
            self._writer.submit(job, lambda outcome: self._forgotten(garbage, outcome))
        elif self._queue:
            self._busy, self._forgot = True, False
            self._writer.submit(Commit(self._next_batch()), self._committed)

    def _next_batch(self) -> list[Transaction]:
        batch: list[Transaction] = []
        count = size = 0
        while self._queue and (not batch or (count < BATCH_WRITES and size < BATCH_BYTES)):
            transaction = self._queue.popleft()
            batch.append(transaction)
            count += len(transaction.writes)
            size += transaction.size
        self._queued -= size
        return batch

    def _committed(self, outcome: Outcome) -> None:
        if outcome.reason and not self.trouble:
            log.warning("the disk refuses writes", reason=outcome.reason)
        elif self.trouble and not outcome.reason:
            log.info("the disk takes writes again")
        self.trouble = outcome.reason
        self._show(outcome.kept)
        if outcome.fallen:
            self._take_back(outcome)
        if outcome.low:
            self._make_room()
        self._finish_turn()

    def _show(self, kept: Sequence[Transaction]) -> None:
        """Make durable writes visible, then wake those who wait for them."""
        if not kept:
            return
        changes: list[Change] = []
        for transaction in kept:
            for write in transaction.writes:
                if write.after is None:
                    self._objects.remove(write.key)
                else:
                    self._objects.put(write.after)
                changes.append(write.change)
                self._history.add(Entry(changes[-1], write.before))
                if self._pending.get(write.key) is transaction:
                    del self._pending[write.key]
        self._subscriptions.publish(changes, changes[-1].revision)
        self._compaction.add(self._history.trim())
        for transaction in kept:
            if not transaction.done.done():
                transaction.done.set_result(None)

    def _take_back(self, outcome: Outcome) -> None:
        """Refuse what fell and everything queued behind it, except what deletes and was not built on it."""
        kept, fallen = salvage(self._queue, outcome.lost)
        self._queue = deque(kept)
        self._queued = sum(transaction.size for transaction in kept)
        self._pending = {write.key: transaction for transaction in kept for write in transaction.writes}
        for transaction in (*outcome.fallen, *fallen):
            if not transaction.done.done():
                transaction.done.set_exception(Refused(outcome.reason))

    def _make_room(self) -> None:
        """Give up the history for the sake of deletions: who still needs it must list again."""
        self._compaction.add(self._history.forget(self.revision))
        self._compaction.hurry()

    def _forgotten(self, garbage: Sequence[int], outcome: Outcome) -> None:
        if outcome.reason:
            self._compaction.failed(garbage, outcome.reason)
        else:
            self._compaction.deleted(in_need=bool(self.trouble))
        self._finish_turn()

    def _finish_turn(self) -> None:
        self._busy = False
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.set_result(None)
        if self._queue:
            self._start()  # at once: what came in during the last job is a batch already
        elif self._compaction.due:
            self._schedule()

    async def _end_of_batch(self) -> None:
        if self._turn is None:
            self._turn = asyncio.get_running_loop().create_future()
        self._schedule()
        await asyncio.shield(self._turn)

    def _undone(self, prefix: str, at: int) -> dict[str, Record | None]:
        if not at:
            return {}
        self._check(at)
        return self._history.undo(prefix, at)

    def _check(self, revision: int) -> None:
        if revision < self.oldest:
            raise Compacted(revision, self.oldest)
        if revision > self.revision:
            raise Ahead(revision, self.revision)


def _compact(value: bytes) -> bytes:
    """The same bytes in as much memory as they need: an encoder may leave a buffer three times as large behind them."""
    return memoryview(value).tobytes()


def _fits(step: Step, record: Record | None) -> bool:
    if isinstance(step, Create):
        return record is None
    return record is not None and record.revision == step.expected


def _is_urgent(step: Step) -> bool:
    return isinstance(step, Delete) or (isinstance(step, Update) and step.urgent)


def _replay(rows: Iterable[Row], history: History) -> tuple[Iterable[Record], list[int]]:
    """The current objects and the rows that are garbage; changes that the history should have are added to it."""
    current: dict[str, Record] = {}
    garbage: list[int] = []
    for row in rows:
        before = current.pop(row.key, None)
        after = None if row.gone or row.value is None else Record(row.key, row.value, row.revision, row.created)
        if after is not None:
            current[row.key] = after
        if before is None and after is None:
            garbage.append(row.revision)  # the rest of a deletion that was half forgotten
            continue
        entry = Entry(Write(row.key, row.revision, before, after, row.value if row.gone else None).change, before)
        if row.revision > history.oldest:
            history.add(entry)
        else:
            garbage += entry.garbage
    return current.values(), garbage
