"""All controllers together on one server: a day in the life of a cluster, with deaths and bad weather."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.unit.cluster.controllers.backed import service
from tests.unit.cluster.controllers.stage import at_work, config_map, make, names, namespace
from tests.unit.cluster.controllers.test_endpoints import listed, place

from trainmaster.api.core import CONFIG_MAPS, ENDPOINTS, EVENTS, NAMESPACES, SERVICE_ACCOUNTS, SERVICES
from trainmaster.api.meta import name_of
from trainmaster.cluster.apiserver.auth import account
from trainmaster.cluster.controllers import main
from trainmaster.cluster.controllers.announce import Api
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.kube.client import Client
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import EVERYTHING, Old, Write, crash_points, seeded

AUTHORITY = b"authority"
HERE = Api("10.88.0.1", 6443)


def one(client: Client) -> Callable[[str], Client]:
    """The same client for all of them."""
    return lambda _name: client


async def deeds(client: Client, clock: VirtualClock, minutes: float = 59) -> None:
    """Something for every controller to do, and the time for it."""
    await client.create(NAMESPACES, namespace("brief"))
    await client.create(SERVICES, service())
    [owner] = await make(client, config_map("owner"))
    await make(client, config_map("child", owner), config_map("content", namespace="brief"))
    await client.create(EVENTS, {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {}})
    await clock.advance(seconds=10)
    await place(client, 1)
    await client.delete(CONFIG_MAPS, "owner", "default", propagation="Foreground")
    await client.delete(NAMESPACES, "brief")
    await clock.advance(minutes=minutes)
    await place(client, 2, ready=False)
    await clock.advance(minutes=2)


async def state(client: Client) -> dict[str, Any]:
    return {
        "namespaces": [name_of(each) for each in (await client.list(NAMESPACES)).items],
        "accounts": len((await client.list(SERVICE_ACCOUNTS)).items),
        "certificates": len((await client.list(CONFIG_MAPS, fields="metadata.name=kube-root-ca.crt")).items),
        "maps": await names(client),
        "events": await names(client, EVENTS),
        "backing": await listed(client),
        "endpoints": await names(client, ENDPOINTS),
    }


DONE = {
    "namespaces": ["default", "kube-node-lease", "kube-public", "kube-system"],
    "accounts": 4, "certificates": 4, "maps": [], "events": [], "backing": (["p-1"], ["p-2"]),
    "endpoints": ["kubernetes", "web"],
}


async def test_each_does_its_part_with_its_own_rights(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    def client_of(name: str) -> Client:
        return cluster.client_as(account("kube-system", name))

    async with at_work(main.run(client_of, clock, authority=AUTHORITY, api=HERE)):
        await deeds(client, clock)

    assert DONE == await state(client)
    assert 0 == sum(count for (_, code), count in cluster.server.traffic.done.items() if code == 403)


async def test_at_rest_nothing_is_written(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    wire = cluster.transport("controllers")
    async with at_work(main.run(one(Client(wire)), clock, authority=AUTHORITY, api=HERE)):
        await deeds(client, clock)
        wire.writes.clear()
        await clock.advance(minutes=30)

    assert [] == wire.writes


async def test_without_an_address_nobody_announces_the_server(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    async with at_work(main.run(one(cluster.client()), clock, authority=AUTHORITY)):
        await clock.advance(seconds=10)

    assert [] == await names(client, SERVICES)


async def story(dies_after: int | None) -> tuple[Sequence[Write], dict[str, Any]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        life = cluster.transport("first life", die_after=dies_after)
        async with at_work(main.run(one(Client(life)), clock, authority=AUTHORITY, api=HERE)) as tasks:
            await deeds(client, clock, minutes=1)
            if tasks[0].done():
                async with at_work(main.run(one(cluster.client()), clock, authority=AUTHORITY, api=HERE)):
                    await clock.advance(minutes=2)
        return list(life.writes), await state(client)


async def test_dying_after_any_write_changes_nothing_in_the_end() -> None:
    async for where, clean, end in crash_points(story):
        assert {**DONE, "events": ["e"]} == clean == end, where


@pytest.mark.parametrize("seed", range(3))
async def test_bad_weather_changes_nothing_in_the_end(
    seed: int, cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    faults = [fault for fault in EVERYTHING if not isinstance(fault, Old)]
    plan = seeded(seed, rate=0.2, faults=faults, until=1500)
    async with at_work(main.run(one(cluster.client(plan=plan)), clock, authority=AUTHORITY, api=HERE)):
        await deeds(client, clock)
        await clock.advance(minutes=40)

    assert DONE == await state(client)


async def test_the_collector_begins_anew_after_a_failure(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    """Its graph is gone with it. The kinds are known by then, so that no news of them would tell it to look."""
    kinds = Kinds(cluster.client(), clock)
    async with at_work(kinds.run()):
        for life in ("first", "second"):
            async with at_work(main._over_everything(one(cluster.client(life)), clock, kinds, AUTHORITY)):
                await clock.advance(seconds=1)
                [owner] = await make(client, config_map("owner"))
                await make(client, config_map("child", owner))
                await client.delete(CONFIG_MAPS, "owner", "default")
                await clock.advance(seconds=1)

                assert [] == await names(client), life
