"""What a writer is promised: compare-and-set, one order for all, nothing shown before it is durable."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import orjson
import pytest

from trainmaster.cluster.store import (
    Closed,
    Create,
    Delete,
    Record,
    Stale,
    Store,
    Update,
)

POD = "/core/pods/default/a"
OTHER = "/core/pods/default/b"


def says(text: str) -> Callable[[int], bytes]:
    """Bytes that carry their revision, as objects carry their resourceVersion."""
    return lambda revision: f"{text}@{revision}".encode()


@pytest.fixture(params=["in memory", "on disk"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = Store.open(None if request.param == "in memory" else tmp_path / "cluster.db")
    yield store
    await store.close()


async def test_an_empty_store_is_at_revision_one_because_zero_means_any_to_clients(store: Store) -> None:
    assert (1, 0, []) == (store.revision, store.oldest, store.scan("/"))


async def test_every_write_gets_the_next_revision_and_creation_is_remembered(store: Store) -> None:
    created = await store.create(POD, says("new"))
    other = await store.create(OTHER, says("other"))
    updated = await store.update(POD, says("changed"), created.revision)

    assert Record(POD, b"new@2", 2, 2) == created
    assert Record(OTHER, b"other@3", 3, 3) == other
    assert Record(POD, b"changed@4", 4, 2) == updated
    assert (4, updated) == (store.revision, store.get(POD))


async def test_a_deletion_takes_a_revision_and_answers_with_the_last_state(store: Store) -> None:
    created = await store.create(POD, says("new"))

    assert Record(POD, b"last@3", 3, 2) == await store.delete(POD, created.revision, says("last"))
    assert (None, 3) == (store.get(POD), store.revision)


async def test_a_deletion_without_last_words_answers_with_what_was_there(store: Store) -> None:
    created = await store.create(POD, says("new"))

    assert Record(POD, b"new@2", 3, 2) == await store.delete(POD, created.revision)


async def test_a_name_that_was_deleted_can_be_used_again_and_is_a_new_object(store: Store) -> None:
    created = await store.create(POD, says("first"))
    await store.delete(POD, created.revision)

    assert Record(POD, b"second@4", 4, 4) == await store.create(POD, says("second"))


@pytest.mark.parametrize(
    ("step", "current"),
    [
        pytest.param(Create(POD, says("x")), 3, id="create what exists"),
        pytest.param(Update(POD, says("x"), 2), 3, id="update what was updated meanwhile"),
        pytest.param(Update(POD, says("x"), 99), 3, id="update at a revision that never was"),
        pytest.param(Update(OTHER, says("x"), 2), None, id="update what does not exist"),
        pytest.param(Delete(POD, 2), 3, id="delete what was updated meanwhile"),
        pytest.param(Delete(OTHER, 2), None, id="delete what does not exist"),
    ],
)
async def test_who_comes_too_late_is_told_what_is_there_now(
    store: Store, step: Create | Update | Delete, current: int | None
) -> None:
    created = await store.create(POD, says("first"))
    await store.update(POD, says("second"), created.revision)

    with pytest.raises(Stale) as refusal:
        await store.transact(step)

    assert current == (refusal.value.current and refusal.value.current.revision)
    assert 3 == store.revision


async def test_of_many_who_update_the_same_state_one_wins(store: Store) -> None:
    created = await store.create(POD, says("start"))

    results = await asyncio.gather(
        *(store.update(POD, says(f"writer {number}"), created.revision) for number in range(20)), return_exceptions=True
    )

    assert [Record] + [Stale] * 19 == sorted((type(result) for result in results), key=lambda kind: kind.__name__)
    assert 3 == store.revision


async def test_writers_decide_on_what_is_on_its_way_and_readers_do_not_see_it(store: Store) -> None:
    writing = asyncio.create_task(store.create(POD, says("new")))
    await asyncio.sleep(0)  # the writer has decided; nothing is committed

    assert (None, b"new@2", 1) == (store.get(POD), getattr(store.latest(POD), "value", None), store.revision)
    assert ([], 0) == (store.scan("/core/pods/"), store.count("/core/pods/"))

    updating = asyncio.create_task(store.update(POD, says("newer"), 2))  # decided on the write that is on its way
    assert [2, 3] == [(await writing).revision, (await updating).revision]


async def test_a_conflict_with_a_write_on_its_way_is_told_only_when_that_write_is_durable(store: Store) -> None:
    first = asyncio.create_task(store.create(POD, says("first")))
    second = asyncio.create_task(store.create(POD, says("second")))

    with pytest.raises(Stale) as refusal:
        await second

    assert first.done()
    assert store.get(POD) == refusal.value.current == await first


async def test_a_transaction_is_done_whole(store: Store) -> None:
    created = await store.create(POD, says("pod"))

    records = await store.transact(
        Update(POD, says("bound"), created.revision), Create("/core/events/default/e", says("e"))
    )

    assert [Record(POD, b"bound@3", 3, 2), Record("/core/events/default/e", b"e@4", 4, 4)] == records
    assert 4 == store.revision


async def test_a_transaction_is_left_undone_whole(store: Store) -> None:
    with pytest.raises(Stale):
        await store.transact(Create(POD, says("pod")), Update(OTHER, says("x"), 7))

    assert (None, None, 1) == (store.get(POD), store.latest(POD), store.revision)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((), id="nothing to do"),
        pytest.param((Create(POD, says("a")), Create(POD, says("b"))), id="one key twice"),
        pytest.param((Create("/pods", says("a")),), id="a key without a kind"),
    ],
)
async def test_a_transaction_that_makes_no_sense_is_a_mistake_of_the_caller(store: Store, steps: tuple[Create]) -> None:
    with pytest.raises(ValueError):
        await store.transact(*steps)


async def test_bytes_that_cannot_be_made_leave_no_trace(store: Store) -> None:
    def broken(_revision: int) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.transact(Create(OTHER, says("fine")), Create(POD, broken))

    assert (None, None) == (store.latest(OTHER), store.latest(POD))
    assert 2 == (await store.create(POD, says("next"))).revision


async def test_a_writer_that_gives_up_waiting_does_not_take_its_write_back(store: Store) -> None:
    writing = asyncio.create_task(store.create(POD, says("new")))
    await asyncio.sleep(0)
    writing.cancel()
    await store.create(OTHER, says("later"))

    assert [POD, OTHER] == [record.key for record in store.scan("/")]


async def test_closing_finishes_what_was_begun_and_refuses_what_comes(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "cluster.db")
    writing = asyncio.create_task(store.create(POD, says("new")))
    await asyncio.sleep(0)
    await store.close()

    assert 2 == (await writing).revision
    with pytest.raises(Closed):
        await store.create(OTHER, says("late"))
    with pytest.raises(Closed):
        await store.compact(1)


async def test_more_than_fits_in_the_queue_waits_and_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.cluster.store.store.QUEUE_BYTES", 100)
    store = Store.open(None)

    records = await asyncio.gather(*(store.create(f"{POD}{number}", says("x" * 30)) for number in range(50)))

    assert list(range(2, 52)) == sorted(record.revision for record in records)


async def test_a_large_queue_goes_out_in_several_batches_in_order(store: Store) -> None:
    records = await asyncio.gather(*(store.create(f"{POD}{number}", says("x")) for number in range(700)))

    assert list(range(2, 702)) == [record.revision for record in records]
    assert 700 == store.count("/core/pods/default/")


async def test_what_is_kept_takes_the_memory_it_needs(store: Store) -> None:
    """An encoder grows its buffer in steps and hands it out whole: three times the object, for as long as it lives."""
    text = {"padding": "x" * 2300}
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for name in range(100):
            await store.create(f"/core/pods/default/{name}", lambda _: orjson.dumps(text))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (after - before) / 100 < 2 * len(orjson.dumps(text))
