"""Pods with claims that wait for their first consumer, with the real volume controller: node, volume, claim, then pod.

Virtual time, so that who waits and who does not is told by the clock and not by chance.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.cluster.controllers.stage import at_work

from trainmaster.api.core import CLAIMS, EVENTS, NODES, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from trainmaster.api.meta import Object
from trainmaster.api.volumes import SELECTED_NODE
from trainmaster.cluster.controllers.storage.main import Directories, Storage, local_path
from trainmaster.cluster.scheduler import loop
from trainmaster.cluster.scheduler.provisioning import PATIENCE
from trainmaster.cluster.scheduler.settings import Settings
from trainmaster.kube.client import Client
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


class World:
    def __init__(self, client: Client, clock: VirtualClock, root: Path) -> None:
        self.client = client
        self.clock = clock
        self._root = root

    async def node(self, name: str, cpu: str = "8") -> None:
        await self.client.create(NODES, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
        status = {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "10"},
                  "conditions": [{"type": "Ready", "status": "True"}]}
        await self.client.patch(NODES, name, "", {"status": status}, subresource="status")

    async def claim(self, name: str = "data", **spec: object) -> None:
        await self.client.create(CLAIMS, {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}})

    async def pod(self, name: str = "x", claim: str = "data", cpu: str = "1", **spec: object) -> None:
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
        await self.client.create(PODS, {"metadata": {"name": name, "namespace": "default", "labels": {"app": "x"}},
                                        "spec": {"containers": [container], "volumes": volumes, **spec}})

    async def places(self) -> dict[str, str]:
        await self.clock.settle()
        return {one["metadata"]["name"]: one["spec"].get("nodeName", "")
                for one in (await self.client.list(PODS, "default")).items}

    async def selected(self) -> str:
        await self.clock.settle()
        claim = await self.client.get(CLAIMS, "data", "default")
        return str(claim["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))

    async def said(self) -> list[str]:
        return [one["reason"] for one in (await self.client.list(EVENTS, "default")).items]

    @asynccontextmanager
    async def scheduler(self, *disk: str) -> AsyncIterator[None]:
        stop = asyncio.Event()
        settings = Settings(disk=frozenset(disk))
        running = asyncio.create_task(loop.run(self.client, self.clock, settings, served=(), stop=stop))
        await self.clock.settle()
        try:
            yield
        finally:
            stop.set()
            async with asyncio.timeout(60):
                await running          # nothing waits for a volume any more

    @asynccontextmanager
    async def provisioner(self, *disk: str) -> AsyncIterator[None]:
        storage = Storage(self.client, self.clock, Directories(self._root, lambda _path: None, disk))
        async with at_work(*(informer.run() for informer in storage.informers), storage.controller.run()):
            await self.clock.settle()
            yield


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        await client.create(STORAGE_CLASSES, local_path())
        yield World(client, clock, tmp_path)


async def test_a_pod_is_bound_when_its_claim_is(world: World) -> None:
    await world.node("a")
    await world.claim()
    async with world.scheduler():
        await world.pod()

        assert ({"x": ""}, "a") == (await world.places(), await world.selected()), "the node is chosen, no more"

        async with world.provisioner():
            assert {"x": "a"} == await world.places()
    claim = await world.client.get(CLAIMS, "data", "default")
    pod = await world.client.get(PODS, "x", "default")
    assert "Bound" == claim["status"]["phase"]
    assert int(claim["metadata"]["resourceVersion"]) < int(pod["metadata"]["resourceVersion"])
    assert {"ExternalProvisioning", "Provisioning", "ProvisioningSucceeded", "Scheduled"} == set(await world.said())


async def test_others_do_not_wait_and_no_time_passes_for_them(world: World) -> None:
    await world.node("a")
    await world.claim()
    async with world.scheduler():
        await world.pod()
        await world.clock.settle()
        began = world.clock.monotonic()
        for number in range(3):
            await world.pod(f"other-{number}", claim="")
            assert "a" == (await world.places())[f"other-{number}"]

        assert began == world.clock.monotonic()


async def test_room_is_kept_while_a_pod_waits_for_its_volume(world: World) -> None:
    await world.node("a", cpu="1")
    await world.claim()
    async with world.scheduler():
        await world.pod()
        await world.clock.settle()
        await world.pod("other", claim="")

        assert {"x": "", "other": ""} == await world.places()
        await world.client.delete(PODS, "x", "default", grace=0)
        assert {"other": "a"} == await world.places()


@pytest.mark.parametrize(("disk", "expected"), [
    pytest.param(("a", "b"), {"x": "a", "y": "b"}, id="nodes of one machine have their volumes in common"),
    pytest.param((), {"x": "a", "y": ""}, id="of others it is not known"),
])
async def test_pods_that_keep_apart_and_share_a_claim_which_waits(
        world: World, disk: tuple[str, ...], expected: dict[str, str]) -> None:
    apart = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "x"}}}]
    for name in "ab":
        await world.node(name)
    await world.claim()
    async with world.provisioner(*disk), world.scheduler(*disk):
        for name in "xy":
            await world.pod(name, topologySpreadConstraints=apart)
        await world.clock.advance(5)

        assert expected == await world.places()


async def test_a_scheduler_that_dies_while_it_waits_leaves_the_choice_to_the_next(world: World) -> None:
    await world.node("a")
    await world.claim()
    async with world.scheduler():
        await world.pod()
        assert "a" == await world.selected()
    await world.node("b", cpu="64")                        # the better one now, but the claim's node is chosen
    async with world.provisioner():
        assert {"x": ""} == await world.places(), "nobody is there to bind it"
        async with world.scheduler():
            assert {"x": "a"} == await world.places()


async def test_a_control_plane_that_dies_between_goes_on(world: World) -> None:
    await world.node("a")
    await world.claim()
    async with world.scheduler():
        await world.pod()
        assert "a" == await world.selected()
    async with world.scheduler(), world.provisioner():
        assert {"x": "a"} == await world.places()


async def test_a_node_that_is_gone_before_the_volume_is_made_is_replaced_by_another(world: World) -> None:
    await world.node("a")
    await world.claim()
    async with world.scheduler():
        await world.pod()
        assert "a" == await world.selected()
        await world.client.delete(NODES, "a")
        await world.node("b")
        async with world.provisioner():
            await world.clock.advance(5)
            assert {"x": "b"} == await world.places()


async def test_a_volume_that_does_not_come_is_told_after_a_while_and_tried_again(world: World) -> None:
    await world.node("a")
    await world.claim()
    async with world.scheduler():
        await world.pod()
        await world.clock.settle()
        await world.clock.advance(PATIENCE + 5)
        await world.clock.settle()

        pod = await world.client.get(PODS, "x", "default")
        (told,) = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert ("SchedulerError", 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
                ) == (told["reason"], told["message"])
        async with world.provisioner():
            assert {"x": "a"} == await world.places()


def local_volume(name: str, node: str) -> Object:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {"metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}, "storageClassName": "found",
        "local": {"path": "/disk"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}


async def test_a_volume_that_is_there_is_kept_for_the_claim_of_the_pod_that_goes_there(world: World) -> None:
    await world.client.create(STORAGE_CLASSES, {
        "metadata": {"name": "found"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"})
    for name in "ab":
        await world.node(name)
    await world.client.create(PERSISTENT_VOLUMES, local_volume("disk", "b"))
    for name in ("data", "more"):
        await world.claim(name, storageClassName="found")
    async with world.provisioner(), world.scheduler():
        await world.pod("x", "data")
        await world.pod("y", "more")

        await world.clock.advance(5)
        assert [True, False] == sorted((node == "b" for node in (await world.places()).values()), reverse=True)
    claims = {one["metadata"]["name"]: one["status"]["phase"] for one in (await world.client.list(CLAIMS)).items}
    assert ["Bound", "Pending"] == sorted(claims.values()), "one volume, one claim"
