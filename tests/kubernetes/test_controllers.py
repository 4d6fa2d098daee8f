"""The embedded cluster's own controllers, on a server that is not ours.

They are clients of the API like any controller. If one of them needed something that a real kube-apiserver does not
offer, it would be found here.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager

import pytest
from tests.kubernetes import fake_kubelet
from tests.kubernetes.access import connected
from tests.kubernetes.control_plane import ControlPlane

from trainmaster.api.core import CONFIG_MAPS, NAMESPACES, PODS
from trainmaster.api.meta import Object, Resource, name_of, uid_of
from trainmaster.cluster.controllers import namespaces
from trainmaster.cluster.controllers.garbage import Collector
from trainmaster.cluster.scheduler import loop as scheduler
from trainmaster.kube.client import Client
from trainmaster.runtime.clock import RealClock

pytestmark = pytest.mark.kubernetes
PATIENCE = 60.0


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with connected(control_plane.kubeconfig()) as client:
        yield client


@pytest.fixture
async def place(client: Client) -> str:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "controllers-"}}
    return name_of(await client.create(NAMESPACES, namespace))


@asynccontextmanager
async def working(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def gone(client: Client, resource: Resource, namespace: str, *names: str) -> None:
    """Return once none of the named objects is there."""
    page = await client.list(resource, namespace)
    left = {name_of(thing) for thing in page.items} & set(names)
    async with asyncio.timeout(PATIENCE):
        async with aclosing(client.watch(resource, namespace, revision=page.revision)) as events:
            while left:
                event = await anext(events)
                if event.type == "DELETED":
                    left.discard(name_of(event.object))


def config_map(name: str, *owners: Object) -> Object:
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": name_of(owner),
            "uid": uid_of(owner),
            "blockOwnerDeletion": True,
        }
        for owner in owners
    ]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": references}}


@pytest.mark.parametrize(
    "propagation",
    [
        pytest.param("Background", id="in the background"),
        pytest.param("Foreground", id="in the foreground, the owner last"),
    ],
)
async def test_what_belongs_to_nothing_is_collected(client: Client, place: str, propagation: str) -> None:
    async with working(Collector(client, RealClock()).run()):
        owner = await client.create(CONFIG_MAPS, config_map("owner"), namespace=place)
        child = await client.create(CONFIG_MAPS, config_map("child", owner), namespace=place)
        await client.create(CONFIG_MAPS, config_map("grandchild", child), namespace=place)

        await client.delete(CONFIG_MAPS, "owner", place, propagation=propagation)

        await gone(client, CONFIG_MAPS, place, "owner", "child", "grandchild")


async def test_orphans_stay_and_forget_their_owner(client: Client, place: str) -> None:
    async with working(Collector(client, RealClock()).run()):
        owner = await client.create(CONFIG_MAPS, config_map("owner"), namespace=place)
        await client.create(CONFIG_MAPS, config_map("child", owner), namespace=place)

        await client.delete(CONFIG_MAPS, "owner", place, propagation="Orphan")
        await gone(client, CONFIG_MAPS, place, "owner")

    assert not (await client.get(CONFIG_MAPS, "child", place))["metadata"].get("ownerReferences")


async def test_a_deleted_namespace_is_emptied_and_goes(client: Client, place: str) -> None:
    await client.create(CONFIG_MAPS, config_map("content"), namespace=place)

    async with working(namespaces.run(client, RealClock())):
        await client.delete(NAMESPACES, place)

        await gone(client, NAMESPACES, "", place)


async def test_the_scheduler_binds(client: Client, place: str) -> None:
    await fake_kubelet.register(client)
    spec = {"containers": [{"name": "main", "image": "example.com/program:1"}], "tolerations": [{"operator": "Exists"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec}
    made = await client.create(PODS, pod, namespace=place)

    async with working(scheduler.run(client, RealClock(), served=())), asyncio.timeout(PATIENCE):
        watch = client.watch(PODS, place, revision=made["metadata"]["resourceVersion"])
        async with aclosing(watch) as events:
            async for event in events:
                if event.object["spec"].get("nodeName"):
                    break

    assert (await client.get(PODS, "one", place))["spec"]["nodeName"] == fake_kubelet.NAME
