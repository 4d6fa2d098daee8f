"""The durable copy: one SQLite file, written by one thread, read once at start.

WAL with `synchronous=FULL`: a commit that returned survives power loss. The lock is exclusive, so a second process that
opens the same file is told so instead of overwriting what the first one holds in memory.

A batch is one INSERT of many rows in autocommit mode, because every call into SQLite gives up the interpreter lock and
may wait for it up to 5 ms while the event loop computes: one call per batch, not one per row.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from trainmaster.cluster.store import schema
from trainmaster.cluster.store.pending import Write
from trainmaster.cluster.store.records import Damaged, Locked, Newer

CHECKPOINT_PAGES = 1000
PAGE = 4096


@dataclass(frozen=True, slots=True)
class Row:
    revision: int
    key: str
    created: int
    gone: bool
    value: bytes | None


class File:
    """Every method but the constructor runs in the writer's thread. Errors are sqlite3.Error or OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Ours alone, before SQLite would make it readable for others. SQLite gives the WAL the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._db = _connect(path)
        self._wal_pages = 0

    def load(self) -> tuple[int, int, Iterator[Row]]:
        """Newest revision ever used, oldest revision with complete history, and all rows in order of revision."""
        facts: dict[str, int] = dict(self._db.execute("SELECT name, number FROM facts"))
        (newest,) = self._db.execute("SELECT max(revision) FROM changes").fetchone()
        rows = self._db.execute("SELECT revision, key, created, gone, value FROM changes ORDER BY revision")
        return (
            max(facts["revision"], newest or 0),
            facts["oldest"],
            (Row(r, k, c, bool(g), v) for r, k, c, g, v in rows),
        )

    def commit(self, writes: Sequence[Write]) -> None:
        """Make the writes durable, all or none. Returns after they are."""
        values: list[object] = []
        for write in writes:
            if write.after is not None:
                values += (write.revision, write.key, write.after.created, 0, write.after.value)
            else:
                values += (write.revision, write.key, write.record.created, 1, write.final)
        self._db.execute(_insert(len(writes)), values)
        self._wal_pages += 2 + sum(1 + write.size // PAGE for write in writes)

    def forget(self, garbage: Sequence[int], oldest: int, revision: int) -> None:
        """Delete rows nobody can ask for, and say from where on the history is complete."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.executemany("DELETE FROM changes WHERE revision = ?", ((row,) for row in garbage))
            self._db.executemany(
                "UPDATE facts SET number = ? WHERE name = ?", ((oldest, "oldest"), (revision, "revision"))
            )
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._wal_pages += 2 + len(garbage)

    def tidy(self) -> None:
        """What can be done while nobody waits: move pages from the log into the file, so that the log begins anew."""
        if self._wal_pages >= CHECKPOINT_PAGES:
            self._wal_pages = 0
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def close(self) -> None:
        self._db.close()


def _connect(path: Path) -> sqlite3.Connection:
    # 5 s: a process that was killed while it had the file open is gone by then, and with it the lock.
    db = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=300)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        version = schema.check(db, str(path))
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA wal_autocheckpoint = 0")  # done by tidy(), when nobody waits
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA secure_delete = FAST")
        schema.migrate(db, version)
    except sqlite3.DatabaseError as error:
        db.close()
        raise _explained(path, error) from error
    except (Newer, Damaged):
        db.close()
        raise
    return db


def _explained(path: Path, error: sqlite3.DatabaseError) -> Exception:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_BUSY"):
        return Locked(f"{path} is in use by another process. Is this cluster already running?")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return Damaged(
            f"{path} is damaged ({error}); it was left as it is. Restore a copy, or move it away to start empty."
        )
    return error


@lru_cache(maxsize=300)
def _insert(rows: int) -> str:
    places = ",".join(["(?,?,?,?,?)"] * rows)
    return f"INSERT INTO changes (revision, key, created, gone, value) VALUES {places}"  # noqa: S608 - only places
