"""Claims that are made for one pod."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeAlias

import pytest

from trainmaster.api.claims import claims_of
from trainmaster.api.core import CLAIMS, EVENTS, PODS
from trainmaster.api.meta import Object, key_of
from trainmaster.cluster.controllers.storage.ephemeral import run
from trainmaster.kube.client import Client
from trainmaster.testing.builders import pod as built
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded

SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
World: TypeAlias = tuple[Client, VirtualClock]
TEMPLATE = {"metadata": {"labels": {"kind": "scratch"}}, "spec": SPEC}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        running = asyncio.create_task(run(cluster.client(), clock))
        await clock.settle()
        yield cluster.client(), clock
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def seen(world: World) -> Object:
    client, clock = world
    pod = await client.create(PODS, built("a", volumes=[
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}, {"name": "other", "emptyDir": {}}]))
    await clock.settle()
    return pod


async def test_a_pod_gets_the_claim_of_its_template_and_owns_it(world: World) -> None:
    pod = await seen(world)

    (claim,) = (await world[0].list(CLAIMS, "default")).items
    assert ["a-scratch"] == claims_of(pod) == [key_of(claim).name]
    assert ({"kind": "scratch"}, "1Gi") == (
        claim["metadata"]["labels"], claim["spec"]["resources"]["requests"]["storage"])
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (pod["metadata"]["uid"], True, True) == (owner["uid"], owner["controller"], owner["blockOwnerDeletion"])


async def test_a_claim_of_somebody_else_is_left_alone_and_told_of(world: World) -> None:
    await world[0].create(CLAIMS, {"metadata": {"name": "a-scratch", "namespace": "default"}, "spec": SPEC})

    await seen(world)

    assert ["PVC default/a-scratch was not created for pod default/a (pod is not owner)"] == [
        event["message"] for event in (await world[0].list(EVENTS, "default")).items]
    assert "ownerReferences" not in (await world[0].get(CLAIMS, "a-scratch", "default"))["metadata"]


async def test_a_pod_that_was_there_first_gets_its_claim_too() -> None:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        await cluster.client().create(PODS, built("plain"))
        await cluster.client().create(PODS, built("a", volumes=[
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}]))
        running = asyncio.create_task(run(cluster.client(), clock))
        await clock.settle()

        assert ["a-scratch"] == [key_of(claim).name for claim in (await cluster.client().list(CLAIMS, "default")).items]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
