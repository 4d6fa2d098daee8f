"""What a watcher is promised: every change of its prefix, once, in order; or to be told that it is too late."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from trainmaster.cluster.store import Ahead, Change, Closed, Compacted, Lagged, Store, Subscription, Window
from trainmaster.cluster.store.subscriptions import BYTES_AT_ONCE

A, B, C = "/core/pods/a/x", "/core/pods/b/x", "/core/nodes/n"


def says(text: str) -> Callable[[int], bytes]:
    return lambda revision: f"{text}@{revision}".encode()


@pytest.fixture(params=["in memory", "on disk"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A at 2 and 5, B at 3, C at 4, A deleted at 6."""
    store = Store.open(None if request.param == "in memory" else tmp_path / "cluster.db")
    for key in (A, B, C):
        await store.create(key, says("new"))
    await store.update(A, says("changed"), 2)
    await store.delete(A, 5, says("last"))
    yield store
    await store.close()


async def read(subscription: Subscription, until: int) -> list[Change]:
    changes: list[Change] = []
    while subscription.progress < until:
        changes += await subscription.next()
    return changes


async def test_a_change_tells_what_was_and_what_is(store: Store) -> None:
    assert [
        Change(2, A, b"new@2", None),
        Change(5, A, b"changed@5", b"new@2"),
        Change(6, A, None, b"last@6"),
    ] == await store.subscribe("/core/pods/a/", 0).next()


@pytest.mark.parametrize(
    ("prefix", "after", "expected"),
    [
        pytest.param("/core/pods/", 0, [2, 3, 5, 6], id="a kind from the beginning"),
        pytest.param("/core/pods/", 2, [3, 5, 6], id="a kind after a revision"),
        pytest.param("/core/pods/b/", 1, [3], id="a namespace"),
        pytest.param("/core/pods/a/x", 4, [5, 6], id="one object"),
        pytest.param("/core/nodes/", 3, [4], id="a kind without namespaces"),
        pytest.param("/core/", 2, [3, 4, 5, 6], id="a group"),
        pytest.param("", 0, [2, 3, 4, 5, 6], id="everything"),
    ],
)
async def test_a_watch_resumes_after_any_revision_that_is_kept(
    store: Store, prefix: str, after: int, expected: list[int]
) -> None:
    subscription = store.subscribe(prefix, after)

    assert expected == [change.revision for change in await read(subscription, until=6)]
    assert 6 == subscription.progress


async def test_what_comes_later_is_told_when_it_is_durable_and_to_those_concerned(store: Store) -> None:
    pods, nodes = store.subscribe("/core/pods/", 6), store.subscribe("/core/nodes/", 6)
    waiting, other = asyncio.create_task(pods.next()), asyncio.create_task(nodes.next())
    await asyncio.sleep(0)
    await store.update(B, says("changed"), 3)

    assert [Change(7, B, b"changed@7", b"new@3")] == await waiting
    assert not other.done()
    assert (7, 7) == (pods.progress, nodes.progress), "who has nothing to hear is up to date as well"
    other.cancel()


async def test_progress_waits_for_what_was_not_read(store: Store) -> None:
    subscription = store.subscribe("/core/pods/", 3)

    assert 3 == subscription.progress
    await subscription.next()
    assert 6 == subscription.progress


async def test_changes_that_come_together_are_read_together_and_in_order(store: Store) -> None:
    subscription = store.subscribe("/core/pods/", 6)
    await asyncio.gather(*(store.create(f"/core/pods/c/{number}", says("new")) for number in range(30)))

    assert list(range(7, 37)) == [change.revision for change in await read(subscription, until=36)]


async def test_a_reader_far_behind_gets_its_changes_in_portions(store: Store) -> None:
    await asyncio.gather(*(store.create(f"/core/pods/c/{number}", says("new")) for number in range(1200)))
    subscription = store.subscribe("/core/pods/c/", 0)

    assert [500, 500, 200] == [len(await subscription.next()) for _ in range(3)]


