"""Room on the disk, taken before it is needed, so that a full disk never stops a deletion.

Before SQLite gives the database more pages, the file has the blocks for them: a checkpoint that failed for want of them
would keep the log from beginning anew, and then nothing could be written any more, not even a deletion. Taking blocks
costs a tenth of a millisecond, since nothing is written into them. Each checkpoint cuts off those that became no pages,
so they are taken anew after it.

Deletions have pages of their own: a row of zeros in `filler`, which becomes free pages when the disk is full and is put
back when there is room. The log (WAL) is overwritten from the start after each checkpoint, has its blocks from the
start, and is carried over a restart.

Rejected: a file of zeros that is deleted when the disk is full. Whatever filled the disk, a training script that logs
too much for instance, takes what is freed at once, and then the pod that does it cannot even be deleted. On file
systems that never overwrite in place (btrfs, zfs) ours is no better than that. Rejected too: to make all new room pages
of the database at once, which writes each of them twice and kept commits waiting for up to 100 ms for each 8 MiB.
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

# Of a new file; an older one keeps its own. A pod has some 5.2 KB, with the records of its owners: 5.5 KB of the file
# in pages of this size, alone in a page with 8 KB. And a small change writes a whole page.
PAGE = 4096
# The rest is in bytes, whatever the pages.
LOG = 8 << 20  # the log is copied into the file before it has more than this and a batch
STEP = LOG + (1 << 20)  # taken from the disk at once: lasts from one checkpoint to the next
HELD = 2 << 20  # for deletions: more than the largest object takes, and hundreds of small ones


class Reserve:
    """The unused pages of one database."""

    def __init__(self, db: sqlite3.Connection, fd: int) -> None:
        self._db = db
        self._fd = fd
        self._page: int = db.execute("PRAGMA page_size").fetchone()[0]
        self._held: int = HELD // self._page  # pages
        self._whole = False  # the filler is there
        self._room: int = 0  # at most this many were there when we last looked, minus what was written since
        with suppress(sqlite3.Error, OSError):  # then later: a full disk must not keep the store from opening
            self._fill_holes()
            self._find_filler()
            self.ensure(0)

    def pages(self, size: int) -> int:
        """Those that a row of this size can cost at most."""
        return 2 + size // (self._page - 100)

    @property
    def low(self) -> bool:
        """The next deletion may need old rows to be deleted first: an update can be part of it, of 1.5 MiB even."""
        if self._whole:
            return False
        with suppress(sqlite3.Error):
            self._look()
        return self._room < self._held * 7 // 8

    def room(self) -> int:
        """Pages that the database can use without a new block, what was held for deletions included."""
        self._look()
        return self._room

    def take(self, amount: int) -> None:
        """Count pages as used, wherever they come from. Never fails: what used them is durable."""
        self._room -= amount

    def look_again(self) -> None:
        """Pages became free, or blocks are cut off: do not rely on the count."""
        self._room = 0

    def ensure(self, amount: int) -> None:
        """Have this many pages besides those held for deletions. OSError, sqlite3.Error: no room."""
        if self._whole and self._room >= amount:
            return
        need = amount if self._whole else amount + self._held
        if not self._whole:
            self.release()  # what could not be when it should have been
        free, count = self._look()
        if self._room < need:
            self._take_blocks(count, (need - free) * self._page)
            self._look()
        if not self._whole:
            self._hold()

    def prepare(self) -> None:
        """After a checkpoint: have what is written until the next one, if the disk has it."""
        self._room = 0
        with suppress(sqlite3.Error, OSError):  # the next commit says what is wrong
            self.ensure(STEP // self._page)

    def release(self) -> None:
        """Make free pages of what is held. Needs none."""
        if self._db.execute("SELECT count(*) FROM filler").fetchone() != (0,):
            self._db.execute("DELETE FROM filler")
        self._whole = False
        self._room = 0

    def _take_blocks(self, count: int, size: int) -> None:
        """A step of them if the disk has it, else what is needed."""
        try:
            os.posix_fallocate(self._fd, count * self._page, max(size, STEP))
        except OSError:
            if size >= STEP:
                raise
            os.posix_fallocate(self._fd, count * self._page, size)

    def _hold(self) -> None:
        self._db.execute("INSERT INTO filler (content) VALUES (zeroblob(?))", (self._filler,))
        self._whole = True
        self._room -= self._held

    def _fill_holes(self) -> None:
        """A copy of the file may have none of the blocks that were only reserved."""
        found = os.fstat(self._fd)
        if found.st_blocks * 512 < found.st_size:
            os.posix_fallocate(self._fd, 0, found.st_size)

    def _find_filler(self) -> None:
        """That of the last life; any other, of an earlier version for instance, makes place for it."""
        sizes = self._db.execute("SELECT length(content) FROM filler").fetchall()
        if sizes == [(self._filler,)]:
            self._whole = True
        elif sizes:
            self.release()

    @property
    def _filler(self) -> int:
        return (self._held - 2) * (self._page - 4)  # a page of a long value has a pointer to the next

    def _look(self) -> tuple[int, int]:
        """Those that are free, and all that the database has. What the file has beyond them is room as well."""
        free: int = self._db.execute("PRAGMA freelist_count").fetchone()[0]
        count: int = self._db.execute("PRAGMA page_count").fetchone()[0]
        self._room = free + max(0, os.fstat(self._fd).st_size // self._page - count)
        return free, count


def checkpoint(db: sqlite3.Connection) -> None:
    """Copy the log into the file; the next write begins the log anew, in the blocks it already has."""
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def take_log_blocks(path: Path) -> None:
    """Let the log have what it will need: on a full disk it could not grow."""
    with suppress(OSError):  # then it grows as long as it can, and begins anew when it cannot
        fd = os.open(_log(path), os.O_RDWR | os.O_CLOEXEC)
        try:
            os.posix_fallocate(fd, 0, LOG)
        finally:
            os.close(fd)


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
