"""Endpoints and slices of services on the embedded server, on virtual time."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.cluster.controllers.backed import running, service
from tests.unit.cluster.controllers.stage import at_work, definition, names

from trainmaster.api.core import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from trainmaster.api.meta import Object, labels_of
from trainmaster.cluster.controllers import announce, endpoints
from trainmaster.cluster.controllers.announce import Api
from trainmaster.cluster.controllers.garbage import Collector
from trainmaster.cluster.controllers.kinds import Kinds
from trainmaster.cluster.controllers.slices import MANAGED_BY, MANAGER, SERVICE_NAME
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import EVERYTHING, Answer, Old, Write, crash_points, seeded


async def following(client: Client, clock: VirtualClock) -> None:
    """The controllers under test, with what they need."""
    kinds = Kinds(client, clock)
    async with at_work(kinds.run()):
        await endpoints.run(client, clock, kinds)


async def place(client: Client, number: int = 1, **fields: Any) -> None:
    """A pod, and what its kubelet says of it."""
    wanted = running(number, **fields)
    status = wanted.pop("status")
    made = await client.create(PODS, wanted)
    await client.replace(PODS, {**made, "status": {**made["status"], **status}}, subresource="status")


async def report(client: Client, number: int = 1, **fields: Any) -> None:
    found = await client.get(PODS, f"p-{number}", "default")
    status = running(number, **fields)["status"]
    await client.replace(PODS, {**found, "status": {**found["status"], **status}}, subresource="status")


async def listed(client: Client, name: str = "web") -> tuple[list[str], list[str]]:
    """Ready and other pods in the Endpoints of a service."""
    subsets = (await client.get(ENDPOINTS, name, "default")).get("subsets") or ()
    ready, others = (
        [each["targetRef"]["name"] for subset in subsets for each in subset.get(field) or ()]
        for field in ("addresses", "notReadyAddresses")
    )
    return ready, others


async def sliced(client: Client, name: str = "web") -> list[str]:
    """Pods in the slices of a service; those that are not ready with a question mark, those that go with a cross."""
    found = (await client.list(ENDPOINT_SLICES, "default", labels=f"{SERVICE_NAME}={name}")).items
    return sorted(
        entry["targetRef"]["name"]
        + ("" if entry["conditions"]["ready"] else "?") + ("x" if entry["conditions"]["terminating"] else "")
        for one in found for entry in one.get("endpoints") or ()
    )


async def test_pods_come_get_ready_and_go(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(SERVICES, service())
    seen = []
    async with at_work(following(cluster.client(), clock)):
        await clock.advance(seconds=1)
        seen.append((await listed(client), await sliced(client)))
        for step in (
            place(client, 1), place(client, 2, ready=False), report(client, 2), report(client, 1, phase="Succeeded"),
            client.delete(PODS, "p-2", "default"), client.delete(PODS, "p-2", "default", grace=0),
        ):
            await step
            await clock.advance(seconds=1)
            seen.append((await listed(client), await sliced(client)))

    assert [
        (([], []), []),
        ((["p-1"], []), ["p-1"]),
        ((["p-1"], ["p-2"]), ["p-1", "p-2?"]),
        ((["p-1", "p-2"], []), ["p-1", "p-2"]),
        ((["p-2"], []), ["p-2"]),
        (([], []), ["p-2?x"]),
        (([], []), []),
    ] == seen


@pytest.mark.parametrize(("spec", "watched"), [
    pytest.param({"selector": {}}, False, id="nobody follows pods for a service that selects none"),
    pytest.param({"selector": {"app": "web"}}, True, id="the first service that selects pods has them followed"),
])
async def test_pods_are_followed_when_a_service_needs_them(
    cluster: Cluster, client: Client, clock: VirtualClock, spec: Object, watched: bool
) -> None:
    asked: set[str] = set()

    def noting(request: Request, _number: int) -> None:
        asked.add(request.path)

    async with at_work(following(cluster.client(plan=noting), clock)):
        await client.create(SERVICES, service(**spec))
        await clock.advance(seconds=1)

    assert ("/api/v1/services" in asked, "/api/v1/pods" in asked) == (True, watched)


async def test_a_pod_moves_from_one_service_to_another_with_its_labels(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(SERVICES, service("one", selector={"to": "one"}))
    await client.create(SERVICES, service("two", selector={"to": "two"}))
    async with at_work(following(cluster.client(), clock)):
        await place(client, labels={"to": "one"})
        await clock.advance(seconds=1)
        before = [await listed(client, name) for name in ("one", "two")]
        await client.patch(PODS, "p-1", "default", {"metadata": {"labels": {"to": "two"}}})
        await clock.advance(seconds=1)
        after = [await listed(client, name) for name in ("one", "two")]

    assert ([(["p-1"], []), ([], [])], [([], []), (["p-1"], [])]) == (before, after)


async def test_labels_and_ports_follow_the_service(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(SERVICES, service(clusterIP="None"))
    await place(client)
    async with at_work(following(cluster.client(), clock)):
        await clock.advance(seconds=1)
        change = {"metadata": {"labels": {"a": "b"}}, "spec": {"ports": [{"port": 80, "targetPort": 9}]}}
        await client.patch(SERVICES, "web", "default", change)
        await clock.advance(seconds=1)

    found = await client.get(ENDPOINTS, "web", "default")
    assert {"a": "b", "service.kubernetes.io/headless": ""}.items() <= labels_of(found).items()
    assert [9] == [port["port"] for port in found["subsets"][0]["ports"]]


async def test_both_go_with_the_service(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(SERVICES, service())
    async with at_work(following(cluster.client(), clock)):
        await clock.advance(seconds=1)
        [one] = (await client.list(ENDPOINT_SLICES, "default")).items
        assert MANAGER == labels_of(one)[MANAGED_BY]

        await client.delete(SERVICES, "web", "default")
        await clock.advance(seconds=1)
        assert ([], []) == (await names(client, ENDPOINTS), await names(client, ENDPOINT_SLICES))


async def test_what_a_service_left_behind_while_nobody_looked_is_cleaned_up(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(SERVICES, service())
    async with at_work(following(cluster.client(), clock)):
        await clock.advance(seconds=1)
    await client.delete(SERVICES, "web", "default")
    subsets = [{"addresses": [{"ip": "10.1.1.1"}]}]
    await client.create(ENDPOINTS, {"metadata": {"name": "by-hand", "namespace": "default"}, "subsets": subsets})
    async with at_work(following(cluster.client(), clock), Collector(cluster.client(), clock).run()):
        await clock.advance(seconds=1)

    assert (["by-hand"], []) == (await names(client, ENDPOINTS), await names(client, ENDPOINT_SLICES))


async def test_a_service_without_a_selector_belongs_to_whoever_fills_it(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(SERVICES, service("outside", selector={}))
    subset = {"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 1, "protocol": "TCP"}]}
    filled = {"metadata": {"name": "outside", "namespace": "default"}, "subsets": [subset]}
    await client.create(ENDPOINTS, filled)
    async with at_work(following(cluster.client(), clock)):
        await clock.advance(minutes=1)
        assert [subset] == (await client.get(ENDPOINTS, "outside", "default"))["subsets"]

        await client.delete(SERVICES, "outside", "default")
        await clock.advance(seconds=1)
        assert [] == await names(client, ENDPOINTS)


async def test_what_somebody_changed_or_deleted_is_put_right(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(SERVICES, service())
    await place(client)
    async with at_work(following(cluster.client(), clock)):
        await clock.advance(seconds=1)
        await client.patch(ENDPOINTS, "web", "default", {"subsets": None})
        await client.delete(ENDPOINT_SLICES, (await names(client, ENDPOINT_SLICES))[0], "default")
        await clock.advance(seconds=1)
        assert ((["p-1"], []), ["p-1"]) == (await listed(client), await sliced(client))

        await client.delete(ENDPOINTS, "web", "default")
        await clock.advance(seconds=1)
        assert (["p-1"], []) == await listed(client)


async def test_slices_begin_when_the_server_has_them(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    hidden = True

    def without_slices(request: Request, _number: int) -> Answer | None:
        if "APIGroupDiscoveryList" in request.headers.get("accept", ""):
            return Answer(406)
        return Answer(404) if hidden and "discovery.k8s.io" in request.path else None

    await client.create(SERVICES, service())
    await place(client)
    async with at_work(following(cluster.client(plan=without_slices), clock)):
        await clock.advance(minutes=5)
        assert ((["p-1"], []), []) == (await listed(client), await sliced(client))

        hidden = False
        await cluster.install([definition("gears")])    # kinds changed: time to ask again
        await clock.advance(minutes=1)
        assert ["p-1"] == await sliced(client)


async def test_a_burst_of_pods_is_a_few_writes(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await client.create(SERVICES, service())
    wire = cluster.transport("endpoints")
    async with at_work(following(Client(wire), clock)):
        await clock.advance(seconds=1)
        wire.writes.clear()
        for number in range(100):
            await place(client, number)
        await clock.advance(seconds=1)

        assert 100 == len((await listed(client))[0])
    assert 5 > len([write for write in wire.writes if "/endpoints" in write.path])


async def test_a_headless_service_and_its_pods_are_written_about_once_when_they_have_begun(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    wire = cluster.transport("endpoints")
    async with at_work(following(Client(wire), clock)):
        await clock.advance(seconds=1)
        await client.create(SERVICES, service(clusterIP="None"))
        await clock.advance(seconds=0.5)
        await place(client, ready=False)
        await clock.advance(seconds=0.2)
        await report(client)
        await clock.advance(seconds=2)

        assert (["p-1"], []) == await listed(client)
        assert ["p-1"] == await sliced(client)
    assert ["POST", "POST"] == [write.method for write in wire.writes if "/endpoint" in write.path]


async def test_a_pod_that_changes_in_other_ways_is_no_news(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(SERVICES, service())
    await place(client)
    wire = cluster.transport("endpoints")
    async with at_work(following(Client(wire), clock)):
        await clock.advance(seconds=1)
        wire.writes.clear()
        for number in range(10):
            await client.patch(PODS, "p-1", "default", {"metadata": {"annotations": {"beat": str(number)}}})
            await clock.advance(seconds=1)

    assert [] == wire.writes


async def test_one_service_in_trouble_does_not_stop_the_others(
    cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    def broken(request: Request, _number: int) -> Answer | None:
        stuck = request.method == "POST" and request.path.endswith("/endpoints") and b'"stuck"' in request.body
        return Answer(500) if stuck else None

    for name in ("stuck", "web"):
        await client.create(SERVICES, service(name))
    async with at_work(following(cluster.client(plan=broken), clock)):
        await clock.advance(minutes=1)

        assert ["web"] == await names(client, ENDPOINTS)


State = tuple[tuple[list[str], list[str]], list[str], list[str]]


async def story(dies_after: int | None) -> tuple[Sequence[Write], State]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        await client.create(SERVICES, service())
        await client.create(SERVICES, service("brief"))
        life = cluster.transport("first life", die_after=dies_after)
        async with at_work(following(Client(life), clock)) as tasks:
            for number in range(3):
                await place(client, number, ready=number != 1)
                await clock.advance(seconds=1)
            await client.delete(SERVICES, "brief", "default")
            await clock.advance(seconds=1)
            if tasks[0].done():
                async with at_work(following(cluster.client(), clock)):
                    await clock.advance(minutes=1)
        return list(life.writes), (await listed(client), await sliced(client), await names(client, ENDPOINTS))


async def test_dying_after_any_write_changes_nothing_in_the_end() -> None:
    async for where, clean, end in crash_points(story):
        assert clean == end, where
        assert ((["p-0", "p-2"], ["p-1"]), ["p-0", "p-1?", "p-2"], ["web"]) == clean


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_goes_wrong_on_the_way_everybody_is_listed_once(
    seed: int, cluster: Cluster, client: Client, clock: VirtualClock
) -> None:
    await client.create(SERVICES, service())
    faults = [fault for fault in EVERYTHING if not isinstance(fault, Old)]
    async with at_work(following(cluster.client(plan=seeded(seed, faults=faults, until=400)), clock)):
        for number in range(6):
            await place(client, number, ready=number % 2 == 0)
            await clock.advance(seconds=2)
        await client.delete(PODS, "p-0", "default", grace=0)
        await clock.advance(hours=1)

        assert ((["p-2", "p-4"], ["p-1", "p-3", "p-5"]), ["p-1?", "p-2", "p-3?", "p-4", "p-5?"]) == (
            await listed(client), await sliced(client)
        )


class TestAnnouncing:
    """The service of the API server itself."""

    api = Api("10.88.0.1", 6443)

    async def announcing(self, client: Client, clock: VirtualClock, api: Api | None = None) -> None:
        kinds = Kinds(client, clock)
        async with at_work(kinds.run()):
            await announce.run(client, clock, kinds, api or self.api)

    async def said(self, client: Client) -> list[Any]:
        made = await client.get(SERVICES, "kubernetes", "default")
        points = await client.get(ENDPOINTS, "kubernetes", "default")
        one = await client.get(ENDPOINT_SLICES, "kubernetes", "default")
        return [
            made["spec"]["ports"][0]["targetPort"],
            [(each["ip"], subset["ports"][0]["port"]) for subset in points["subsets"] for each in subset["addresses"]],
            [(each["addresses"], one["ports"][0]["port"]) for each in one["endpoints"]],
        ]

    expected: list[Any] = [6443, [("10.88.0.1", 6443)], [(["10.88.0.1"], 6443)]]  # noqa: RUF012  read only

    async def test_it_is_made_with_a_fixed_address(self, cluster: Cluster, client: Client, clock: VirtualClock) -> None:
        async with at_work(self.announcing(cluster.client(), clock)):
            await clock.settle()

        assert self.expected == await self.said(client)
        assert "10.96.0.1" == (await client.get(SERVICES, "kubernetes", "default"))["spec"]["clusterIP"]
        one = await client.get(ENDPOINT_SLICES, "kubernetes", "default")
        assert {SERVICE_NAME: "kubernetes"} == labels_of(one)

    async def test_it_is_there_before_anybody_watches_and_nothing_of_it_is_written_twice(
        self, cluster: Cluster, client: Client, clock: VirtualClock
    ) -> None:
        await announce.begin(client, Api("10.88.0.1", 1))
        await announce.begin(client, self.api)
        assert self.expected == await self.said(client)

        wire = cluster.transport("announcer")
        async with at_work(self.announcing(Client(wire), clock)):
            await clock.settle()
        assert [] == wire.writes

    async def test_it_is_put_right(self, cluster: Cluster, client: Client, clock: VirtualClock) -> None:
        async with at_work(self.announcing(cluster.client(), clock)):
            await clock.settle()
            await client.patch(ENDPOINTS, "kubernetes", "default", {"subsets": None})
            await client.delete(ENDPOINT_SLICES, "kubernetes", "default")
            await client.patch(SERVICES, "kubernetes", "default", {"spec": {"ports": [{"port": 1}]}})
            await clock.advance(seconds=1)
            assert self.expected == await self.said(client)

            await client.delete(SERVICES, "kubernetes", "default")
            await clock.advance(seconds=1)
            assert self.expected == await self.said(client)

    async def test_another_port_after_a_restart_reaches_all_three(
        self, cluster: Cluster, client: Client, clock: VirtualClock
    ) -> None:
        wire = cluster.transport("second life")
        old = Api("10.88.0.1", 1)
        for life, api in ((cluster.client(), old), (cluster.client(), self.api), (Client(wire), self.api)):
            async with at_work(self.announcing(life, clock, api)):
                await clock.settle()

        assert self.expected == await self.said(client)
        assert [] == wire.writes, "what is right is not written"

    async def test_a_service_that_was_made_by_hand_keeps_its_address(
        self, cluster: Cluster, client: Client, clock: VirtualClock
    ) -> None:
        made: Object = await client.create(SERVICES, service("kubernetes", selector={}))
        async with at_work(self.announcing(cluster.client(), clock)):
            await clock.advance(seconds=1)

        now = await client.get(SERVICES, "kubernetes", "default")
        assert (made["spec"]["clusterIP"], 6443) == (now["spec"]["clusterIP"], now["spec"]["ports"][0]["targetPort"])
