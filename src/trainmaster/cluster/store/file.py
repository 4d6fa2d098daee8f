"""The durable copy: one SQLite file, written by one thread, read once at start.

WAL with `synchronous=FULL`: a commit that returned survives power loss. The lock is exclusive, so a second process that
opens the same file is told so instead of overwriting what the first one holds in memory.

A batch is one INSERT of many rows in autocommit mode, because every call into SQLite gives up the interpreter lock and
has to wait for it while the event loop computes: one call per batch, not one per row.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from trainmaster.cluster.store import schema
from trainmaster.cluster.store.pending import Write
from trainmaster.cluster.store.records import Damaged, Locked, Refused
from trainmaster.cluster.store.reserve import (
    LOG,
    PAGE,
    Reserve,
    checkpoint,
    put_log_aside,
    take_log_back,
    take_log_blocks,
)

BESIDES = 3  # pages that a commit writes to the log beside its rows: the first one, a parent, a list of free ones
PATIENCE = 5.0  # seconds: a process that was killed while it had the file open is gone by then, and with it the lock

SETTINGS = (
    "synchronous = FULL",
    "wal_autocheckpoint = 0",  # done by tidy(), when nobody waits
    "temp_store = MEMORY",  # no files but ours
    "secure_delete = FAST",  # Debian's default rewrites freed pages with zeros
)


@dataclass(frozen=True, slots=True)
class Row:
    revision: int
    key: str
    created: int
    gone: bool
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Contents:
    revision: int  # newest ever used
    oldest: int  # changes after it are complete
    rows: Iterator[Row]  # in order of revision


class File:
    """Opened in the loop, from then on used by the writer's thread alone. Errors are sqlite3.Error or OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Made by us, so that nobody else can read it; SQLite gives the log the same mode. Open as long as the database
        # is: closing any descriptor of a file gives up all locks that the process has on it.
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._db, self._reserve = self._open()
        except BaseException:
            os.close(self._fd)
            raise
        (page,) = self._db.execute("PRAGMA page_size").fetchone()
        self._log_limit = LOG // page  # pages
        self._log_pages = self._log_limit  # unknown: look at the first opportunity

    def load(self) -> Contents:
        try:
            facts: dict[str, int] = dict(self._db.execute("SELECT name, number FROM facts"))
            (newest,) = self._db.execute("SELECT max(revision) FROM changes").fetchone()
            return Contents(max(facts["revision"], newest or 0), facts["oldest"], self._rows())
        except (sqlite3.DatabaseError, KeyError) as error:
            raise self._explained(error) from error

    def commit(self, writes: Sequence[Write], *, urgent: bool) -> None:
        """Make the writes durable, all or none; returns when they are. Urgent ones may use what is held."""
        need = sum(self.pages(write.size) for write in writes)
        if not urgent:
            self._reserve.ensure(need)
        values: list[object] = []
        for write in writes:
            gone = write.after is None
            value = write.final if write.after is None else write.after.value
            values += (write.revision, write.key, write.record.created, gone, value, _sum(write.key, value))
        self._db.execute(_insert(len(writes)), values)
        self._log_pages += need + BESIDES
        self._reserve.take(need)

    def forget(self, garbage: Sequence[int], oldest: int, revision: int) -> None:
        """Delete rows nobody can ask for, and note from where on the history is complete.

        The rows come in the order in which they were replaced, so that whatever part of them is deleted, nothing that
        was deleted or replaced comes back.
        """
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute(
                "UPDATE facts SET number = max(number, CASE name WHEN 'oldest' THEN ? ELSE ? END)", (oldest, revision)
            )
            self._db.execute(
                "DELETE FROM changes WHERE revision IN (SELECT value FROM json_each(?))", (str(list(garbage)),)
            )
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._log_pages += 2 + len(garbage)
        self._reserve.look_again()

    def pages(self, size: int) -> int:
        """Those that a write of this size can cost at most."""
        return self._reserve.pages(size)

    @property
    def room(self) -> int:
        """Pages that urgent writes may use."""
        return self._reserve.room()

    @property
    def low(self) -> bool:
        """There is so little room that old rows should go."""
        return self._reserve.low

    def tidy(self) -> None:
        """Copy the log into the file when it has become long, so that it can begin anew."""
        if self._log_pages >= self._log_limit:
            self._reserve.look_again()  # whatever becomes of it
            checkpoint(self._db)
            self._log_pages = 0
            self._reserve.prepare()

    def make_room(self) -> None:
        """Everything that frees pages without needing any: the log may be what cannot grow, so it begins anew."""
        self._reserve.look_again()
        checkpoint(self._db)
        self._log_pages = 0
        self._reserve.release()

    def close(self) -> None:
        try:
            put_log_aside(self.path)
        finally:
            self._db.close()
            os.close(self._fd)

    def _open(self) -> tuple[sqlite3.Connection, Reserve]:
        if os.pread(self._fd, 4, 68) == schema.APPLICATION.to_bytes(4, "big"):  # touch nothing beside what is not ours
            take_log_back(self.path)
        db = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=100
        )
        try:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            version = schema.check(db, str(self.path))
            db.execute(f"PRAGMA page_size = {PAGE}")
            db.execute("PRAGMA auto_vacuum = NONE")  # pages once had are kept
            db.execute("PRAGMA journal_mode = WAL")
            for setting in SETTINGS:
                db.execute(f"PRAGMA {setting}")
            schema.migrate(db, version)
            take_log_blocks(self.path)
            return db, Reserve(db, self._fd)
        except BaseException as error:
            db.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise self._explained(error) from error
            raise

    def _rows(self) -> Iterator[Row]:
        try:
            for revision, key, created, gone, value, found in self._db.execute(
                "SELECT revision, key, created, gone, value, sum FROM changes ORDER BY revision"
            ):
                if found != _sum(key, value):
                    raise self._damaged(f"{key} at revision {revision} is not as it was written")
                yield Row(revision, key, created, bool(gone), value)
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_BUSY"):
            return Locked(f"{self.path} is in use by another process. Is this cluster already running?")
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
            return Refused(f"{self.path} cannot be opened: {error}.")
        return self._damaged(str(error))

    def _damaged(self, what: str) -> Damaged:
        return Damaged(
            f"{self.path} is damaged ({what}) and was left as it is. "
            "Put back a copy of it, or move it away to start with an empty cluster."
        )


@lru_cache(maxsize=100)
def _insert(rows: int) -> str:
    places = ",".join(["(?,?,?,?,?,?)"] * rows)
    return f"INSERT INTO changes (revision, key, created, gone, value, sum) VALUES {places}"  # noqa: S608 - no values


def _sum(key: str, value: bytes | None) -> int:
    return crc32(value or b"", crc32(key.encode()))
