"""Quotas on the embedded server, on virtual time: what is used goes up at once and comes down soon."""

from typing import Any

import pytest
from tests.unit.cluster.controllers.stage import at_work, config_map, definition

from trainmaster.api.core import CONFIG_MAPS, DEFINITIONS, PODS
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.controllers import quotas
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.cluster.controllers.quotas import QUOTAS
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Forbidden
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster
from trainmaster.testing.faults import EVERYTHING, Old, seeded


def quota(**hard: str) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
            "spec": {"hard": hard}}


def pod(name: str, **requests: str) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [container]}}


async def counting(client: Client, clock: VirtualClock) -> None:
    inventory = Inventory(client, clock)
    async with at_work(inventory.run()):
        await quotas.run(client, clock, inventory)


async def status(client: Client) -> Any:
    return (await client.get(QUOTAS, "q", "default")).get("status")


async def test_a_new_quota_counts_what_is_there(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(PODS, pod("a", cpu="500m", memory="1Gi"))
    async with at_work(counting(cluster.client(), clock)):
        await clock.advance(seconds=1)
        await client.create(QUOTAS, quota(cpu="1", memory="2Gi", pods="3", resourcequotas="1"))
        await clock.advance(seconds=1)
        hard = {"cpu": "1", "memory": "2Gi", "pods": "3", "resourcequotas": "1"}

        assert {"hard": hard, "used": {"cpu": "500m", "memory": "1Gi", "pods": "1", "resourcequotas": "1"}} == \
            await status(client)


async def test_what_ends_is_given_back(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(QUOTAS, quota(**{"pods": "2", "count/pods": "5", "configmaps": "2"}))
    async with at_work(counting(cluster.client(), clock)):
        await clock.advance(seconds=1)
        seen: list[tuple[str, ...]] = []
        ended = await client.create(PODS, pod("a"))
        for step in (
            client.create(PODS, pod("b")), client.create(CONFIG_MAPS, config_map("m")),
            client.replace(PODS, {**ended, "status": {**ended["status"], "phase": "Succeeded"}}, subresource="status"),
            client.delete(PODS, "b", "default", grace=0), client.delete(CONFIG_MAPS, "m", "default"),
        ):
            await step
            await clock.advance(seconds=1)
            used = (await status(client))["used"]
            seen.append(tuple(used[name] for name in ("pods", "count/pods", "configmaps")))

        assert [("2", "2", "0"), ("2", "2", "1"), ("1", "2", "1"), ("0", "1", "1"), ("0", "1", "0")] == seen


async def test_a_changed_limit_is_in_force_soon(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(QUOTAS, quota(configmaps="5"))
    async with at_work(counting(cluster.client(), clock)):
        await clock.advance(seconds=1)
        await client.patch(QUOTAS, "q", "default", {"spec": {"hard": {"configmaps": "0"}}})
        await clock.advance(seconds=1)

        with pytest.raises(Forbidden, match="exceeded quota: q"):
            await client.create(CONFIG_MAPS, config_map("m"))


async def test_a_status_that_somebody_else_wrote_is_put_right(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(QUOTAS, quota(configmaps="5"))
    async with at_work(counting(cluster.client(), clock)):
        await clock.advance(seconds=1)
        await client.patch(QUOTAS, "q", "default", {"status": {"hard": {"configmaps": "9"}}}, subresource="status")
        await clock.advance(seconds=1)
        stands = (await status(client))["hard"]
        await clock.advance(seconds=10)

        assert ({"configmaps": "9"}, {"configmaps": "5"}) == (stands, (await status(client))["hard"])


async def test_custom_kinds_are_counted(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    widgets = Resource("example.com", "v1", "widgets", "Widget")
    await client.create(DEFINITIONS, definition("widgets"))
    await client.create(QUOTAS, quota(**{"count/widgets.example.com": "1"}))
    async with at_work(counting(cluster.client(), clock)):
        await clock.advance(seconds=5)
        thing = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}}
        await client.create(widgets, thing)
        with pytest.raises(Forbidden):
            await client.create(widgets, {**thing, "metadata": {"name": "x", "namespace": "default"}})
        await client.delete(widgets, "w", "default")
        await clock.advance(seconds=1)

        assert {"count/widgets.example.com": "0"} == (await status(client))["used"]


@pytest.mark.parametrize("seed", range(3))
async def test_a_bad_day_ends_well(cluster: Cluster, client: Client, clock: VirtualClock, seed: int) -> None:
    bad = seeded(seed, faults=[fault for fault in EVERYTHING if not isinstance(fault, Old)], until=200)
    async with at_work(counting(cluster.client(plan=bad), clock)):
        await client.create(QUOTAS, quota(configmaps="9"))
        for number in range(9):
            await client.create(CONFIG_MAPS, config_map(f"m-{number}"))
            await clock.advance(seconds=20)
            if number % 2:
                await client.delete(CONFIG_MAPS, f"m-{number}", "default")
        await clock.advance(minutes=10)

        assert {"configmaps": "5"} == (await status(client))["used"]
