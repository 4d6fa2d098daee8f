"""What pods refer to is read where it is watched anyway."""

import asyncio
from pathlib import Path

import pytest

from trainmaster.api.core import CONFIG_MAPS
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.following import Following
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.settings import PodPlaces
from trainmaster.kube.errors import NotFound
from trainmaster.kube.transport import Request
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


def settings(value: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value},
            "metadata": {"name": "settings", "namespace": "default"}}


def life(number: int, clock: VirtualClock, folder: Path) -> Life:
    volumes = [{"name": "v", "configMap": {"name": "settings"}}]
    made = pod(f"p{number}", uid=str(number), volumes=volumes)
    return Life(made, PodPlaces(folder / "p", folder / "v", folder / "l"), clock.now(), lambda: None)


async def test_pods_that_share_an_object_ask_for_it_once_and_see_its_changes(tmp_path: Path) -> None:
    clock, asked = VirtualClock(), list[Request]()
    async with embedded(clock) as cluster:
        client = cluster.client()
        await client.create(CONFIG_MAPS, settings("one"))
        following = Following(cluster.client("node", lambda request, _: asked.append(request)), clock)
        lives = [life(number, clock, tmp_path) for number in range(16)]
        try:
            for each in lives:
                following.follow(each)
            reading = [following.read(CONFIG_MAPS, "settings", "default") for _ in lives]
            seen = [thing["data"]["a"] for thing in await clock.run(asyncio.gather(*reading))]
            await client.patch(CONFIG_MAPS, "settings", "default", {"data": {"a": "two"}})
            await clock.settle()
            seen.append((await following.read(CONFIG_MAPS, "settings", "default"))["data"]["a"])
        finally:
            following.close()

    assert [*["one"] * 16, "two"] == seen
    assert 2 == len(asked), "one list, one watch"


async def test_what_nobody_follows_or_nobody_made_is_asked_for(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        following = Following(client, clock)
        following.follow(life(0, clock, tmp_path))
        await clock.settle()
        try:
            with pytest.raises(NotFound):
                await following.read(CONFIG_MAPS, "settings", "default")
            following.leave(life(0, clock, tmp_path))
            await client.create(CONFIG_MAPS, settings("one"))
            assert "one" == (await following.read(CONFIG_MAPS, "settings", "default"))["data"]["a"]
        finally:
            following.close()
