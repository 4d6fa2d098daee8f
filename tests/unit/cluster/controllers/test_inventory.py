"""Everything there is, followed: kinds that come, go, change their version, or cannot be listed."""

from collections.abc import AsyncIterator, Mapping

import orjson
import pytest
from tests.unit.cluster.controllers.stage import at_work, config_map, custom, definition, make

from trainmaster.api.core import CONFIG_MAPS, DEFINITIONS, EVENTS, PODS
from trainmaster.api.meta import Object, metadata
from trainmaster.cluster.controllers.graph import Item
from trainmaster.cluster.controllers.inventory import Bare, Inventory
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.kube.client import Client, decoded
from trainmaster.kube.transport import Request, Response
from trainmaster.runtime.informer import Informer
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster
from trainmaster.testing.faults import Answer, Refuse, on

GEARS = custom("gears")


def gear(name: str, version: str = "v1") -> Object:
    return {"apiVersion": f"example.com/{version}", "kind": "Gear", "metadata": {"name": name, "namespace": "default"}}


class Heard:
    """What an inventory told, as words."""

    def __init__(self, inventory: Inventory) -> None:
        self.words: list[str] = []
        inventory.on_change(self.hear)

    def hear(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        assert item is not None
        if item.resource.group == "example.com":
            self.words.append(f"{'-' if before is None else 'x'}{'-' if after is None else 'x'} {item.key.name}")


async def test_a_kind_and_its_objects_come_and_go(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    inventory = Inventory(cluster.client(), clock)
    heard = Heard(inventory)
    async with at_work(inventory.run()):
        await clock.settle()
        assert not inventory.follows(GEARS)

        await cluster.install([definition("gears")])
        await client.create(GEARS, gear("a"))
        await clock.settle()
        assert (["-x a"], True) == (heard.words, inventory.follows(GEARS))

        await client.delete(DEFINITIONS, "gears.example.com")
        await clock.advance(seconds=5)
        assert (["-x a", "x- a"], False) == (heard.words, inventory.follows(GEARS))


async def test_an_object_that_went_while_its_kind_changed_version_is_not_kept_for_ever(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await cluster.install([definition("gears", "v1beta1")])
    beta = custom("gears", version="v1beta1")
    for name in ("gone", "stays"):
        await client.create(beta, gear(name, "v1beta1"))
    wire = cluster.transport("inventory")
    inventory = Inventory(Client(wire), clock)
    heard = Heard(inventory)
    async with at_work(inventory.run()):
        await clock.settle()
        await wire.disconnect()
        await client.delete(beta, "gone", "default")
        versions = definition("gears", "v1beta1", "v1")["spec"]["versions"]
        await client.patch(DEFINITIONS, "gears.example.com", "", {"spec": {"versions": versions}})
        wire.connect()
        await clock.advance(minutes=2)

        assert (True, False) == (inventory.follows(GEARS), inventory.follows(beta))
        assert heard.words.count("x- gone") >= 1
        assert "x- stays" not in heard.words


async def test_a_definition_that_discovery_does_not_show_for_a_while_ends_nothing(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    """A server that starts again answers so. To believe it would delete everything that belongs to custom objects."""
    await cluster.install([definition("gears")])
    await client.create(GEARS, gear("a"))
    inventory = Inventory(cluster.client(), clock)
    heard = Heard(inventory)
    async with at_work(inventory.run()):
        await clock.settle()
        catalog = cluster.server._catalog
        known = catalog._definitions["gears.example.com"]
        catalog.remove("gears.example.com")
        inventory.kinds._changed.set()
        await clock.advance(minutes=1)
        catalog.install(known)
        await clock.advance(minutes=1)

        assert (["-x a"], True) == (heard.words, inventory.follows(GEARS))


async def test_events_are_not_followed(cluster: Cluster, clock: VirtualClock) -> None:
    inventory = Inventory(cluster.client(), clock)
    async with at_work(inventory.run()):
        await clock.settle()

        assert (True, False) == (inventory.follows(PODS), inventory.follows(EVENTS))


async def test_nobody_waits_longer_than_the_patience_for_a_kind_that_cannot_be_listed(
    cluster: Cluster, clock: VirtualClock
) -> None:
    def broken(request: Request, _number: int) -> Answer | None:
        return Answer(500) if request.path.endswith("/secrets") else None

    inventory = Inventory(cluster.client(plan=broken), clock)
    async with at_work(inventory.run()):
        await clock.settle()
        assert inventory.incomplete()

        began = clock.monotonic()
        await clock.run(inventory.complete())
        assert 30.0 == clock.monotonic() - began
        assert not inventory.incomplete()


async def test_who_is_behind_a_revision_is_known(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    inventory = Inventory(cluster.client(), clock)
    async with at_work(inventory.run()):
        await clock.settle()
        [made] = await make(client, config_map("a"))
        await clock.settle()
        behind = set(inventory.behind(metadata(made)["resourceVersion"]))

        assert (False, True) == (CONFIG_MAPS in behind, PODS in behind)
        await clock.advance(seconds=61)
        assert [] == list(inventory.behind(metadata(made)["resourceVersion"])), "bookmarks move the quiet ones"


async def test_discovery_that_fails_is_asked_again(cluster: Cluster, clock: VirtualClock) -> None:
    kinds = Kinds(cluster.client(plan=on("GET", "/api", Refuse(), Refuse(), Refuse())), clock)
    async with at_work(kinds.run()):
        await clock.advance(minutes=1)

        assert kinds.serves(PODS)
        found = kinds.find("", "Pod")
        assert found is not None
        assert PODS == found.resource


async def test_a_copy_keeps_what_it_was_told_to_and_asks_for_no_more(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    asked: list[str] = []
    wire = cluster.transport("tests", plan=lambda request, _number: asked.append(request.headers["accept"]))
    reduced = Reduced(Client(wire), lambda thing: {"metadata": metadata(thing)}, bare=True)
    informer = Informer(reduced, PODS, clock=clock)
    await client.create(PODS, pod("before"))
    async with at_work(informer.run()):
        await clock.settle()
        await client.create(PODS, pod("after"))
        await clock.settle()

        assert [{"metadata"}, {"metadata"}] == [set(thing) for thing in informer.copy.all()]
        assert all("PartialObjectMetadata" in accept for accept in asked)
        assert "before" == metadata(await reduced.get(PODS, "before", "default"))["name"], "the rest goes through"


class Plain(Bare):
    """The same, read as a whole."""

    def _event(self, line: bytes) -> Object | None:
        return decoded(line, "a watch event")


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "1", "controller": True, "blockOwnerDeletion": True}


@pytest.mark.parametrize("about", [
    pytest.param({}, id="a name alone"),
    pytest.param({"ownerReferences": [OWNER, {**OWNER, "more": [1, {}]}], "finalizers": ["a/b", "c"]},
                 id="owners and finalizers"),
    pytest.param({"ownerReferences": [], "finalizers": []}, id="neither, as lists"),
    pytest.param({"ownerReferences": None, "deletionTimestamp": None}, id="neither, as null"),
    pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}, "managedFields": [{}]},
                 id="its end, and what is not kept"),
    pytest.param({"finalizers": [1], "uid": 7}, id="values of a type that nobody expects"),
])
@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "WHATEVER"])
async def test_the_bones_of_a_thing_are_the_same_as_of_one_that_is_read_as_a_whole(about: Object, type_: str) -> None:
    thing = {"kind": "PartialObjectMetadata", "metadata": {"name": "ä", "resourceVersion": "7", **about}}
    script = Script(orjson.dumps({"type": type_, "object": thing}) + b"\n")

    seen = [[(event.type, {"metadata": event.object["metadata"]} if type_ == "BOOKMARK" else event.object)
             async for event in client.watch(CONFIG_MAPS)] for client in (Bare(Client(script)), Plain(Client(script)))]

    assert seen[0] == seen[1] != []


class Script:
    """A server that says one thing."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, said: bytes) -> None:
        self._said = said

    async def send(self, request: Request) -> Response:
        raise AssertionError(f"nobody asked for {request.path}")

    async def open(self, _request: Request) -> "Script":
        return self

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._said

    async def close(self) -> None:
        """Nothing is held."""
