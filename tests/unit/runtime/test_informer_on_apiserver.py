"""The informer against the embedded API server: what the hand-moved peer of the other tests takes for granted."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.api.core import CONFIG_MAPS, PODS
from trainmaster.api.meta import Object, name_of, revision_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, NotFound
from trainmaster.runtime.informer import Informer
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import EVERYTHING, Old, Plan, nothing, seeded


class Follower:
    """An informer that runs, and the state that its callbacks tell."""

    def __init__(self, cluster: Cluster, plan: Plan = nothing, labels: str = "", seed: int = 1) -> None:
        self.wire = cluster.transport("follower", plan)
        self.informer = Informer(
            Client(self.wire), PODS, clock=cluster.clock, labels=labels, chance=random.Random(seed)
        )
        self.told: list[str] = []
        self.replayed: dict[str, Object] = {}
        self.informer.on_change(self.hear)
        self.task = asyncio.create_task(self.informer.run())

    def hear(self, before: Object | None, after: Object | None) -> None:
        name = name_of(after or before or {})
        self.told.append(f"{'-' if before is None else 'x'}{'-' if after is None else 'x'} {name}")
        if after is None:
            del self.replayed[name]
        else:
            self.replayed[name] = after

    async def stop(self) -> None:
        assert not self.task.done()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def revisions(things: list[Object]) -> dict[str, str]:
    return {name_of(thing): revision_of(thing) for thing in things}


def slim(thing: Object) -> Object:
    """As a local copy has it: without the record of who owns which field."""
    return {**thing, "metadata": {key: value for key, value in thing["metadata"].items() if key != "managedFields"}}


async def test_what_is_listed_and_watched_is_what_the_server_has(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(PODS, pod("before"))
    follower = Follower(cluster)
    await clock.settle()
    await client.create(PODS, pod("after"))
    await client.patch(PODS, "after", "default", {"metadata": {"labels": {"a": "b"}}})
    await client.delete(PODS, "before", "default", grace=0)
    await clock.settle()

    assert ["-x before", "-x after", "xx after", "x- before"] == follower.told
    assert [slim(thing) for thing in (await client.list(PODS)).items] == follower.informer.copy.all()
    await follower.stop()


async def test_a_list_in_pages_is_complete(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    for number in range(1100):
        await client.create(PODS, pod(f"pod-{number}"))
    follower = Follower(cluster)
    await clock.settle()

    assert 1100 == len(follower.informer.copy)
    await follower.stop()


async def test_after_the_server_forgot_only_the_difference_is_told(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    for name in ("same", "gone", "again"):
        await client.create(PODS, pod(name))
    follower = Follower(cluster)
    await clock.settle()
    follower.told.clear()

    await follower.wire.disconnect()
    await client.delete(PODS, "gone", "default", grace=0)
    await client.delete(PODS, "again", "default", grace=0)
    await client.create(PODS, pod("again"))
    await client.create(PODS, pod("new"))
    await cluster.forget()
    follower.wire.connect()
    await clock.advance(seconds=60)

    assert ["-x again", "-x new", "x- again", "x- gone"] == sorted(follower.told)
    assert revisions((await client.list(PODS)).items) == revisions(follower.informer.copy.all())
    await follower.stop()


async def test_quiet_watches_live_through_forgetting_by_their_bookmarks(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    """Pods do not change, other kinds do: without bookmarks the revision to go on from would be forgotten."""
    lists: list[str] = []

    def plan(request: object, _: int) -> None:
        lists.append(str(request))

    follower = Follower(cluster, plan)
    await clock.settle()
    for number in range(20):
        await client.create(
            CONFIG_MAPS, {"metadata": {"name": f"c{number}", "namespace": "default"}}
        )
    await clock.advance(seconds=120)
    await cluster.forget()
    await clock.advance(minutes=30)

    assert 1 == len([request for request in lists if "watch" not in request])
    assert len(lists) > 3
    await follower.stop()


async def test_leaving_the_selector_is_an_end_and_coming_back_a_beginning(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(PODS, pod("a", labels={"job": "x"}))
    follower = Follower(cluster, labels="job=x")
    await clock.settle()
    for value in ("y", "z", "x"):
        await client.patch(PODS, "a", "default", {"metadata": {"labels": {"job": value}}})
    await clock.settle()

    assert ["-x a", "x- a", "-x a"] == follower.told
    await follower.stop()


@dataclass(frozen=True)
class Episode:
    """What happens to pods between two pauses, and whether the follower sees it as it happens."""

    offline: bool
    changes: list[tuple[str, str]]
    forgotten: bool


CHANGES = st.tuples(st.sampled_from(["make", "make", "change", "delete"]), st.sampled_from("abc"))
EPISODES = st.builds(
    Episode,
    offline=st.booleans(),
    changes=st.lists(CHANGES, max_size=6),
    forgotten=st.booleans(),
)


async def change(client: Client, verb: str, name: str) -> None:
    with suppress(AlreadyExists, NotFound):
        match verb:
            case "make":
                await client.create(PODS, pod(name))
            case "change":
                label = (await client.get(PODS, name, "default"))["metadata"]["resourceVersion"]
                await client.patch(PODS, name, "default", {"metadata": {"labels": {"was": label}}})
            case _:
                await client.delete(PODS, name, "default", grace=0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rate=st.sampled_from([0.0, 0.3, 0.8]),
    episodes=st.lists(EPISODES, min_size=1, max_size=6),
)
def test_whatever_goes_wrong_the_copy_becomes_what_the_server_has(
    seed: int, rate: float, episodes: list[Episode]
) -> None:
    faults = [fault for fault in EVERYTHING if not isinstance(fault, Old)]

    async def run() -> None:
        clock = VirtualClock()
        async with embedded(clock) as cluster:
            client = cluster.client()
            follower = Follower(cluster, seeded(seed, rate, faults, until=50), seed=seed)
            for episode in episodes:
                if episode.offline:
                    await follower.wire.disconnect()
                for verb, name in episode.changes:
                    await change(client, verb, name)
                if episode.forgotten:
                    await cluster.forget()
                follower.wire.connect()
                await clock.advance(seconds=3)
            await clock.advance(minutes=20)
            truth = (await client.list(PODS)).items
            await follower.stop()

        assert revisions(truth) == revisions(follower.informer.copy.all())
        assert {name_of(thing): slim(thing) for thing in truth} == follower.replayed

    asyncio.run(run())
