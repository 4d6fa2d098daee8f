"""A real server that crashed and has forgotten the past: what our client is told, and that the local copy survives it.

On a server that runs, both the history that a watch resumes from and the snapshot that a page belongs to are held in
memory for a while, so compacting etcd alone proves nothing; together with a restart it does.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest
from tests.kubernetes.access import connected
from tests.kubernetes.control_plane import ControlPlane

from trainmaster.api.core import CONFIG_MAPS
from trainmaster.api.meta import Object, name_of, revision_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Gone
from trainmaster.runtime.clock import RealClock
from trainmaster.runtime.informer import Informer

pytestmark = pytest.mark.kubernetes
PATIENCE = 60.0
LABEL = "test=forgetting"


def config_map(name: str) -> Object:
    key, _, value = LABEL.partition("=")
    metadata = {"name": name, "namespace": "default", "labels": {key: value}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with connected(control_plane.kubeconfig()) as client:
        yield client
        for thing in (await client.list(CONFIG_MAPS, "default", labels=LABEL)).items:
            await client.delete(CONFIG_MAPS, name_of(thing), "default")


@pytest.fixture
async def informer(client: Client) -> AsyncIterator[Informer]:
    follower = Informer(client, CONFIG_MAPS, clock=RealClock(), namespace="default", labels=LABEL)
    task = asyncio.create_task(follower.run())
    await asyncio.wait_for(follower.synced(), PATIENCE)
    yield follower
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(informer: Informer, condition: Callable[[set[str]], bool]) -> None:
    """Wait, without polling, until the names in the copy are as wanted."""
    changed = asyncio.Event()
    informer.on_change(lambda _before, _after: changed.set())
    async with asyncio.timeout(PATIENCE):
        while not condition({name_of(thing) for thing in informer.copy.all()}):
            changed.clear()
            await changed.wait()


async def test_the_copy_follows(client: Client, informer: Informer) -> None:
    await client.create(CONFIG_MAPS, config_map("follow-a"))
    await client.create(CONFIG_MAPS, config_map("follow-b"))
    await client.delete(CONFIG_MAPS, "follow-a", "default")

    await until(informer, lambda names: names == {"follow-b"})


async def test_what_is_forgotten_is_gone_and_the_copy_is_made_true_again(
    control_plane: ControlPlane, client: Client, informer: Informer
) -> None:
    for number in range(4):
        await client.create(CONFIG_MAPS, config_map(f"old-{number}"))
    page = await client.list(CONFIG_MAPS, "default", labels=LABEL, limit=2)
    await until(informer, lambda names: len(names) == 4)

    await client.delete(CONFIG_MAPS, "old-0", "default")
    newest = await client.create(CONFIG_MAPS, config_map("new"))
    control_plane.compact(int(revision_of(newest)))
    await asyncio.to_thread(control_plane.crash_apiserver)

    with pytest.raises(Gone):
        async with asyncio.timeout(PATIENCE), aclosing(client.watch(CONFIG_MAPS, revision=page.revision)) as events:
            await anext(events)
    with pytest.raises(Gone) as expired:
        await client.list(CONFIG_MAPS, "default", labels=LABEL, limit=2, more=page.more)
    go_on = expired.value.status["metadata"]["continue"]
    rest = await client.list(CONFIG_MAPS, "default", labels=LABEL, more=go_on)
    assert [name_of(item) for item in rest.items] == ["old-2", "old-3"]
    await until(informer, lambda names: names == {"new", "old-1", "old-2", "old-3"})
