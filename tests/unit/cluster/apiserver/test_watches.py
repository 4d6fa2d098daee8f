"""Watches: order, selectors, resuming, bookmarks, and the ends."""

import asyncio
from contextlib import AsyncExitStack
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cluster.apiserver.api import (
    DEFINITIONS,
    JOBS,
    MAPS,
    PODS,
    TABLE,
    Api,
    Watch,
    config_map,
    definition,
    job,
    pod,
    serving,
)

from trainmaster.cluster.apiserver.watches import BOOKMARK_EVERY, INITIAL_END, PIECE


async def test_every_change_is_told_in_order(api: Api) -> None:
    start = (await api.get(MAPS)).json["metadata"]["resourceVersion"]
    async with api.watch(MAPS, f"resourceVersion={start}") as watch:
        await api.made(MAPS, config_map("a", x="1"))
        await api.patch(f"{MAPS}/a", {"data": {"x": "2"}})
        await api.made(MAPS, config_map("b"))
        await api.delete(f"{MAPS}/a")

        assert await watch.told(4) == ["ADDED a", "MODIFIED a", "ADDED b", "DELETED a"]
        assert await watch.quiet()


async def test_a_deletion_carries_the_last_state_and_its_own_revision(api: Api) -> None:
    made = await api.made(MAPS, config_map(x="1"))
    async with api.watch(MAPS, f"resourceVersion={made['metadata']['resourceVersion']}") as watch:
        await api.delete(f"{MAPS}/m")
        event = await watch.next()

    assert event is not None
    assert event["object"]["data"] == {"x": "1"}
    assert event["object"]["kind"] == "ConfigMap"
    assert int(event["object"]["metadata"]["resourceVersion"]) == api.store.revision


@pytest.mark.parametrize("query", [
    pytest.param("", id="no revision"),
    pytest.param("resourceVersion=0", id="revision 0: any state will do"),
])
async def test_without_a_revision_what_is_there_comes_first(api: Api, query: str) -> None:
    await api.made(MAPS, config_map("a"))
    async with api.watch(MAPS, query) as watch:
        await api.made(MAPS, config_map("b"))

        assert await watch.told(2) == ["ADDED a", "ADDED b"]


async def test_it_resumes_after_the_revision_last_seen(api: Api) -> None:
    seen = await api.made(MAPS, config_map("a"))
    await api.made(MAPS, config_map("b"))
    await api.delete(f"{MAPS}/a")
    async with api.watch(MAPS, f"resourceVersion={seen['metadata']['resourceVersion']}") as watch:
        assert await watch.told(2) == ["ADDED b", "DELETED a"]


async def test_other_namespaces_and_other_kinds_are_not_told(api: Api) -> None:
    await api.made("/api/v1/namespaces", {"metadata": {"name": "other"}})
    async with api.watch(MAPS) as here, api.watch("/api/v1/configmaps") as everywhere:
        await api.made("/api/v1/namespaces/other/configmaps", config_map("there"))
        await api.made(PODS, pod())
        await api.made(MAPS, config_map("here"))

        assert await here.told(1) == ["ADDED here"]
        assert await everywhere.told(2) == ["ADDED there", "ADDED here"]


