"""The tables of the file and how a file of an earlier version becomes one of today.

One table of changes, appended to and never updated: what is current is the newest row of a key, and rows that nobody
can ask for any more are deleted. A second table of current objects would write every value twice and could disagree
with the first. No index on keys: nothing is ever looked up on disk.

A released migration is never edited; a new one is added at the end. `PRAGMA user_version` counts those that were done.
"""

import sqlite3

from trainmaster.cluster.store.records import Damaged, Newer

APPLICATION = 0x54524E4D  # "TRNM" in the file's header: this SQLite file is ours

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE changes (
            revision INTEGER PRIMARY KEY,
            key TEXT NOT NULL,
            created INTEGER NOT NULL,
            gone INTEGER NOT NULL,
            value BLOB,
            sum INTEGER NOT NULL  -- crc32 of key and value: SQLite itself notices only damage to its own structure
        )""",
        # `revision`: at least this was used, even if its row is deleted. `oldest`: changes after it are complete.
        "CREATE TABLE facts (name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
        "INSERT INTO facts VALUES ('revision', 1), ('oldest', 0)",
        # Rows here come and go to make the file grow in one step; see reserve.py.
        "CREATE TABLE filler (id INTEGER PRIMARY KEY, content BLOB)",
        f"PRAGMA application_id = {APPLICATION}",
    ),
)


def check(connection: sqlite3.Connection, name: str) -> int:
    """The version of the file, before anything is written to it. 0: empty."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION and (application or version or tables):
        raise Damaged(f"{name} is a database of another program; nothing in it was changed. Choose another place.")
    if version > len(MIGRATIONS):
        raise Newer(
            f"{name} was written by a newer Trainmaster (file version {version}, this one knows up to "
            f"{len(MIGRATIONS)}); nothing in it was changed. Use that version, or move the file away to start empty."
        )
    return int(version)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the file to the newest version; each migration is one transaction, so a crash leaves a whole version."""
    for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        except sqlite3.Error:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
