"""What a reader is promised: key order, pages of one moment, the past as it was."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from trainmaster.cluster.store import Ahead, Compacted, Record, Store, Window

PODS = ["/core/pods/a/x", "/core/pods/a/y", "/core/pods/b/x", "/core/pods/b/z"]
KEYS = ["/apps/deployments/a/d", "/core/nodes/n", *PODS, "/core/podtemplates/a/t"]


def says(text: str) -> Callable[[int], bytes]:
    return lambda revision: f"{text}@{revision}".encode()


@pytest.fixture(params=["in memory", "on disk"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Objects of four kinds, created in the order of KEYS at revisions 2 to 8."""
    store = Store.open(None if request.param == "in memory" else tmp_path / "cluster.db")
    for key in KEYS:
        await store.create(key, says("v"))
    yield store
    await store.close()


@pytest.mark.parametrize(
    ("prefix", "after", "limit", "expected"),
    [
        pytest.param("/core/pods/", "", 0, PODS, id="a kind"),
        pytest.param("/core/pods/a/", "", 0, PODS[:2], id="a namespace"),
        pytest.param("/core/nodes/", "", 0, ["/core/nodes/n"], id="a kind without namespaces"),
        pytest.param("/core/pods/a/x", "", 0, PODS[:1], id="one object"),
        pytest.param("/core/pods/", "", 3, PODS[:3], id="the first page"),
        pytest.param("/core/pods/", PODS[2], 3, PODS[3:], id="the page after a key"),
        pytest.param("/core/pods/", "/core/pods/a/xx", 2, PODS[1:3], id="after a key that is gone"),
        pytest.param("/core/pods/a/", PODS[1], 0, [], id="after the last"),
        pytest.param("/core/pods/b/", PODS[0], 0, PODS[2:], id="after a key before the prefix"),
        pytest.param("/core/secrets/", "", 0, [], id="a kind that nobody wrote"),
        pytest.param("/core/", "", 0, KEYS[1:], id="all kinds of a group, in key order"),
        pytest.param("/core/pod", "", 5, KEYS[2:7], id="kinds that begin alike"),
        pytest.param("", "", 0, KEYS, id="everything"),
    ],
)
async def test_lists(store: Store, prefix: str, after: str, limit: int, expected: list[str]) -> None:
    assert expected == [record.key for record in store.scan(prefix, after=after, limit=limit)]
    if not limit:
        assert len(expected) == store.count(prefix, after=after)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param(1, [], id="before anything"),
        pytest.param(5, ["a/x v@4", "a/y v@5"], id="while they were created"),
        pytest.param(8, ["a/x v@4", "a/y v@5", "b/x v@6", "b/z v@7"], id="when all were there"),
        pytest.param(9, ["a/x v@4", "a/y new@9", "b/x v@6", "b/z v@7"], id="one was updated"),
        pytest.param(10, ["a/x v@4", "a/y new@9", "b/z v@7"], id="one was deleted"),
        pytest.param(11, ["a/x v@4", "a/y new@9", "b/x again@11", "b/z v@7"], id="and made again"),
        pytest.param(12, ["a/y new@9", "b/x again@11", "b/z v@7"], id="the first one was deleted"),
        pytest.param(0, ["a/y new@9", "b/x again@11", "b/z v@7"], id="now"),
    ],
)
async def test_the_past_is_as_it_was(store: Store, at: int, expected: list[str]) -> None:
    await store.update(PODS[1], says("new"), 5)
    await store.delete(PODS[2], 6)
    await store.create(PODS[2], says("again"))
    await store.delete(PODS[0], 4)

    found = [
        (record.key.removeprefix("/core/pods/"), record.value.decode()) for record in store.scan("/core/pods/", at=at)
    ]
    assert expected == [f"{name} {value}" for name, value in found]
    assert len(expected) == store.count("/core/pods/", at=at)
    for size in (1, 2, 3):
        pages: list[Record] = []
        after = ""
        while page := store.scan("/core/pods/", after=after, limit=size, at=at):
            assert len(expected) - len(pages) == store.count("/core/pods/", after=after, at=at)
            pages += page
            after = page[-1].key
        assert [value for _, value in found] == [record.value.decode() for record in pages]


async def test_a_kind_that_is_all_gone_can_still_be_listed_in_the_past(store: Store) -> None:
    await store.delete("/core/nodes/n", 3)

    assert ["/core/nodes/n"] == [record.key for record in store.scan("/core/nodes/", at=8)]
    assert KEYS == [record.key for record in store.scan("/", at=8)]


async def test_what_was_compacted_cannot_be_read_any_more(store: Store) -> None:
    await store.compact(5)

    assert 5 == store.oldest
    assert 4 == store.count("/", at=5)
    with pytest.raises(Compacted, match="the oldest that is kept is 5"):
        store.scan("/", at=4)


async def test_compacting_what_has_not_happened_forgets_only_what_has(store: Store) -> None:
    await store.compact(1000)

    assert (8, 7) == (store.oldest, store.count("/", at=8))


async def test_compacting_backwards_does_nothing(store: Store) -> None:
    await store.compact(5)
    await store.compact(2)

    assert 5 == store.oldest


async def test_the_future_cannot_be_read(store: Store) -> None:
    with pytest.raises(Ahead, match="revision 9 has not happened yet"):
        store.scan("/", at=9)


@pytest.mark.parametrize(
    ("window", "oldest"),
    [
        pytest.param(Window(changes=3), 7, id="so many changes"),
        pytest.param(Window(size=2000), 6, id="so many bytes"),
        pytest.param(Window(size=1), 9, id="but always the newest"),
    ],
)
async def test_the_window_keeps(window: Window, oldest: int) -> None:
    store = Store.open(None, window=window)
    revision = (await store.create(PODS[0], says("x"))).revision
    for _ in range(8):
        revision = (await store.update(PODS[0], says("x" * 90), revision)).revision

    assert (10, oldest) == (store.revision, store.oldest)
