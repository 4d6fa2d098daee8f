"""The shell of the scheduler on the real embedded API server: what is decided is done, and told once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from trainmaster.api.core import EVENTS, NODES, PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler import loop
from trainmaster.kube.client import Client
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import Plan, nothing


@asynccontextmanager
async def scheduling(plan: Plan = nothing) -> AsyncIterator[tuple[VirtualClock, Cluster, Client]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        running = asyncio.create_task(loop.run(cluster.client("scheduler", plan), clock))
        try:
            yield clock, cluster, cluster.client()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def pod(name: str, cpu: str = "1") -> Object:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}


async def add_node(client: Client, name: str = "a", cpu: str = "2") -> None:
    await client.create(NODES, {"metadata": {"name": name}})
    ready = {"type": "Ready", "status": "True"}
    status = {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "10"}, "conditions": [ready]}
    await client.patch(NODES, name, "", {"status": status}, subresource="status")


async def nodes_of_pods(client: Client) -> dict[str, str]:
    return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in (await client.list(PODS, "default")).items}


async def test_a_pod_that_fits_is_bound_and_told() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        await client.create(PODS, pod("x"))
        await clock.settle()

        assert {"x": "a"} == await nodes_of_pods(client)
        (event,) = (await client.list(EVENTS, "default")).items
        assert ("Scheduled", "Successfully assigned default/x to a") == (event["reason"], event["message"])


async def test_a_pod_that_fits_nowhere_says_why_once_and_goes_when_room_appears() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client, cpu="1")
        await client.create(PODS, pod("x", cpu="2"))
        await client.create(PODS, pod("other", cpu="100m"))   # another change must not make it say the same again
        await clock.settle()

        waiting = await client.get(PODS, "x", "default")
        told = [c["message"] for c in waiting["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert ["0/1 nodes are available: 1 Insufficient cpu."] == told
        events = [e for e in (await client.list(EVENTS, "default")).items if e["reason"] == "FailedScheduling"]
        assert [1] == [event["count"] for event in events]

        await add_node(client, "b", cpu="2")
        await clock.settle()

        assert {"x": "b", "other": "a"} == await nodes_of_pods(client)


async def test_room_given_to_one_pod_is_not_given_to_another_before_the_watch_shows_it() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client, cpu="2")
        for name in ("p1", "p2", "p3"):
            await client.create(PODS, pod(name))
        await clock.settle()

        assert 2 == sum(bool(node) for node in (await nodes_of_pods(client)).values())


async def test_pods_of_other_schedulers_are_left_alone() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        foreign = pod("x")
        foreign["spec"]["schedulerName"] = "volcano"
        await client.create(PODS, foreign)
        await clock.settle()

        assert {"x": ""} == await nodes_of_pods(client)
