"""Room on the disk, taken before it is needed, so that a full disk never stops a deletion.

The file grows only here, in steps, and only as far as the disk really has the blocks. Ordinary writes then go into
pages the file already has, and may not touch the last `RESERVE` of them; deletions may. The log (WAL) is overwritten
from the start after each checkpoint, needs no new blocks either, and is carried over a restart.

Rejected: a file of zeros that is deleted when the disk is full. Whatever filled the disk, a training script that logs
too much for instance, takes what is freed at once, and then the pod that does it cannot even be deleted. On file
systems that never overwrite in place (btrfs, zfs) ours is no better than that.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

# Of a new file; an older one keeps its own. A pod has some 2.6 KB: alone in a page of 4 KB, one of three in this.
# Larger ones save nothing more, and a small change writes a whole page.
PAGE = 8192
# Pages by which the file grows. A step costs some flushes of the disk whatever its size, so the fewer the better: steps
# of 1 MiB took 15 ms each and made a young server 7 % slower. But a batch has to wait for it, and 8 MiB are 25 ms.
STEP = 1024
RESERVE = 128  # pages: a hundred deletions, one by one, before old rows must make room


class Reserve:
    """The unused pages of one database."""

    def __init__(self, db: sqlite3.Connection, fd: int) -> None:
        self._db = db
        self._fd = fd
        (self._page,) = db.execute("PRAGMA page_size").fetchone()
        self._free = 0  # at most this many were there when we last looked, minus what was written since
        with suppress(sqlite3.Error, OSError):  # then later: a full disk must not keep the store from opening
            self.drop_filler()
            self.ensure(0)

    def pages(self, size: int) -> int:
        """Those that a row of this size can cost at most."""
        return 2 + size // (int(self._page) - 100)

    def drop_filler(self) -> None:
        """Make free pages of a filler that was left by a crash, or a full disk, in the middle of growing."""
        if self._db.execute("SELECT count(*) FROM filler").fetchone() != (0,):
            self._db.execute("DELETE FROM filler")

    @property
    def low(self) -> bool:
        """Deletions will soon need old rows to be deleted first."""
        with suppress(sqlite3.Error):
            self._look()
        return self._free < RESERVE // 2

    def take(self, amount: int) -> None:
        """Count pages as used, wherever they come from. Never fails: what used them is durable."""
        self._free -= amount

    def look_again(self) -> None:
        """Pages became free: do not rely on the count."""
        self._free = 0

    def ensure(self, amount: int) -> None:
        """Have this many pages besides the reserve; grows the file if need be. OSError, sqlite3.Error: no room."""
        if self._free - amount >= RESERVE:
            return
        self._look()
        if self._free - amount < RESERVE:
            self._grow(amount)

    def _grow(self, amount: int) -> None:
        """Each flush of the disk keeps commits waiting, so only the checkpoints do one.

        A power failure before the flush of the next commit can bring the filler back, which `drop_filler` is for.
        """
        self._db.execute("PRAGMA synchronous = NORMAL")
        try:
            self._add_pages(amount)
        finally:
            self._db.execute("PRAGMA synchronous = FULL")

    def _add_pages(self, amount: int) -> None:
        checkpoint(self._db)
        (count,) = self._db.execute("PRAGMA page_count").fetchone()
        step = max(amount + RESERVE - self._free, STEP)
        # First the blocks: once the filler below is in the log, a checkpoint must never fail for want of them.
        os.posix_fallocate(self._fd, count * self._page, step * self._page)
        # The filler takes the free pages too, so that the rest of it has to be new ones.
        filler = (self._free + step - 2) * (self._page - 4)  # a page of a long value has a pointer to the next
        self._db.execute("INSERT INTO filler (content) VALUES (zeroblob(?))", (filler,))
        checkpoint(self._db)
        self.drop_filler()
        self._look()

    def _look(self) -> None:
        (self._free,) = self._db.execute("PRAGMA freelist_count").fetchone()


def checkpoint(db: sqlite3.Connection) -> None:
    """Copy the log into the file; the next write begins the log anew, in the blocks it already has."""
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def put_log_aside(path: Path) -> None:
    """SQLite deletes the log when it closes; a second name keeps its blocks ours."""
    aside = _aside(path)
    aside.unlink(missing_ok=True)
    with suppress(OSError):  # no log, or no second names here: then the next life starts without
        os.link(_log(path), aside)


def take_log_back(path: Path) -> None:
    """Give the log of the last life to the next. Its content is in the file already, so its header is wiped."""
    aside, log = _aside(path), _log(path)
    if not aside.exists():
        return
    if log.exists():  # the last life did not get to its end: its log counts
        aside.unlink()
        return
    fd = os.open(aside, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.pwrite(fd, bytes(32), 0)
        os.fsync(fd)
    finally:
        os.close(fd)
    aside.rename(log)
    # The new name must be durable before anything is written under it, or a power failure could give back the old one,
    # and the log would be wiped with acknowledged writes in it. SQLite does this only for a log it makes itself.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _aside(path: Path) -> Path:
    return path.with_name(path.name + "-reserve")
