"""The collector at work on the embedded server: whole stories, on virtual time."""

from collections.abc import Sequence

import pytest
from tests.unit.cluster.controllers.stage import (
    at_work,
    config_map,
    custom,
    definition,
    make,
    names,
    namespace,
    own,
    reference,
)

from trainmaster.api.core import CONFIG_MAPS, DEFINITIONS, EVENTS, NAMESPACES, NODES, PODS
from trainmaster.api.meta import Object, metadata, name_of
from trainmaster.cluster.controllers.garbage import Collector
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.testing.builders import node, pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import EVERYTHING, Answer, Delay, Old, Write, crash_points, on, seeded


async def owners(client: Client, name: str) -> list[str]:
    return [ref["name"] for ref in metadata(await client.get(CONFIG_MAPS, name, "default")).get("ownerReferences", ())]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_tree_goes_with_its_root(
    propagation: str, cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    [root] = await make(client, config_map("root"))
    [branch] = await make(client, config_map("branch", root))
    await make(client, config_map("leaf", branch), config_map("stone"))
    async with at_work(Collector(cluster.client(), clock).run()):
        await clock.settle()
        await client.delete(CONFIG_MAPS, "root", "default", propagation=propagation)
        await clock.settle()

        assert ["stone"] == await names(client)


async def test_in_the_foreground_the_owner_goes_last(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    [root] = await make(client, config_map("root"))
    [branch] = await make(client, config_map("branch", root))
    await make(client, config_map("leaf", branch, finalizers=["example.com/hold"]))
    async with at_work(Collector(cluster.client(), clock).run()):
        await client.delete(CONFIG_MAPS, "root", "default", propagation="Foreground")
        await clock.settle()
        assert ["branch", "leaf", "root"] == sorted(await names(client)), "the leaf is held by somebody else"

        await client.patch(CONFIG_MAPS, "leaf", "default", {"metadata": {"finalizers": None}})
        await clock.settle()
        assert [] == await names(client)


async def test_a_dependent_that_does_not_block_is_collected_after_its_owner(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    [root] = await make(client, config_map("root"))
    await make(client, config_map("slow", root, blocks=False, finalizers=["example.com/hold"]))
    async with at_work(Collector(cluster.client(), clock).run()):
        await client.delete(CONFIG_MAPS, "root", "default", propagation="Foreground")
        await clock.settle()

        assert ["slow"] == await names(client)
        assert metadata(await client.get(CONFIG_MAPS, "slow", "default"))["deletionTimestamp"]


async def test_a_dependent_with_another_living_owner_stays(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    """Half of the dependents have a second owner; those are let loose from the one that waits, the others go."""
    first, second = await make(client, config_map("first"), config_map("second"))
    for number in range(10):
        await make(client, config_map(f"only-{number}", first), config_map(f"both-{number}", first, second))
    async with at_work(Collector(cluster.client(), clock).run()):
        await client.delete(CONFIG_MAPS, "first", "default", propagation="Foreground")
        await clock.settle()

        assert {f"both-{number}" for number in range(10)} | {"second"} == set(await names(client))
        assert ["second"] == await owners(client, "both-3")


async def test_a_hundred_orphans_stay_and_forget_their_owner(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    [root] = await make(client, config_map("root"))
    for number in range(100):
        await client.create(PODS, pod(f"pod-{number:03}", owner=root))
    async with at_work(Collector(cluster.client(), clock).run()):
        await client.delete(CONFIG_MAPS, "root", "default", propagation="Orphan")
        await clock.settle()
        await clock.advance(minutes=2)

        left = (await client.list(PODS, "default")).items
        assert (100, []) == (len(left), await names(client))
        assert not [name_of(each) for each in left if metadata(each).get("ownerReferences")]


async def ring(client: Client, *members: str) -> None:
    made = await make(client, *(config_map(name) for name in members))
    for number, member in enumerate(made):
        await own(client, member, made[number - 1])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_ring_goes_with_any_of_its_members(
    size: int, propagation: str, cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await ring(client, *(f"member-{number}" for number in range(size)))
    async with at_work(Collector(cluster.client(), clock).run()):
        await clock.advance(minutes=5)
        assert size == len(await names(client)), "nobody touches a ring by himself"

        await client.delete(CONFIG_MAPS, "member-0", "default", propagation=propagation)
        await clock.advance(seconds=5)
        assert [] == await names(client)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_a_ring_goes_with_its_outer_owner(
    propagation: str, cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    [outer] = await make(client, config_map("outer"))
    a, b, c = await make(client, config_map("a"), config_map("b"), config_map("c"))
    await own(client, a, outer, c)
    await own(client, b, a)
    await own(client, c, b)
    async with at_work(Collector(cluster.client(), clock).run()):
        await clock.settle()
        await client.delete(CONFIG_MAPS, "outer", "default", propagation=propagation)
        await clock.advance(seconds=5)

        assert [] == await names(client)


async def test_everybody_of_a_ring_belongs_to_one_that_waits(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    """All members are told to go at the same moment: a guess made before the ring is complete would deadlock."""
    [outer] = await make(client, config_map("outer"))
    made = await make(client, *(config_map(name) for name in "abc"))
    for number, member in enumerate(made):
        await own(client, member, outer, made[number - 1])
    async with at_work(Collector(cluster.client(), clock).run()):
        await client.delete(CONFIG_MAPS, "outer", "default", propagation="Foreground")
        await clock.advance(seconds=5)

        assert [] == await names(client)


async def test_an_owner_made_again_is_another_one(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    [old] = await make(client, config_map("owner"))
    await client.delete(CONFIG_MAPS, "owner", "default")
    [new] = await make(client, config_map("owner"))
    await make(client, config_map("of-the-old", old), config_map("of-the-new", new), config_map("of-both", old, new))
    async with at_work(Collector(cluster.client(), clock).run()):
        await clock.settle()

        assert ["of-both", "of-the-new", "owner"] == sorted(await names(client))
        refs = metadata(await client.get(CONFIG_MAPS, "of-both", "default"))["ownerReferences"]
        assert [metadata(new)["uid"]] == [ref["uid"] for ref in refs]


async def test_an_owner_in_another_namespace_is_none(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(NAMESPACES, namespace("elsewhere"))
    [stranger] = await make(client, config_map("stranger", namespace="elsewhere"))
    await make(client, config_map("claimed", stranger))
    async with at_work(Collector(cluster.client(), clock).run()):
        await clock.settle()

        assert [] == await names(client)
        told = [event["reason"] for event in (await client.list(EVENTS, "default")).items]
        assert ["OwnerRefInvalidNamespace"] == told


async def test_what_has_no_namespace_is_not_collected_for_an_owner_that_has_one(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    [owner] = await make(client, config_map("owner"))
    machine = node("machine")
    machine["metadata"]["ownerReferences"] = [reference(owner)]
    await client.create(NODES, machine)
    async with at_work(Collector(cluster.client(), clock).run()):
        await client.delete(CONFIG_MAPS, "owner", "default")
        await clock.advance(minutes=2)

        assert ["machine"] == await names(client, NODES, "")
        assert ["OwnerRefInvalidNamespace"] == [event["reason"] for event in (await client.list(EVENTS)).items]


async def test_what_belongs_to_a_node_goes_with_it_anywhere(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    machine = await client.create(NODES, node("machine"))
    await make(client, config_map("mine", machine))
    async with at_work(Collector(cluster.client(), clock).run()):
        await clock.settle()
        assert ["mine"] == await names(client)

        await client.delete(NODES, "machine")
        await clock.settle()
        assert [] == await names(client)


async def test_an_adoption_that_we_have_not_seen_yet_is_respected(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    """It was decided to delete it; before the request arrives, it has found a new owner."""
    old, new = await make(client, config_map("old"), config_map("new"))
    [child] = await make(client, config_map("child", old))
    async with at_work(Collector(cluster.client(plan=on("DELETE", "/child", Delay(1.0))), clock).run()):
        await clock.settle()
        await client.delete(CONFIG_MAPS, "old", "default")
        await clock.advance(seconds=0.5)
        await own(client, child, new)
        await clock.advance(minutes=1)

        assert ["child", "new"] == sorted(await names(client))


class TestCustomKinds:
    """Kinds come and go while the collector runs."""

    gears = custom("gears")

    def gear(self, name: str, *belongs_to: Object) -> Object:
        made = config_map(name, *belongs_to)
        return {**made, "apiVersion": "example.com/v1", "kind": "Gear"}

    async def test_a_kind_installed_later_is_collected_too(
        self, cluster: Cluster, client: Client, clock: VirtualClock
    ) -> None:
        async with at_work(Collector(cluster.client(), clock).run()):
            await clock.settle()
            await cluster.install([definition("gears")])
            owner = await client.create(self.gears, self.gear("owner"))
            await client.create(self.gears, self.gear("child", owner))
            await make(client, config_map("grandchild", owner))
            await clock.settle()
            await client.delete(self.gears, "owner", "default")
            await clock.settle()

            assert ([], []) == (await names(client, self.gears), await names(client))

    async def test_what_belongs_to_objects_of_a_kind_goes_with_the_kind(
        self, cluster: Cluster, client: Client, clock: VirtualClock
    ) -> None:
        await cluster.install([definition("gears")])
        owner = await client.create(self.gears, self.gear("owner"))
        await make(client, config_map("child", owner))
        async with at_work(Collector(cluster.client(), clock).run()):
            await clock.settle()
            await client.delete(DEFINITIONS, "gears.example.com")
            await clock.advance(seconds=5)

            assert [] == await names(client)

    async def test_an_owner_of_a_kind_that_nobody_serves_is_waited_for(
        self, cluster: Cluster, client: Client, clock: VirtualClock
    ) -> None:
        stranger = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g", "uid": "u"}}
        await make(client, config_map("child", stranger))
        async with at_work(Collector(cluster.client(), clock).run()):
            await clock.advance(hours=1)
            assert ["child"] == await names(client)

            await cluster.install([definition("gears")])
            await clock.advance(seconds=5)
            assert [] == await names(client), "now the server can say that there is no such owner"

    async def test_a_kind_that_is_preferred_in_another_version_loses_nothing(
        self, cluster: Cluster, client: Client, clock: VirtualClock
    ) -> None:
        await cluster.install([definition("gears", "v1beta1")])
        beta = custom("gears", version="v1beta1")
        owner = await client.create(beta, {**self.gear("owner"), "apiVersion": "example.com/v1beta1"})
        await make(client, config_map("child", owner))
        async with at_work(Collector(cluster.client(), clock).run()):
            await clock.settle()
            both = definition("gears", "v1beta1", "v1")["spec"]["versions"]
            await client.patch(DEFINITIONS, "gears.example.com", "", {"spec": {"versions": both}})
            await clock.settle()
            assert ["child"] == await names(client), "the reference still says v1beta1"

            await client.delete(self.gears, "owner", "default")
            await clock.settle()
            assert [] == await names(client)


async def test_orphans_of_which_the_collector_has_not_heard_are_spared(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    """The watch of one kind is cut when the owner's deletion arrives: a dependent that it would show must not go."""
    [owner] = await make(client, config_map("owner"))
    wire = cluster.transport("collector", plan=on("GET", "/pods", None, Answer(500), *[Answer(500)] * 20))
    async with at_work(Collector(Client(wire), clock).run()):
        await clock.settle()
        await client.create(PODS, pod("unseen", owner=owner))
        await client.delete(CONFIG_MAPS, "owner", "default", propagation="Orphan")
        await clock.advance(minutes=20)

        assert (["unseen"], []) == (await names(client, PODS), await names(client))


async def test_a_kind_that_cannot_be_listed_does_not_stop_the_others(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    def broken(request: Request, _number: int) -> Answer | None:
        return Answer(500) if "/secrets" in request.path else None

    [owner] = await make(client, config_map("owner"))
    await make(client, config_map("child", owner))
    async with at_work(Collector(cluster.client(plan=broken), clock).run()):
        await client.delete(CONFIG_MAPS, "owner", "default", propagation="Foreground")
        await clock.advance(minutes=1)

        assert [] == await names(client)


async def test_one_object_that_cannot_be_deleted_does_not_stop_the_others(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    def broken(request: Request, _number: int) -> Answer | None:
        return Answer(500) if request.method == "DELETE" and request.path.endswith("/stuck") else None

    [owner] = await make(client, config_map("owner"))
    await make(client, config_map("stuck", owner), *(config_map(f"child-{n}", owner) for n in range(20)))
    async with at_work(Collector(cluster.client(plan=broken), clock).run()):
        await client.delete(CONFIG_MAPS, "owner", "default")
        await clock.advance(minutes=10)

        assert ["stuck"] == await names(client)


async def test_the_work_for_one_object_does_not_grow_with_the_cluster(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    """Requests counted: one deletion each for what goes, and nothing for what stays."""
    for number in range(200):
        await make(client, config_map(f"bystander-{number}"))
    [owner] = await make(client, config_map("owner"))
    await make(client, config_map("child-1", owner), config_map("child-2", owner))
    asked: list[str] = []
    wire = cluster.transport("collector", plan=lambda request, _number: asked.append(request.method))
    async with at_work(Collector(Client(wire), clock).run()):
        await clock.settle()
        asked.clear()
        await client.delete(CONFIG_MAPS, "owner", "default")
        await clock.settle()

    assert ["DELETE"] * 2 == asked


async def story(dies_after: int | None, propagation: str) -> tuple[Sequence[Write], list[str]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        root, other = await make(client, config_map("root"), config_map("other"))
        branch, shared = await make(client, config_map("branch", root), config_map("shared", root, other))
        leaf, _ = await make(client, config_map("leaf", branch, shared), config_map("stone"))
        await own(client, branch, root, leaf)    # a ring: branch and leaf own each other
        life = cluster.transport("first life", die_after=dies_after)
        async with at_work(Collector(Client(life), clock).run()) as tasks:
            await clock.settle()
            await client.delete(CONFIG_MAPS, "root", "default", propagation=propagation)
            await clock.advance(minutes=2)
            if tasks[0].done():
                async with at_work(Collector(cluster.client("second life"), clock).run()):
                    await clock.advance(minutes=2)
        state = [
            f"{name_of(each)} of {sorted(ref['name'] for ref in metadata(each).get('ownerReferences') or ())}"
            for each in (await client.list(CONFIG_MAPS, "default")).items
        ]
        return list(life.writes), state


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_dying_after_any_write_changes_nothing_in_the_end(propagation: str) -> None:
    seen = 0
    async for where, clean, end in crash_points(lambda dies_after: story(dies_after, propagation)):
        assert clean == end, where
        seen += 1

    assert seen >= 2, "there was something to die of"


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_goes_wrong_on_the_way_the_right_ones_go(
    seed: int, cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    root, other = await make(client, config_map("root"), config_map("other"))
    for number in range(5):
        [branch] = await make(client, config_map(f"branch-{number}", root))
        await make(client, config_map(f"leaf-{number}", branch), config_map(f"shared-{number}", branch, other))
    faults = [fault for fault in EVERYTHING if not isinstance(fault, Old)]
    wire = cluster.transport("collector", plan=seeded(seed, faults=faults, until=400))
    async with at_work(Collector(Client(wire), clock).run()):
        await clock.advance(seconds=3)
        await client.delete(CONFIG_MAPS, "root", "default", propagation=("Background", "Foreground")[seed % 2])
        await clock.advance(hours=1)

        assert ["other", *(f"shared-{number}" for number in range(5))] == sorted(await names(client))
    assert wire.injected
