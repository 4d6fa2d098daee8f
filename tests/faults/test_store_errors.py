"""A disk that is slow or fails: the loop goes on, nothing is shown too early, nothing refused is shown at all."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.faults.disk import FULL, IO_ERROR_SYNC, IO_ERROR_WRITE, OK, Disk, Operation
from tests.faults.store_child import at_work

from trainmaster.cluster.store import Create, Delete, Record, Refused, Store, Update

A, B, C, D = (f"/core/pods/default/{name}" for name in "abcd")


def says(text: str) -> Callable[[int], bytes]:
    return lambda revision: f"{text}@{revision}".encode()


class Gate:
    """Holds the next sync of the log until it is told how it should end."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._shut = False
        self._opened = threading.Event()
        self._code = OK
        self._reached = asyncio.Event()
        self.syncs = 0

    def shut(self) -> None:
        self._shut = True
        self._opened.clear()
        self._reached.clear()
        self.syncs = 0

    async def reached(self) -> None:
        await asyncio.wait_for(self._reached.wait(), timeout=60)

    def open(self, code: int = OK) -> None:
        self._code = code
        self._shut = False
        self._opened.set()

    def before(self, operation: Operation) -> int:
        if operation.kind != "sync" or not operation.file.endswith("-wal"):
            return OK
        self.syncs += 1
        if not self._shut:
            return OK
        self._loop.call_soon_threadsafe(self._reached.set)
        self._opened.wait()
        return self._code


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    gate = Gate()
    with Disk(gate.before).installed():
        yield gate


@pytest.fixture
async def store(gate: Gate, tmp_path: Path) -> AsyncIterator[Store]:
    """B is at revision 2. The first write has made the file grow, so that later ones only touch the log."""
    store = Store.open(tmp_path / "cluster.db")
    await store.create(B, says("b"))
    await store.compact(1)  # and the log is where it should be
    yield store
    gate.open()
    await store.close()


async def started(call: Coroutine[Any, Any, Record]) -> "asyncio.Task[Record]":
    task = asyncio.create_task(call)
    await asyncio.sleep(0)
    return task


async def test_while_the_disk_syncs_the_loop_goes_on_and_shows_nothing_of_it(gate: Gate, store: Store) -> None:
    gate.shut()
    subscription = store.subscribe("/core/pods/", store.revision)
    writing = await started(store.create(A, says("a")))
    hearing = asyncio.create_task(subscription.next())
    await gate.reached()

    assert (None, b"a@3") == (store.get(A), getattr(store.latest(A), "value", None))
    assert ([B], 2, 2) == ([record.key for record in store.scan("/")], store.revision, subscription.progress)
    assert not writing.done()
    assert not hearing.done()

    gate.open()
    assert await writing == store.get(A)
    assert [3] == [change.revision for change in await hearing]


async def test_all_that_comes_in_during_a_commit_shares_the_next(gate: Gate, store: Store) -> None:
    gate.shut()
    first = await started(store.create(A, says("a")))
    await gate.reached()
    others = [await started(store.create(f"{A}{number}", says("x"))) for number in range(50)]
    gate.open()
    await first
    await asyncio.gather(*others)

    assert 2 == gate.syncs


async def test_what_was_built_on_a_failed_write_fails_and_a_deletion_of_something_else_does_not(
    gate: Gate, store: Store
) -> None:
    gate.shut()
    first = await started(store.create(A, says("a")))
    await gate.reached()
    on_top = await started(store.update(A, says("a"), 3))
    apart = await started(store.create(C, says("c")))
    deletion = await started(store.delete(B, 2))
    gate.open(IO_ERROR_SYNC)

    results = await asyncio.gather(first, on_top, apart, deletion, return_exceptions=True)

    assert [Refused, Refused, Refused, Record] == [type(result) for result in results]
    assert "cluster.db cannot be written (disk I/O error)" in str(results[0])
    assert [None] * 6 == [view(key) for key in (A, B, C) for view in (store.get, store.latest)]
    assert 6 == store.revision, "the revisions of what was refused are not used again"


async def test_who_conflicts_with_a_write_that_fails_has_no_conflict(gate: Gate, store: Store) -> None:
    gate.shut()
    first = await started(store.create(A, says("first")))
    await gate.reached()
    second = await started(store.create(A, says("second")))
    gate.open(IO_ERROR_SYNC)

    with pytest.raises(Refused):
        await first
    assert b"second@4" == (await second).value
    assert "" == store.trouble


async def test_who_gave_up_waiting_does_not_disturb_a_failure(gate: Gate, store: Store) -> None:
    gate.shut()
    first = await started(store.create(A, says("first")))
    await gate.reached()
    first.cancel()
    gate.open(IO_ERROR_SYNC)

    assert A == (await store.create(A, says("second"))).key


