"""Claims on the embedded server, in virtual time: from the first pod that needs one to the end of its files."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.cluster.controllers.stage import at_work

from trainmaster.api.core import CLAIMS, EVENTS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from trainmaster.api.meta import Object
from trainmaster.api.volumes import SELECTED_NODE
from trainmaster.cluster.controllers.storage.main import Directories, Storage, local_path
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.testing.builders import pod as built
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


class World:
    def __init__(self, client: Client, clock: VirtualClock, root: Path) -> None:
        self.client = client
        self.clock = clock
        self.root = root

    async def claim(self, name: str = "data", **spec: object) -> Object:
        return await self.client.create(CLAIMS, {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec},
        })

    async def volume(self, name: str = "pv", **spec: object) -> Object:
        return await self.client.create(PERSISTENT_VOLUMES, {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}, "hostPath": {"path": "/x"},
                     **spec},
        })

    async def user(self, name: str = "a", claim: str = "data") -> None:
        await self.client.create(PODS, built(name, node="here", volumes=[
            {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
        ]))

    async def phases(self) -> tuple[list[str], list[str]]:
        """Of claims and of volumes."""
        await self.clock.settle()
        found = [(await self.client.list(resource)).items for resource in (CLAIMS, PERSISTENT_VOLUMES)]
        claims, volumes = ([one["status"]["phase"] for one in items] for items in found)
        return claims, volumes

    async def said(self) -> list[str]:
        return [one["reason"] for one in (await self.client.list(EVENTS, "default")).items]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        await client.create(STORAGE_CLASSES, local_path())
        storage = Storage(client, clock, Directories(tmp_path, remove))
        async with at_work(*(informer.run() for informer in storage.informers), storage.controller.run()):
            yield World(client, clock, tmp_path)


async def test_a_claim_waits_for_its_first_pod_and_goes_with_all_that_is_in_it(world: World) -> None:
    made = await world.claim()
    assert "local-path" == made["spec"]["storageClassName"], "the default class"
    assert (["Pending"], []) == await world.phases()

    await world.user()
    assert (["Bound"], ["Bound"]) == await world.phases()
    assert ["ExternalProvisioning", "Provisioning", "ProvisioningSucceeded", "WaitForFirstConsumer"] == sorted(
        await world.said())
    claim = await world.client.get(CLAIMS, "data", "default")
    volume = await world.client.get(PERSISTENT_VOLUMES, claim["spec"]["volumeName"])
    assert ({"storage": "1Gi"}, "here") == (
        claim["status"]["capacity"], claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    )
    place = Path(volume["spec"]["hostPath"]["path"])
    assert world.root == place.parent
    (place / "checkpoint").mkdir(parents=True)
    beside = world.root / "other"
    beside.mkdir()

    await world.client.delete(CLAIMS, "data", "default")
    assert (["Bound"], ["Bound"]) == await world.phases(), "a pod uses it"
    await world.client.delete(PODS, "a", "default", grace=0)
    await _until(world, ([], []))

    assert [beside] == list(world.root.iterdir())


async def _until(world: World, phases: tuple[list[str], list[str]]) -> None:
    """Files are deleted in a thread, which virtual time does not see."""
    async with asyncio.timeout(60):
        while phases != await world.phases():  # noqa: ASYNC110  nobody signals it
            await asyncio.sleep(0.01)


async def test_a_claim_whose_selected_node_is_gone_is_given_back_to_the_scheduler(world: World) -> None:
    await world.claim()
    await world.clock.settle()

    await world.client.patch(CLAIMS, "data", "default", {"metadata": {"annotations": {SELECTED_NODE: "gone"}}})

    assert (["Pending"], []) == await world.phases()
    claim = await world.client.get(CLAIMS, "data", "default")
    assert SELECTED_NODE not in claim["metadata"].get("annotations", {})
    assert "ProvisioningFailed" in await world.said()


async def test_a_volume_that_was_there_is_bound_and_kept(world: World) -> None:
    await world.volume(storageClassName="")
    assert ([], ["Available"]) == await world.phases()

    await world.claim(storageClassName="")
    assert (["Bound"], ["Bound"]) == await world.phases()
    await world.client.delete(CLAIMS, "data", "default")

    assert ([], ["Released"]) == await world.phases(), "Retain is what volumes made by hand have"


async def test_a_claim_that_came_first_gets_the_volume_that_comes_later(world: World) -> None:
    await world.claim(storageClassName="")
    assert (["Pending"], []) == await world.phases()

    await world.volume()

    assert (["Bound"], ["Bound"]) == await world.phases()


async def test_a_bound_volume_is_not_deleted_under_its_claim(world: World) -> None:
    await world.volume()
    await world.claim(storageClassName="")
    await world.clock.settle()

    await world.client.delete(PERSISTENT_VOLUMES, "pv")
    assert (["Bound"], ["Bound"]) == await world.phases()
    await world.client.delete(CLAIMS, "data", "default")

    assert ([], []) == await world.phases()


async def test_a_volume_of_others_is_never_emptied(world: World) -> None:
    outside = world.root.parent / "mine"
    outside.mkdir()
    await world.volume(persistentVolumeReclaimPolicy="Delete", hostPath={"path": str(outside)})
    await world.claim(storageClassName="")
    await world.clock.settle()

    await world.client.delete(CLAIMS, "data", "default")

    assert ([], ["Failed"]) == await world.phases()
    assert outside.exists()


async def test_claims_of_many_pods_are_one_volume_each(world: World) -> None:
    for number in range(3):
        await world.claim(f"data-{number}")
        for pod in "xy":
            await world.user(f"{pod}-{number}", f"data-{number}")

    assert (3 * ["Bound"], 3 * ["Bound"]) == await world.phases()


async def test_nothing_is_left_of_a_claim_that_was_never_used(world: World) -> None:
    await world.claim()
    await world.clock.settle()

    await world.client.delete(CLAIMS, "data", "default")
    await world.clock.settle()

    with suppress(NotFound):
        await world.client.get(CLAIMS, "data", "default")
        raise AssertionError("it is still there")
