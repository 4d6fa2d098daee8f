"""What the API holds for a pod, in virtual time: tokens age, objects change."""

from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import jwt
import pytest

from trainmaster.api.core import CONFIG_MAPS, PODS, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object, revision_of
from trainmaster.cluster.kubelet.environment import Claimed
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.settings import PodPlaces
from trainmaster.cluster.kubelet.supplies import Supplies, place_of, renewal
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists
from trainmaster.testing.builders import pod as built
from trainmaster.testing.clock import NOON, VirtualClock
from trainmaster.testing.cluster import embedded

AT_NOON = int(NOON.timestamp())


def token(lives: int) -> str:
    return jwt.encode({"iat": AT_NOON, "exp": AT_NOON + lives}, "x" * 32)


@pytest.mark.parametrize(("expected", "text"), [
    pytest.param(timedelta(minutes=48), token(3600), id="after four fifths of its life"),
    pytest.param(timedelta(hours=24), token(86400 * 365), id="after a day at the latest"),
    pytest.param(None, "secret", id="never, if it does not say how long it lives"),
    pytest.param(None, "a.b.c", id="nor if it is no token"),
])
def test_when_a_token_is_renewed(expected: timedelta | None, text: str) -> None:
    assert (NOON + expected if expected else None) == renewal(text)


@pytest.mark.parametrize(("expected", "spec"), [
    pytest.param(Claimed("/a"), {"hostPath": {"path": "/a"}}, id="a place of the host"),
    pytest.param(Claimed("/a", True), {"hostPath": {"path": "/a", "type": "DirectoryOrCreate"}}, id="that may be made"),
    pytest.param(Claimed("/b"), {"local": {"path": "/b"}}, id="a local one"),
])
def test_places_of_volumes(expected: Claimed, spec: Object) -> None:
    assert expected == place_of({"metadata": {}, "spec": spec})


@pytest.mark.parametrize(("expected", "spec"), [
    pytest.param("kind that this node cannot mount (nfs)", {"nfs": {"path": "/"}, "capacity": {}}, id="a network's"),
    pytest.param("block device", {"volumeMode": "Block", "local": {"path": "/dev/x"}}, id="a raw device"),
])
def test_volumes_that_this_machine_cannot_show(expected: str, spec: Object) -> None:
    assert expected in place_of({"metadata": {}, "spec": spec}).trouble


class World:
    """A pod with a token and a ConfigMap in one volume, and what it shows."""

    def __init__(self, client: Client, clock: VirtualClock, folder: Path) -> None:
        self.client = client
        self.clock = clock
        self.supplies = Supplies(client, clock, {})
        self.folder = folder

    async def life(self) -> Life:
        with suppress(AlreadyExists):      # the server may have made it with the namespace
            await self.client.create(SERVICE_ACCOUNTS, {
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"},
            })
        sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                   {"configMap": {"name": "settings", "optional": True}},
                   {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]
        made = await self.client.create(PODS, built("a", node="here", labels={"x": "1"}, volumes=[
            {"name": "v", "projected": {"sources": sources}}
        ], automountServiceAccountToken=False))
        places = PodPlaces(self.folder / "p", self.folder / "v", self.folder / "l")
        return Life(made, places, self.clock.now(), lambda: None)

    async def settings(self, **data: str) -> Object:
        thing: Object = {"apiVersion": "v1", "kind": "ConfigMap", "data": data,
                         "metadata": {"name": "settings", "namespace": "default"}}
        try:
            return await self.client.create(CONFIG_MAPS, thing)
        except AlreadyExists:
            return await self.client.patch(CONFIG_MAPS, "settings", "default", {"data": data})

    def shown(self, name: str) -> str:
        return (self.folder / "v" / "v" / name).read_text()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        yield World(cluster.client(), clock, tmp_path)


async def test_a_token_is_renewed_before_it_is_worn(world: World) -> None:
    life = await world.life()
    await world.supplies.prepare(life)
    first = world.shown("token")
    assert life.renew_at == world.clock.now() + timedelta(minutes=48)

    await world.clock.advance(minutes=40)
    await world.supplies.refresh(life)
    assert first == world.shown("token"), "it is good yet"
    await world.clock.advance(minutes=8)
    await world.supplies.refresh(life)

    assert first != world.shown("token")
    assert life.renew_at == world.clock.now() + timedelta(minutes=48)


async def test_a_token_that_cannot_be_renewed_stays_and_is_asked_for_again(world: World) -> None:
    life = await world.life()
    await world.supplies.prepare(life)
    first = world.shown("token")
    await world.client.delete(SERVICE_ACCOUNTS, "default", "default")

    await world.clock.advance(minutes=59)
    await world.supplies.refresh(life)

    assert first == world.shown("token")
    assert life.renew_at == world.clock.now() + timedelta(minutes=1)


async def test_a_change_is_shown(world: World) -> None:
    life = await world.life()
    await world.supplies.prepare(life)
    behind = [life.behind]

    made = await world.settings(a="one")
    life.latest["configmaps", "settings"] = revision_of(made)
    behind.append(life.behind)
    await world.supplies.refresh(life)
    behind.append(life.behind)

    assert ("one", [False, True, False]) == (world.shown("a"), behind)


async def test_what_was_seen_before_it_was_read_is_no_news(world: World) -> None:
    seen = await world.settings(a="one")
    await world.settings(a="two")
    life = await world.life()

    life.latest["configmaps", "settings"] = revision_of(seen)
    await world.supplies.prepare(life)

    assert ("two", False) == (world.shown("a"), life.behind)


async def test_a_label_that_changes_is_shown(world: World) -> None:
    life = await world.life()
    await world.supplies.prepare(life)

    life.learn(await world.client.patch(PODS, "a", "default", {"metadata": {"labels": {"x": "2"}}}))
    assert life.behind
    await world.supplies.refresh(life)

    assert 'x="2"' == world.shown("labels")
