"""The file: what is found again, what is refused, what is forgotten."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from trainmaster.cluster.store import Damaged, Locked, Newer, Record, Store, Window
from trainmaster.cluster.store import file as store_file
from trainmaster.cluster.store.schema import MIGRATIONS

A, B = "/core/pods/default/a", "/core/pods/default/b"


def says(text: str) -> Callable[[int], bytes]:
    return lambda revision: f"{text}@{revision}".encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cluster.db"


def rows(path: Path) -> list[int]:
    with sqlite3.connect(path) as db:
        found = [revision for (revision,) in db.execute("SELECT revision FROM changes ORDER BY revision")]
    db.close()
    return found


async def test_everything_is_found_again(path: Path) -> None:
    store = Store.open(path)
    await store.create(A, says("a"))
    await store.create(B, says("b"))
    await store.update(A, says("changed"), 2)
    await store.delete(B, 3, says("last"))
    before = [store.scan("/", at=at) for at in range(1, 6)]
    await store.close()

    store = Store.open(path)

    assert [Record(A, b"changed@4", 4, 2)] == store.scan("/")
    assert (5, 0, before) == (store.revision, store.oldest, [store.scan("/", at=at) for at in range(1, 6)])
    await store.close()


def filler(db: sqlite3.Connection) -> list[tuple[int]]:
    """The sizes of what is held for deletions."""
    return db.execute("SELECT length(content) FROM filler").fetchall()


async def test_a_file_with_larger_pages_keeps_them_and_grows_in_them(
        path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, "PAGE", 8192)
    store = Store.open(path)
    await store.create(A, says("a"))
    await store.close()
    monkeypatch.undo()

    store = Store.open(path)
    for number in range(100):
        await store.create(f"{B}{number}", says("x" * 90_000))
    await store.close()

    with sqlite3.connect(path) as db:
        assert [(8192,)] == db.execute("PRAGMA page_size").fetchall()
        assert [("ok",)] == db.execute("PRAGMA integrity_check").fetchall()
    db.close()
    store = Store.open(path)
    assert 101 == store.count("/")
    await store.close()


async def test_what_an_earlier_version_left_in_the_middle_of_growing_is_used_up(path: Path) -> None:
    store = Store.open(path)
    await store.create(A, says("a"))
    await store.close()
    with sqlite3.connect(path) as db:
        held = filler(db)
        db.execute("INSERT INTO filler (content) VALUES (zeroblob(8000000))")
    db.close()

    store = Store.open(path)
    await store.create(B, says("x" * 5_000_000))
    await store.close()

    with sqlite3.connect(path) as db:
        assert held == filler(db), "what is held for deletions, and nothing else"
        ((pages,),) = db.execute("PRAGMA page_count").fetchall()
        assert 11_000_000 > pages * 4096, "the large row went where the other filler was"
    db.close()


async def test_a_restart_leaves_what_is_held_for_deletions_where_it_is(path: Path) -> None:
    for _ in range(3):
        store = Store.open(path)
        await store.create(f"{A}{store.revision}", says("a"))
        await store.close()

    with sqlite3.connect(path) as db:
        assert 1 == len(filler(db))
        assert [(1,)] == db.execute("SELECT id FROM filler").fetchall()
    db.close()


async def test_a_copy_with_holes_gets_its_blocks_back(path: Path, tmp_path: Path) -> None:
    """What is only reserved is zeros, and `cp --sparse`, `tar -S` or `rsync -S` leave holes there."""
    store = Store.open(path)
    await store.create(A, says("a"))
    await store.close()
    copy = tmp_path / "copy.db"
    with copy.open("wb") as file:
        for start in range(0, path.stat().st_size, 4096):
            page = path.read_bytes()[start : start + 4096]
            file.seek(start)
            if any(page):
                file.write(page)
        file.truncate(path.stat().st_size)
    assert copy.stat().st_blocks * 512 < copy.stat().st_size, "this file system has holes"

    store = Store.open(copy)

    assert copy.stat().st_blocks * 512 >= copy.stat().st_size
    assert [A] == [record.key for record in store.scan("/")]
    await store.close()


async def test_an_empty_store_stays_empty(path: Path) -> None:
    for _ in range(2):
        store = Store.open(path)
        assert (1, 0, []) == (store.revision, store.oldest, store.scan("/"))
        await store.close()


async def test_revisions_go_on_where_they_were_even_if_the_last_ones_are_forgotten(path: Path) -> None:
    store = Store.open(path)
    await store.create(A, says("a"))
    await store.delete(A, 2)
    await store.compact(3)
    await store.close()
    assert [] == rows(path)

    store = Store.open(path)

    assert (3, 3) == (store.revision, store.oldest)
    assert 4 == (await store.create(A, says("again"))).revision
    await store.close()


async def test_compaction_leaves_what_is_current_and_what_is_newer(path: Path) -> None:
    store = Store.open(path)
    await store.create(A, says("a"))
    await store.create(B, says("b"))
    for _ in range(3):
        await store.update(A, says("changed"), store.revision if store.revision > 3 else 2)
    await store.delete(B, 3)
    await store.compact(5)
    await store.close()

    assert [3, 5, 6, 7] == rows(path), "B as it was at 5, A at 5, and what came after"


async def test_the_file_forgets_by_itself_what_left_the_window(path: Path) -> None:
    store = Store.open(path, window=Window(changes=10))
    revision = (await store.create(A, says("a"))).revision
    for _ in range(1200):
        revision = (await store.update(A, says("a"), revision)).revision
    await store.close()

    assert len(rows(path)) < 600
    store = Store.open(path, window=Window(changes=10))
    assert (1202, 1192) == (store.revision, store.oldest)
    await store.close()


async def test_a_smaller_window_applies_to_an_old_file(path: Path) -> None:
    store = Store.open(path)
    revision = (await store.create(A, says("a"))).revision
    for _ in range(20):
        revision = (await store.update(A, says("a"), revision)).revision
    await store.close()

    store = Store.open(path, window=Window(changes=5))

    assert (22, 17) == (store.revision, store.oldest)
    await store.close()


@pytest.mark.parametrize("forgotten", range(1, 6))
async def test_a_compaction_that_was_cut_short_is_finished_later(path: Path, forgotten: int) -> None:
    """Garbage is deleted in the order it arose; whatever part of it is gone, the present is the same."""
    store = Store.open(path)
    await store.create(A, says("a"))
    await store.update(A, says("a"), 2)
    await store.delete(A, 3)
    await store.create(B, says("b"))
    await store.update(B, says("b"), 5)
    await store.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE facts SET number = 6 WHERE name = 'oldest'")
        db.execute("DELETE FROM changes WHERE revision IN (SELECT revision FROM changes LIMIT ?)", (forgotten - 1,))
    db.close()

    store = Store.open(path)
    assert [Record(B, b"b@6", 6, 5)] == store.scan("/")
    assert (6, 6) == (store.revision, store.oldest)
    await store.compact(6)
    await store.close()

    assert [6] == rows(path)


async def test_a_file_of_a_newer_version_is_refused_and_not_touched(path: Path) -> None:
    await Store.open(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    before = path.read_bytes()

    with pytest.raises(Newer, match=r"cluster\.db was written by a newer Trainmaster .* nothing in it was changed"):
        Store.open(path)

    assert before == path.read_bytes()


def text_file(path: Path) -> None:
    path.write_text("This is not a database. " * 100)


def foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    db.close()


def torn_file(path: Path) -> None:
    asyncio.run(_filled(path))
    content = bytearray(path.read_bytes())
    content[4096 : 30 * 4096] = os.urandom(29 * 4096)
    path.write_bytes(content)


async def _filled(path: Path) -> None:
    store = Store.open(path)
    for number in range(50):
        await store.create(f"{A}{number}", says("x" * 3000))
    await store.close()


def flipped_bit(path: Path) -> None:
    asyncio.run(_filled(path))
    content = path.read_bytes()
    where = content.index(b"x" * 1000)
    path.write_bytes(content[:where] + b"y" + content[where + 1 :])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(text_file, "is damaged", id="text"),
        pytest.param(foreign_database, "is a database of another program", id="a database of another program"),
        pytest.param(torn_file, "is damaged", id="a database with a hole"),
        pytest.param(flipped_bit, "is not as it was written", id="an object with a wrong byte"),
    ],
)
def test_a_file_that_cannot_be_ours_is_refused_and_not_touched(
    path: Path, make: Callable[[Path], None], message: str
) -> None:
    make(path)
    before = path.read_bytes()

    async def attempt() -> None:
        with pytest.raises(Damaged, match=message):
            Store.open(path)

    asyncio.run(attempt())
    assert before == path.read_bytes()


async def test_a_file_that_is_in_use_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.cluster.store.file.PATIENCE", 0.0)
    store = Store.open(path)

    with pytest.raises(Locked, match="in use by another process"):
        Store.open(path)

    await store.create(A, says("a"))
    await store.close()


async def test_nobody_else_may_read_it(path: Path) -> None:
    store = Store.open(path)
    await store.create(A, says("a"))

    assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    await store.close()
    assert {0o600} == {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}


async def test_a_folder_that_is_missing_is_said(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Store.open(path / "cluster.db")
