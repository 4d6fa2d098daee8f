"""The end of namespaces on the embedded server, on virtual time."""

from collections.abc import Sequence

import pytest
from tests.unit.cluster.controllers.stage import at_work, config_map, custom, definition, make, names, namespace

from trainmaster.api.core import CONFIG_MAPS, EVENTS, NAMESPACES, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from trainmaster.api.meta import Object, metadata, name_of
from trainmaster.cluster.controllers import namespaces
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.kube.client import Client
from trainmaster.kube.discovery import Served
from trainmaster.kube.errors import NotFound
from trainmaster.kube.transport import Request
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import EVERYTHING, Answer, Fault, Old, Write, crash_points, seeded

HOLD = "example.com/hold"


@pytest.fixture
async def place(client: Client) -> str:
    await client.create(NAMESPACES, namespace("place"))
    return "place"


async def there(client: Client, name: str = "place") -> bool:
    try:
        await client.get(NAMESPACES, name)
    except NotFound:
        return False
    return True


async def told(client: Client, name: str = "place") -> dict[str, str]:
    """The reasons of the conditions that say something is not over."""
    found = (await client.get(NAMESPACES, name))["status"].get("conditions") or ()
    return {condition["type"]: condition["reason"] for condition in found if condition["status"] == "True"}


async def test_an_empty_namespace_goes_with_one_write(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    wire = cluster.transport("namespaces")
    await client.delete(SERVICE_ACCOUNTS, "default", place)
    async with at_work(namespaces.run(Client(wire), clock)):
        await client.delete(NAMESPACES, place)
        await clock.settle()

        assert not await there(client)
    assert ["PUT /api/v1/namespaces/place/finalize"] == [str(write) for write in wire.writes]


async def test_everything_in_it_goes_and_nothing_else(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    await cluster.install([definition("gears")])
    gears = custom("gears")
    for where in (place, "default"):
        await client.create(PODS, pod("p", where))
        await client.create(SECRETS, {"metadata": {"name": "s", "namespace": where}})
        await client.create(SERVICES, {"metadata": {"name": "v", "namespace": where}, "spec": {"ports": [{"port": 1}]}})
        await client.create(gears, {"apiVersion": gears.api_version, "kind": gears.kind,
                                    "metadata": {"name": "g", "namespace": where}})
        await client.create(EVENTS, {"metadata": {"name": "e", "namespace": where},
                                     "involvedObject": {"namespace": where}})
        await make(client, *(config_map(f"c-{number}", namespace=where) for number in range(30)))
    async with at_work(namespaces.run(cluster.client(), clock)):
        await client.delete(NAMESPACES, place)
        await clock.settle()

        assert not await there(client)
    kinds = (PODS, SECRETS, SERVICES, gears, EVENTS, CONFIG_MAPS)
    left = [(await names(client, kind, place), len(await names(client, kind, "default"))) for kind in kinds]
    assert [([], 1)] * 5 + [([], 30)] == left


async def test_pods_go_before_what_they_may_still_need(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    await client.create(PODS, pod("slow", place, node="n"))    # its kubelet has not ended it yet
    await make(client, config_map("needed", namespace=place))
    async with at_work(namespaces.run(cluster.client(), clock)):
        await client.delete(NAMESPACES, place)
        await clock.advance(minutes=10)
        assert (["slow"], ["needed"]) == (await names(client, PODS, place), await names(client, place=place))
        assert {"NamespaceContentRemaining": "SomeResourcesRemain"} == await told(client)

        await client.delete(PODS, "slow", place, grace=0)
        await clock.settle()
        assert not await there(client), "without time passing: the end of the pod is the news"


async def test_what_a_finalizer_holds_is_told_and_waited_for_without_asking(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    await make(client, config_map("held", namespace=place, finalizers=[HOLD]))
    asked: list[str] = []
    wire = cluster.transport("namespaces", plan=lambda request, _number: asked.append(request.path))
    async with at_work(namespaces.run(Client(wire), clock)):
        await client.delete(NAMESPACES, place)
        await clock.advance(seconds=10)
        assert {
            "NamespaceContentRemaining": "SomeResourcesRemain", "NamespaceFinalizersRemaining": "SomeFinalizersRemain",
        } == await told(client)

        asked.clear()
        await clock.advance(hours=1)
        assert not [path for path in asked if f"/{place}/" in path], "nothing is polled"

        await client.patch(CONFIG_MAPS, "held", place, {"metadata": {"finalizers": None}})
        await clock.settle()
        assert not await there(client)


async def test_a_finalizer_of_the_namespace_itself_is_left_to_its_owner(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    kept = namespace("place")
    kept["metadata"]["finalizers"] = [HOLD]
    await client.create(NAMESPACES, kept)
    await make(client, config_map("content", namespace="place"))
    async with at_work(namespaces.run(cluster.client(), clock)):
        await client.delete(NAMESPACES, "place")
        await clock.advance(seconds=10)
        left = await client.get(NAMESPACES, "place")
        assert ([], [HOLD]) == (left["spec"].get("finalizers") or [], metadata(left)["finalizers"])
        assert {} == await told(client), "all is well, and it says so"
        assert 5 == len(left["status"]["conditions"])

        await client.patch(NAMESPACES, "place", "", {"metadata": {"finalizers": None}})
        await clock.settle()
        assert not await there(client)


def failing(part: str, method: str = "DELETE", times: int = 1000) -> "Failing":
    return Failing(part, method, times)


class Failing:
    """A plan: requests of one kind are answered with 500, so many times."""

    def __init__(self, part: str, method: str, times: int) -> None:
        self.part, self.method, self.times = part, method, times

    def __call__(self, request: Request, _number: int) -> Fault | None:
        if self.times and request.method == self.method and self.part in request.path:
            self.times -= 1
            return Answer(500)
        return None


async def test_a_kind_that_cannot_be_deleted_is_told_and_the_others_go(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    await client.create(SECRETS, {"metadata": {"name": "s", "namespace": place}})
    await make(client, config_map("c", namespace=place))
    trouble = failing("/secrets")
    async with at_work(namespaces.run(cluster.client(plan=trouble), clock)):
        await client.delete(NAMESPACES, place)
        await clock.advance(seconds=30)
        assert (["s"], []) == (await names(client, SECRETS, place), await names(client, place=place))
        assert {"NamespaceDeletionContentFailure": "ContentDeletionFailed"} == await told(client)

        trouble.times = 0
        await clock.advance(seconds=6)
        assert not await there(client)


async def test_a_namespace_does_not_go_while_a_group_cannot_be_asked(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    def plan(request: Request, number: int) -> Fault | None:
        if "APIGroupDiscoveryList" in request.headers.get("accept", ""):
            return Answer(406)
        return trouble(request, number) if request.path.endswith("/v1") else None

    trouble = failing("/apis/coordination.k8s.io/v1", "GET")
    async with at_work(namespaces.run(cluster.client(plan=plan), clock)):
        await client.delete(NAMESPACES, place)
        await clock.advance(seconds=30)
        assert {"NamespaceDeletionDiscoveryFailure": "DiscoveryFailed"} == await told(client)

        trouble.times = 0
        await clock.advance(seconds=6)
        assert not await there(client)


async def test_what_can_only_be_deleted_one_by_one_is(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    made = await make(client, *(config_map(f"c-{number}", namespace=place) for number in range(40)))
    wire = cluster.transport("namespaces")
    undertaker = namespaces.Undertaker(Client(wire), clock, Inventory(client, clock))
    await undertaker._delete(Served(CONFIG_MAPS, frozenset({"list", "delete"})), place, made)

    assert (40, []) == (len(wire.writes), await names(client, place=place))


async def test_a_large_namespace_is_looked_at_a_few_times(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    for number in range(300):
        await client.create(PODS, pod(f"p-{number}", place, node="n"))
    asked: list[str] = []
    wire = cluster.transport("namespaces", plan=lambda request, _number: asked.append(request.path))
    async with at_work(namespaces.run(Client(wire), clock)):
        await client.delete(NAMESPACES, place)
        await clock.advance(seconds=2)
        asked.clear()
        for number in range(300):
            await client.delete(PODS, f"p-{number}", place, grace=0)
            await clock.advance(seconds=0.01)

        assert not await there(client)
    assert 8 > asked.count("/api/v1/namespaces/place/pods")


async def test_a_namespace_made_again_is_left_alone(
    cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    async with at_work(namespaces.run(cluster.client(), clock)):
        await client.delete(NAMESPACES, place)
        await clock.settle()
        await client.create(NAMESPACES, namespace(place))
        await make(client, config_map("mine", namespace=place))
        await clock.advance(minutes=5)

        assert ["mine"] == await names(client, place=place)


async def story(dies_after: int | None) -> tuple[Sequence[Write], Object]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        await client.create(NAMESPACES, namespace("place"))
        await client.create(PODS, pod("p", "place"))
        await client.create(SECRETS, {"metadata": {"name": "s", "namespace": "place", "finalizers": [HOLD]}})
        await make(client, config_map("c", namespace="place"), config_map("c", namespace="default"))
        life = cluster.transport("first life", die_after=dies_after)
        async with at_work(namespaces.run(Client(life), clock)) as tasks:
            await client.delete(NAMESPACES, "place")
            await clock.advance(seconds=10)
            async with at_work(*([namespaces.run(cluster.client(), clock)] if tasks[0].done() else [])):
                await clock.advance(seconds=10)
                await client.patch(SECRETS, "s", "place", {"metadata": {"finalizers": None}})
                await clock.advance(seconds=10)
                if tasks[0].done():
                    async with at_work(namespaces.run(cluster.client(), clock)):
                        await clock.advance(seconds=10)
        left = {name_of(each): len(await names(client, place=name_of(each)))
                for each in (await client.list(NAMESPACES)).items}
        return list(life.writes), left


async def test_dying_after_any_write_changes_nothing_in_the_end() -> None:
    async for where, clean, end in crash_points(story):
        assert "place" not in clean
        assert clean == end, where


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_goes_wrong_on_the_way_it_goes(
    seed: int, cluster: Cluster, client: Client, clock: VirtualClock, place: str
) -> None:
    await client.create(PODS, pod("p", place))
    await make(client, *(config_map(f"c-{number}", namespace=place) for number in range(20)))
    faults = [fault for fault in EVERYTHING if not isinstance(fault, Old)]
    async with at_work(namespaces.run(cluster.client(plan=seeded(seed, faults=faults, until=600)), clock)):
        await client.delete(NAMESPACES, place)
        await clock.advance(hours=1)

        assert not await there(client)