@pytest.mark.parametrize("fails", [0, 3], ids=["always", "also after one that failed"])
async def test_a_checkpoint_writes_only_where_the_file_has_blocks(tmp_path: Path, fails: int) -> None:
    """On a full disk it would fail otherwise, the log could not begin anew, and deletions would end."""
    writes = beyond = syncs = 0

    def before(operation: Operation) -> int:
        nonlocal writes, beyond, syncs
        if operation.kind == "sync" and operation.file == "cluster.db":
            syncs += 1
            return IO_ERROR_SYNC if syncs == fails else OK  # blocks were cut off, and it was not told
        if operation.kind == "write" and operation.file == "cluster.db":
            writes += 1
            # But for the first page, which makes the file.
            beyond += operation.offset + len(operation.data) > max(operation.size, 4096)
        return OK

    with Disk(before).installed():
        for life in range(2):
            store = Store.open(tmp_path / "cluster.db")
            for number in range(300):
                await store.create(f"{A}{life}-{number}", says("x" * (number * 300)))
            await store.close()

    assert syncs > fails
    assert beyond == 0
    assert writes > 2 * 300 * 150 * 300 // 4096, "all of it was seen"


async def test_what_is_held_for_deletions_is_there_once_however_often_it_could_not_be_given_up(tmp_path: Path) -> None:
    failing: set[str] = set()

    def before(operation: Operation) -> int:
        return IO_ERROR_SYNC if operation.kind == "sync" and at_work() in failing else OK

    with Disk(before).installed():
        store = Store.open(tmp_path / "cluster.db")
        for number in range(3):
            record = await store.create(f"{A}{number}", says("a"))
            failing |= {"commit", "release"}
            with pytest.raises(Refused):
                await store.delete(record.key, record.revision)
            failing.clear()
        await store.create(B, says("b"))
        await store.close()

    with sqlite3.connect(tmp_path / "cluster.db") as db:
        assert [(1,)] == db.execute("SELECT count(*) FROM filler").fetchall()
    db.close()


STEPS = (
    Create(A, says("a" * 3000)),
    Create(B, says("b")),
    Update(A, says("a" * 9000), 2),
    Create(C, says("c" * 600_000)),  # the file has to grow
    Delete(B, 3, says("last")),
    Update(A, says("short"), 4),
)


async def tell(path: Path, trouble: "Trouble") -> None:
    """A short life in which every step may be refused; each is tried again when the disk is well."""
    try:
        store = Store.open(path)
    except Refused:
        trouble.end()
        store = Store.open(path)
    for step in STEPS:
        await persist(store, step, trouble)
    try:
        await store.compact(store.revision - 1)
    except Refused:
        trouble.end()
        await store.compact(store.revision - 1)
    here = (store.scan("/"), store.revision)
    assert [A, C] == [record.key for record in here[0]]
    await store.close()
    trouble.end()
    store = Store.open(path)
    assert here == (store.scan("/"), store.revision)
    await store.close()


async def persist(store: Store, step: Create | Update | Delete, trouble: "Trouble") -> None:
    if not isinstance(step, Create):
        current = store.latest(step.key)
        assert current is not None
        step = (
            Update(step.key, step.encode, current.revision)
            if isinstance(step, Update)
            else Delete(step.key, current.revision, step.encode)
        )
    before = (store.get(step.key), store.revision)
    try:
        await store.transact(step)
    except Refused:
        assert before == (store.get(step.key), store.revision)
        assert store.latest(step.key) == store.get(step.key)
        assert store.trouble
        trouble.end()
        await store.transact(step)
        assert "" == store.trouble


class Trouble:
    """From the n-th operation on, everything fails, or only that one does."""

    def __init__(self, start: int, code: int, *, lasting: bool) -> None:
        self.count = 0
        self._start = start
        self._code = code
        self._lasting = lasting
        self._ended = False

    def end(self) -> None:
        self._ended = True

    def before(self, operation: Operation) -> int:
        self.count += 1
        if self._ended or self.count < self._start or (self.count > self._start and not self._lasting):
            return OK
        return IO_ERROR_SYNC if operation.kind == "sync" and self._code != FULL else self._code


def moments(path: Path, share: int) -> list[int]:
    """Of the operations of such a life; those that write page after page look alike, so few of them."""
    kinds: list[tuple[str, str]] = []

    def before(operation: Operation) -> int:
        kinds.append((operation.kind, operation.file))
        return OK

    with Disk(before).installed():
        asyncio.run(tell(path, Trouble(0, OK, lasting=False)))
    turns = [number for number in range(1, len(kinds)) if kinds[number - 1] != kinds[number]]
    around = sorted({number + beside for number in turns for beside in (0, 1, 2)})
    return sorted({*around[:: share // 29], *range(1, len(kinds) + 1, share)})


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "until it is repaired"])
@pytest.mark.parametrize("code", [FULL, IO_ERROR_WRITE], ids=["is full", "fails"])
@pytest.mark.parametrize(
    "share", [pytest.param(580, id="sometimes"), pytest.param(29, id="everywhere", marks=pytest.mark.faults)]
)
def test_the_disk(tmp_path: Path, share: int, code: int, lasting: bool) -> None:
    (tmp_path / "well").mkdir()
    for start in moments(tmp_path / "well" / "cluster.db", share):
        trouble = Trouble(start, code, lasting=lasting)
        folder = tmp_path / str(start)
        folder.mkdir()
        with Disk(trouble.before).installed():
            asyncio.run(tell(folder / "cluster.db", trouble))
        for file in folder.iterdir():
            file.unlink()