class TestSelectors:
    async def test_leaving_the_selection_is_a_deletion_and_coming_back_an_addition(self, api: Api) -> None:
        async with api.watch(MAPS, "labelSelector=l%3Dx") as watch:
            await api.made(MAPS, config_map("a", {"l": "x"}, n="1"))
            await api.patch(f"{MAPS}/a", {"metadata": {"labels": {"l": "y"}}, "data": {"n": "2"}})
            await api.patch(f"{MAPS}/a", {"data": {"n": "3"}})
            await api.patch(f"{MAPS}/a", {"metadata": {"labels": {"l": "x"}}})
            await api.made(MAPS, config_map("b", {"l": "y"}))
            await api.delete(f"{MAPS}/b")
            first, gone, back = [await watch.next() for _ in range(3)]

            assert first
            assert gone
            assert back
            assert ["ADDED", "DELETED", "ADDED"] == [event["type"] for event in (first, gone, back)]
            # What left is told as it was when it could last be seen, at the revision that took it away.
            assert gone["object"]["data"] == {"n": "1"}
            assert int(gone["object"]["metadata"]["resourceVersion"]) == int(
                first["object"]["metadata"]["resourceVersion"]) + 1
            assert await watch.quiet()

    async def test_by_field(self, api: Api) -> None:
        async with api.watch(PODS, "fieldSelector=spec.nodeName%3Dn") as watch:
            await api.made(PODS, pod("a"))
            await api.made(PODS, pod("b"))
            await api.post(f"{PODS}/b/binding", {"target": {"name": "n"}})

            assert await watch.told(1) == ["ADDED b"]
            assert await watch.quiet()

    @pytest.mark.parametrize("path", [
        pytest.param(f"{MAPS}?fieldSelector=metadata.name%3Db", id="by selector"),
        pytest.param("/api/v1/watch/namespaces/default/configmaps/b?", id="by its old path"),
        pytest.param("/api/v1/configmaps?fieldSelector=metadata.name%3Db", id="in all namespaces"),
    ])
    async def test_one_object_by_name(self, api: Api, path: str) -> None:
        where, _, query = path.partition("?")
        async with api.watch(where, query) as watch:
            await api.made(MAPS, config_map("a"))
            await api.made(MAPS, config_map("b"))

            assert await watch.told(1) == ["ADDED b"]
            assert await watch.quiet()


class TestInitialEvents:
    QUERY = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

    async def test_what_is_there_then_a_marked_bookmark_then_the_changes(self, api: Api) -> None:
        await api.made(MAPS, config_map("a"))
        async with api.watch(MAPS, self.QUERY) as watch:
            assert await watch.told(1) == ["ADDED a"]
            mark = await watch.next()
            await api.made(MAPS, config_map("b"))
            assert await watch.told(1) == ["ADDED b"]

        assert mark is not None
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == "ConfigMap"
        assert mark["object"]["metadata"]["annotations"] == {INITIAL_END: "true"}

    async def test_an_empty_collection_is_marked_too(self, api: Api) -> None:
        async with api.watch(MAPS, self.QUERY) as watch:
            assert await watch.told(1) == ["BOOKMARK"]

    @pytest.mark.parametrize("query", [
        pytest.param("sendInitialEvents=true", id="without a match"),
        pytest.param("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", id="with another match"),
        pytest.param("resourceVersionMatch=NotOlderThan&resourceVersion=1", id="a match alone"),
    ])
    async def test_half_of_it_is_refused(self, api: Api, query: str) -> None:
        assert (await api.get(MAPS, f"watch=1&{query}")).code == 422


async def test_a_quiet_watch_says_how_far_it_is(api: Api) -> None:
    async with api.watch(MAPS, "resourceVersion=5&allowWatchBookmarks=true") as watch:
        await api.made(PODS, pod())
        event = await api.clock.run(watch.next(), within=BOOKMARK_EVERY + 1)

    assert event is not None
    assert ("BOOKMARK", str(api.store.revision)) == (event["type"], event["object"]["metadata"]["resourceVersion"])


async def test_it_ends_when_its_time_is_over(api: Api) -> None:
    async with api.watch(MAPS, "timeoutSeconds=7") as watch:
        assert await api.clock.run(watch.next()) is None
        assert api.clock.monotonic() == 7


async def test_a_forgotten_revision_is_told_as_an_event(api: Api) -> None:
    for name in "abc":
        await api.made(MAPS, config_map(name))
    await api.store.compact(api.store.revision)
    async with api.watch(MAPS, "resourceVersion=2") as watch:
        event = await watch.next()

    assert event is not None
    assert event["type"] == "ERROR"
    assert (410, "Expired") == (event["object"]["code"], event["object"]["reason"])
    assert event["object"]["message"].startswith("too old resource version: 2 (")


async def test_a_revision_to_come_is_refused(api: Api) -> None:
    answer = await api.get(MAPS, "watch=true&resourceVersion=99999")

    assert (504, 1) == (answer.code, answer.json["details"]["retryAfterSeconds"])
    assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_tables_carry_the_columns_once(api: Api) -> None:
    async with api.watch(MAPS, accept=TABLE) as watch:
        await api.made(MAPS, config_map("a", x="1"))
        await api.made(MAPS, config_map("b"))
        first, second = await watch.next(), await watch.next()

    assert first
    assert second
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert first["object"]["rows"][0]["cells"] == ["a", 1, "0s"]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["object"]["metadata"]["name"] == "b"


