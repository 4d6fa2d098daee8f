"""Claims that are made for one pod."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from trainmaster.api.claims import claims_of
from trainmaster.api.core import CLAIMS, EVENTS, PODS
from trainmaster.api.meta import Object, key_of
from trainmaster.cluster.controllers.graph import item_of
from trainmaster.cluster.controllers.storage.ephemeral import Maker
from trainmaster.kube.client import Client
from trainmaster.testing.builders import pod as built
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded

SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TEMPLATE = {"metadata": {"labels": {"kind": "scratch"}}, "spec": SPEC}


@pytest.fixture
async def world() -> AsyncIterator[tuple[Client, Maker, VirtualClock]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        maker = Maker(cluster.client(), clock)
        running = asyncio.create_task(maker.controller.run())
        yield cluster.client(), maker, clock
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def seen(world: tuple[Client, Maker, VirtualClock]) -> Object:
    client, maker, clock = world
    pod = await client.create(PODS, built("a", volumes=[
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}, {"name": "other", "emptyDir": {}}]))
    maker.something_changed(None, item_of(PODS, pod))
    await clock.settle()
    return pod


async def test_a_pod_gets_the_claim_of_its_template_and_owns_it(world: tuple[Client, Maker, VirtualClock]) -> None:
    pod = await seen(world)

    (claim,) = (await world[0].list(CLAIMS, "default")).items
    assert ["a-scratch"] == claims_of(pod) == [key_of(claim).name]
    assert ({"kind": "scratch"}, "1Gi") == (
        claim["metadata"]["labels"], claim["spec"]["resources"]["requests"]["storage"])
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (pod["metadata"]["uid"], True, True) == (owner["uid"], owner["controller"], owner["blockOwnerDeletion"])


async def test_a_claim_of_somebody_else_is_left_alone_and_told_of(world: tuple[Client, Maker, VirtualClock]) -> None:
    await world[0].create(CLAIMS, {"metadata": {"name": "a-scratch", "namespace": "default"}, "spec": SPEC})

    await seen(world)

    assert ["PVC default/a-scratch was not created for pod default/a (pod is not owner)"] == [
        event["message"] for event in (await world[0].list(EVENTS, "default")).items]
    assert "ownerReferences" not in (await world[0].get(CLAIMS, "a-scratch", "default"))["metadata"]
