"""Events are forgotten in time."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.cluster.controllers.stage import at_work, names

from trainmaster.api.core import EVENTS
from trainmaster.api.meta import Object, micro_timestamp, timestamp
from trainmaster.cluster.controllers import expiry
from trainmaster.cluster.controllers.expiry import last_seen
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.testing.clock import NOON, VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import Answer, Delay, Write, crash_points, on


def ago(**span: float) -> str:
    return timestamp(NOON - timedelta(**span))


def event(name: str = "e", created: str = "", **fields: Any) -> Object:
    made: Object = {"metadata": {"name": name, "namespace": "default"}, "involvedObject": {}, **fields}
    if created:
        made["metadata"]["creationTimestamp"] = created
    return made


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(event(created=ago(hours=3)), timedelta(hours=3), id="made, and nothing else: from then"),
        pytest.param(event(created=ago(hours=3), firstTimestamp=ago(hours=3), lastTimestamp=ago(minutes=5)),
                     timedelta(minutes=5), id="it happened again: from the last time"),
        pytest.param(event(created=ago(hours=3), eventTime=micro_timestamp(NOON - timedelta(seconds=90))),
                     timedelta(seconds=90), id="in the newer form"),
        pytest.param(event(created=ago(hours=3), eventTime=ago(hours=2), series={"lastObservedTime": ago(hours=1)}),
                     timedelta(hours=1), id="a series"),
        pytest.param(event(created=ago(minutes=1), eventTime="2017-09-19T13:49:16.000000Z"), timedelta(minutes=1),
                     id="one that is said to be years old was still made a minute ago"),
        pytest.param(event(created=ago(hours=3), lastTimestamp=ago(hours=-5)), timedelta(0),
                     id="one from the future counts as seen now"),
        pytest.param(event(created=ago(hours=3), lastTimestamp="nonsense", eventTime=None, series="x"),
                     timedelta(hours=3), id="what cannot be read does not count"),
        pytest.param(event(), timedelta(0), id="nothing at all: now"),
    ],
)
def test_how_old_an_event_is(given: Object, expected: timedelta) -> None:
    assert expected == NOON - last_seen(given, NOON)


async def test_each_goes_when_its_hour_is_over(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    async with at_work(expiry.run(cluster.client(), clock)):
        await client.create(EVENTS, event("first"))
        await clock.advance(minutes=30)
        await client.create(EVENTS, event("second"))
        left = []
        for minutes in (29.9, 0.2, 29.5, 0.5):
            await clock.advance(minutes=minutes)
            left.append(await names(client, EVENTS))

    assert [["first", "second"], ["second"], ["second"], []] == left


async def test_one_that_happens_again_lives_on(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    async with at_work(expiry.run(cluster.client(), clock)):
        await client.create(EVENTS, event())
        await clock.advance(minutes=50)
        await client.patch(EVENTS, "e", "default", {"count": 2, "lastTimestamp": timestamp(clock.now())})
        await clock.advance(minutes=59)
        assert ["e"] == await names(client, EVENTS)

        await clock.advance(minutes=2)
        assert [] == await names(client, EVENTS)


async def test_one_that_happens_while_it_is_forgotten_lives_on(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    async with at_work(expiry.run(cluster.client(plan=on("DELETE", "/events/e", Delay(2.0))), clock)):
        await client.create(EVENTS, event())
        await clock.advance(minutes=60, seconds=1)
        await client.patch(EVENTS, "e", "default", {"count": 2, "lastTimestamp": timestamp(clock.now())})
        await clock.advance(minutes=30)

        assert ["e"] == await names(client, EVENTS)


async def test_between_two_deletions_nothing_is_asked(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    for number in range(50):
        await client.create(EVENTS, event(f"e-{number}"))
    asked: list[str] = []

    def listen(request: Request, _number: int) -> None:
        if not any(name == "watch" for name, _ in request.query):
            asked.append(request.method)

    async with at_work(expiry.run(cluster.client(plan=listen), clock)):
        await clock.settle()
        asked.clear()
        await clock.advance(minutes=59)
        assert [] == asked

        await clock.advance(minutes=2)
        assert ["DELETE"] * 50 == asked


async def test_one_that_cannot_be_deleted_keeps_no_other(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    def broken(request: Request, _number: int) -> Answer | None:
        return Answer(500) if request.method == "DELETE" and request.path.endswith("/stuck") else None

    for name in ("stuck", "a", "b", "c", "d", "e"):
        await client.create(EVENTS, event(name))
    async with at_work(expiry.run(cluster.client(plan=broken), clock)):
        await clock.advance(hours=2)

        assert ["stuck"] == await names(client, EVENTS)


async def story(dies_after: int | None) -> tuple[Sequence[Write], list[str]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        for number in range(5):
            await client.create(EVENTS, event(f"e-{number}"))
        life = cluster.transport("first life", die_after=dies_after)
        async with at_work(expiry.run(Client(life), clock)) as tasks:
            await clock.advance(minutes=61)
            await client.create(EVENTS, event("young"))
            if tasks[0].done():
                async with at_work(expiry.run(cluster.client(), clock)):
                    await clock.advance(minutes=1)
        return list(life.writes), await names(client, EVENTS)


async def test_dying_after_any_write_changes_nothing_in_the_end() -> None:
    async for where, clean, end in crash_points(story):
        assert ["young"] == clean == end, where