@pytest.mark.parametrize(
    ("after", "error"),
    [
        pytest.param(3, Compacted, id="what is forgotten"),
        pytest.param(7, Ahead, id="what has not happened"),
    ],
)
async def test_a_watch_cannot_start_at(store: Store, after: int, error: type[Exception]) -> None:
    await store.compact(4)

    with pytest.raises(error):
        store.subscribe("/core/pods/", after)


async def test_a_reader_that_is_too_slow_is_told_so_and_dropped() -> None:
    store = Store.open(None, window=Window(changes=5))
    slow, quick, idle = store.subscribe("/core/pods/", 1), store.subscribe("/core/pods/", 1), store.subscribe(C, 1)
    heard: list[Change] = []
    for number in range(8):
        await store.create(f"/core/pods/a/{number}", says("new"))
        heard += await quick.next()

    assert list(range(2, 10)) == [change.revision for change in heard]
    for _ in range(2):
        with pytest.raises(Lagged, match="list again"):
            await slow.next()
    await store.create(C, says("new"))
    assert [10] == [change.revision for change in await idle.next()], "nothing for it was forgotten"


async def test_compaction_does_not_disturb_who_has_read_everything(store: Store) -> None:
    subscription = store.subscribe("/core/pods/", 6)
    await store.compact(6)
    await store.update(B, says("changed"), 3)

    assert [7] == [change.revision for change in await subscription.next()]


@pytest.mark.parametrize("end", ["the subscription", "the store"])
async def test_a_reader_that_waits_hears_of_the_end_of(end: str) -> None:
    store = Store.open(None)
    subscription = store.subscribe("/core/pods/", 1)
    waiting = asyncio.create_task(subscription.next())
    await asyncio.sleep(0)
    if end == "the store":
        await store.close()
    else:
        subscription.close()

    with pytest.raises(Closed):
        await waiting


async def test_a_watch_resumes_across_a_restart(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "cluster.db")
    await store.create(A, says("new"))
    await store.update(A, says("changed"), 2)
    await store.close()
    store = Store.open(tmp_path / "cluster.db")
    await store.delete(A, 3, says("last"))

    changes = await read(store.subscribe("/core/pods/", 2), until=4)

    assert [Change(3, A, b"changed@3", b"new@2"), Change(4, A, None, b"last@4")] == changes
    await store.close()


async def test_those_who_keep_up_share_one_batch(store: Store) -> None:
    first, second, other = (store.subscribe(prefix, 6) for prefix in ("/core/pods/", "/core/pods/", "/core/pods/b/"))
    await store.update(B, says("changed"), 3)
    batch = first.take()
    batch.derived["form"] = b"made once"

    assert second.take() is batch
    assert other.take() is not batch, "another prefix may have other changes"
    await store.update(B, says("again"), 7)
    assert {} == first.take().derived, "the next one is new"


async def test_there_may_be_nothing_to_take(store: Store) -> None:
    subscription = store.subscribe("/core/pods/", 6)

    assert [] == list(subscription.take().changes)
    subscription.close()
    with pytest.raises(Closed):
        subscription.take()


async def test_one_who_waits_can_be_stirred(store: Store) -> None:
    subscription = store.subscribe("/core/pods/", 6)
    waiting = asyncio.create_task(subscription.wait())
    await asyncio.sleep(0)
    subscription.stir()

    await asyncio.wait_for(waiting, 60)
    assert [] == list(subscription.take().changes)


async def test_large_changes_are_handed_out_a_few_at_a_time() -> None:
    store = Store.open(None)
    large = b"x" * (BYTES_AT_ONCE // 2)
    for name in "abcd":
        await store.create(f"/core/pods/a/{name}", lambda _: large)
    subscription = store.subscribe("/core/pods/", 1)

    assert [2, 2] == [len(await subscription.next()) for _ in range(2)]
    await store.close()
