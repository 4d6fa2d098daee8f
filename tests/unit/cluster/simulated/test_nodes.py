"""Simulated nodes on the embedded API server: pods run at once, end when they should, and go when they must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trainmaster.api.core import NODES, PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.simulated import nodes
from trainmaster.kube.client import Client
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


@asynccontextmanager
async def simulated() -> AsyncIterator[tuple[VirtualClock, Client]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        running = asyncio.create_task(nodes.run(client, clock, 2, {"cpu": "64", "nvidia.com/gpu": "8"}))
        await clock.settle()
        try:
            yield clock, client
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def pod(name: str, node: str = "simulated-0", **annotations: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "annotations": {
        f"trainmaster.dev/simulated-{what.replace('_', '-')}": value for what, value in annotations.items()}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}}


async def phase(client: Client, name: str) -> str:
    return str((await client.get(PODS, name, "default"))["status"]["phase"])


async def test_nodes_are_ready_and_offer_what_was_asked_for() -> None:
    async with simulated() as (_, client):
        found = {node["metadata"]["name"]: node["status"]["allocatable"] for node in (await client.list(NODES)).items}
        assert {"simulated-0", "simulated-1"} == found.keys()
        assert ("8", "64", "110") == tuple(found["simulated-0"][what] for what in ("nvidia.com/gpu", "cpu", "pods"))
        second = await client.get(NODES, "simulated-1")
        assert [("InternalIP", "198.19.0.2"), ("Hostname", "simulated-1")] == [
            (each["type"], each["address"]) for each in second["status"]["addresses"]]


async def test_a_pod_runs_until_it_is_deleted() -> None:
    async with simulated() as (clock, client):
        await client.create(PODS, pod("x"))
        await clock.advance(minutes=10)
        assert "Running" == await phase(client, "x")

        await client.delete(PODS, "x", "default")
        await clock.settle()
        assert [] == (await client.list(PODS, "default")).items


async def test_a_pod_ends_when_its_annotations_say_so() -> None:
    async with simulated() as (clock, client):
        await client.create(PODS, pod("good", seconds="30"))
        await client.create(PODS, pod("bad", seconds="30", exit_code="3"))
        await clock.advance(29)
        assert ("Running", "Running") == (await phase(client, "good"), await phase(client, "bad"))
        await clock.advance(2)

        assert ("Succeeded", "Failed") == (await phase(client, "good"), await phase(client, "bad"))
        (container,) = (await client.get(PODS, "bad", "default"))["status"]["containerStatuses"]
        assert 3 == container["state"]["terminated"]["exitCode"]


@pytest.mark.parametrize("seconds", ["inf", "nan", "-1", "1e300", "soon"])
async def test_a_time_that_is_none_means_for_ever(seconds: str) -> None:
    async with simulated() as (clock, client):
        await client.create(PODS, pod("x", seconds=seconds))
        await clock.advance(hours=1)
        assert "Running" == await phase(client, "x")


async def test_pods_of_other_nodes_are_left_alone() -> None:
    async with simulated() as (clock, client):
        await client.create(PODS, pod("x", node="elsewhere"))
        await clock.settle()
        assert "Pending" == await phase(client, "x")
