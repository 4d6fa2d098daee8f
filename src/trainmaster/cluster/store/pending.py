"""Writes that are decided but not yet durable, and what becomes of them when the disk refuses a batch. Pure."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from trainmaster.cluster.store.records import Change, Record


@dataclass(frozen=True, slots=True)
class Write:
    """One key from one state to the next."""

    key: str
    revision: int
    before: Record | None
    after: Record | None  # None: deleted
    final: bytes | None = None  # of a deletion: what watchers see

    @property
    def size(self) -> int:
        value = self.after.value if self.after else self.final
        return len(self.key) + (len(value) if value else 0)

    @property
    def bare(self) -> "Write":
        """A deletion without what watchers see of it, which is most of what it has to write."""
        return self if self.final is None else replace(self, final=None)

    @property
    def record(self) -> Record:
        """What the writer is answered: the new state, or the last one of what was deleted."""
        if self.after is not None:
            return self.after
        assert self.before is not None, "what did not exist cannot be deleted"
        value = self.before.value if self.final is None else self.final
        return Record(self.key, value, self.revision, self.before.created)

    @property
    def change(self) -> Change:
        if self.after is None:
            return Change(self.revision, self.key, None, self.record.value)
        return Change(self.revision, self.key, self.after.value, self.before.value if self.before else None)


@dataclass(frozen=True, slots=True, eq=False)
class Transaction:
    """Writes that become durable together or not at all, and who waits for them."""

    writes: tuple[Write, ...]
    urgent: bool  # deletes, or is part of a deletion: may use the reserve of a full disk
    done: asyncio.Future[None]

    @property
    def size(self) -> int:
        return self.writes[0].size if len(self.writes) == 1 else sum(write.size for write in self.writes)

    def after(self, key: str) -> Record | None:
        """What becomes of one of its keys."""
        if len(self.writes) == 1:  # nearly always
            return self.writes[0].after
        return next(write.after for write in self.writes if write.key == key)


def salvage(transactions: Iterable[Transaction], lost: set[str]) -> tuple[list[Transaction], list[Transaction]]:
    """Which of the transactions may be tried once more after the disk refused, and which fall with it.

    Only what deletes is tried again, and only where nothing it was built on fell: `lost` holds the keys of fallen
    writes and grows as more of them fall.
    """
    kept: list[Transaction] = []
    fallen: list[Transaction] = []
    for transaction in transactions:
        keys = {write.key for write in transaction.writes}
        if transaction.urgent and not keys & lost:
            kept.append(transaction)
        else:
            lost |= keys
            fallen.append(transaction)
    return kept, fallen


@dataclass(frozen=True, slots=True)
class Fit:
    """What of a batch goes into the room there is."""

    kept: list[Transaction]
    fallen: list[Transaction]
    writes: list[Write]  # of the kept, as they are to be written
    bare: bool  # not as they are to be seen: whoever watches the past must list again


def fitted(transactions: Sequence[Transaction], room: int, pages: Callable[[int], int], lost: set[str]) -> Fit:
    """All of them as they are, or as many as possible without what watchers see of deletions.

    What goes beyond the room would keep the log from ever beginning anew, and then nothing could be deleted any more.
    """
    whole = [write for transaction in transactions for write in transaction.writes]
    if sum(pages(write.size) for write in whole) <= room:
        return Fit(list(transactions), [], whole, bare=False)
    fit = Fit([], [], [], bare=True)
    for transaction in transactions:
        keys = {write.key for write in transaction.writes}
        writes = [write.bare for write in transaction.writes]
        need = sum(pages(write.size) for write in writes)
        if need <= room and not keys & lost:
            room -= need
            fit.kept.append(transaction)
            fit.writes.extend(writes)
        else:
            lost |= keys
            fit.fallen.append(transaction)
    return fit