@pytest.mark.parametrize("word", ["true", "True", "1"])
async def test_the_ways_clients_say_yes(api: Api, word: str) -> None:
    assert b"" == (await api.clock.run(api.get(MAPS, f"watch={word}&timeoutSeconds=1"))).body


async def test_watches_of_a_kind_end_with_its_definition(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(JOBS, job("a"))
    async with api.watch(JOBS) as watch:
        await api.delete(f"{DEFINITIONS}/tfjobs.kubeflow.org")

        assert await watch.told(2) == ["ADDED a", "DELETED a"]
        assert await watch.next() is None


async def test_watches_end_with_the_server() -> None:
    async with serving() as api, api.watch(MAPS) as watch:
        await api.server.close()

        assert await watch.next() is None


async def test_a_watch_that_was_never_read_is_released(api: Api) -> None:
    async with api.watch(MAPS):
        assert len(api.server._watches) == 1

    assert len(api.server._watches) == 0


Steps = list[tuple[str, str]]
steps = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", "gone"])), max_size=25)


@settings(max_examples=40, deadline=None)
@given(steps, steps, st.sampled_from(["", "l=x", "l!=x", "l in (x,y)", "!l"]))
def test_replaying_a_watch_gives_the_list(before: Steps, after: Steps, labels: str) -> None:
    """Whoever lists and then watches knows what whoever lists later knows, whatever happened and is selected."""

    async def run() -> None:
        async with serving() as api:
            await _happen(api, before)
            query = f"labelSelector={quote(labels)}"
            listed = (await api.get(MAPS, query)).json
            known = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in listed["items"]}
            async with api.watch(MAPS, f"{query}&resourceVersion={listed['metadata']['resourceVersion']}") as watch:
                await _happen(api, after)
                await api.made(MAPS, config_map("end", {"l": "x"} if labels in {"l=x", "l in (x,y)"} else {}))
                await _follow(watch, known)
            found = (await api.get(MAPS, query)).json["items"]

            assert {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in found} == known

    asyncio.run(run())


async def _follow(watch: Watch, known: dict[str, str]) -> None:
    """Apply events until the last object was seen; what is told must fit what is known."""
    while "end" not in known:
        event = await asyncio.wait_for(watch.next(), 60)
        assert event is not None
        meta = event["object"]["metadata"]
        assert (event["type"] == "ADDED") is (meta["name"] not in known), event
        if event["type"] == "DELETED":
            del known[meta["name"]]
        else:
            known[meta["name"]] = meta["resourceVersion"]


async def _happen(api: Api, steps: Steps) -> None:
    for name, label in steps:
        if label == "gone":
            await api.delete(f"{MAPS}/{name}")
        elif (await api.patch(f"{MAPS}/{name}", {"metadata": {"labels": {"l": label}}})).code == 404:
            await api.made(MAPS, config_map(name, {"l": label}))


async def test_watchers_who_ask_for_the_same_are_told_the_same_bytes(api: Api) -> None:
    """Put together once, however many there are; who asks for something else is told something else."""
    start = (await api.get(MAPS)).json["metadata"]["resourceVersion"]
    asked = [f"resourceVersion={start}"] * 2 + [f"resourceVersion={start}&labelSelector=app%3Dx"] * 2
    async with AsyncExitStack() as stack:
        watches = [await stack.enter_async_context(api.watch(MAPS, query)) for query in asked]
        reading = [asyncio.ensure_future(anext(watch.stream.chunks())) for watch in watches]
        await api.clock.settle()
        await api.made(MAPS, config_map("a", {"app": "x"}))
        first, second, third, fourth = await asyncio.gather(*reading)

    assert first is second
    assert third is fourth
    assert first == third, "and it is the same change"


async def test_what_is_there_first_comes_in_pieces(api: Api) -> None:
    for index in range(PIECE + 1):
        await api.made(MAPS, config_map(f"m-{index:03}"))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with api.watch(MAPS) as watch:
        other = asyncio.ensure_future(count())
        pieces = [await anext(watch.stream.chunks()) for _ in range(2)]
        other.cancel()

    assert [PIECE, 1] == [piece.count(b"\n") for piece in pieces]
    assert turns > 0, "others have a turn in between"
