"""Pods whose node is no more."""

from collections.abc import Sequence

import pytest
from tests.unit.cluster.controllers.stage import at_work, names

from trainmaster.api.core import NODES, PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.auth import account
from trainmaster.cluster.controllers import stranded
from trainmaster.cluster.controllers.stranded import QUARANTINE
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import Delay, Write, crash_points, on

WAIT = QUARANTINE.total_seconds()


async def node(client: Client, name: str) -> None:
    await client.create(NODES, {"metadata": {"name": name}})


async def bound(client: Client, name: str, to: str, phase: str = "Running", **about: object) -> None:
    made = pod(name, node=to)
    made["metadata"] |= about
    await client.create(PODS, made)
    await client.patch(PODS, name, "default", {"status": {"phase": phase}}, subresource="status")


async def test_pods_go_when_their_node_has_been_gone_for_a_while(
        cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await node(client, "here")
    await node(client, "gone")
    for name, to, phase in (("runs", "gone", "Running"), ("starts", "gone", "Pending"), ("ended", "gone", "Succeeded"),
                            ("failed", "gone", "Failed"), ("stays", "here", "Running"), ("waits", "", "Pending")):
        await bound(client, name, to, phase)
    async with at_work(stranded.run(cluster.client(), clock)):
        await clock.advance(10 * WAIT)
        assert 6 == len(await names(client, PODS))

        await client.delete(NODES, "gone")
        await clock.advance(WAIT - 1)
        assert 6 == len(await names(client, PODS))
        await clock.advance(2)
        assert ["ended", "failed", "stays", "waits"] == await names(client, PODS)


@pytest.mark.parametrize("known_before", [
    pytest.param(True, id="bound before the controller began"),
    pytest.param(False, id="bound while it is at work"),
])
async def test_a_node_that_never_was_holds_its_pods_for_the_same_while(
        cluster: Cluster, client: Client, clock: VirtualClock, known_before: bool) -> None:
    if known_before:
        await bound(client, "lost", "nowhere")
    async with at_work(stranded.run(cluster.client(), clock)):
        await clock.settle()
        if not known_before:
            await bound(client, "lost", "nowhere")
        await clock.advance(WAIT - 1)
        assert ["lost"] == await names(client, PODS)
        await clock.advance(2)
        assert [] == await names(client, PODS)


async def test_a_node_that_comes_back_in_time_keeps_its_pods_and_has_all_the_time_again(
        cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await node(client, "box")
    await bound(client, "runs", "box")
    async with at_work(stranded.run(cluster.client(), clock)):
        for _ in range(3):
            await clock.settle()
            await client.delete(NODES, "box")
            await clock.advance(WAIT - 5)
            await node(client, "box")
            await clock.advance(10)
        assert ["runs"] == await names(client, PODS)


async def test_one_that_comes_back_at_the_last_moment_is_found_by_asking(
        cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await bound(client, "runs", "box")
    async with at_work(stranded.run(cluster.client(plan=on("GET", "/nodes/box", Delay(2.0))), clock)):
        await clock.advance(WAIT + 1)
        await node(client, "box")
        await clock.advance(WAIT)

        assert ["runs"] == await names(client, PODS)


async def test_while_nothing_is_missing_nothing_is_asked(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    await node(client, "box")
    await bound(client, "runs", "box")
    asked: list[str] = []

    def listen(request: Request, _number: int) -> None:
        if not any(name == "watch" for name, _ in request.query):
            asked.append(f"{request.method} {request.path}")

    async with at_work(stranded.run(cluster.client(plan=listen), clock)):
        await clock.settle()
        asked.clear()
        await clock.advance(10 * WAIT)

    assert [] == asked


async def test_a_pod_that_is_held_is_said_to_have_failed(cluster: Cluster, client: Client, clock: VirtualClock) -> None:
    """A Job counts it, and its policy may pass over disruptions."""
    await bound(client, "counted", "nowhere", finalizers=["batch.kubernetes.io/job-tracking"])
    await bound(client, "free", "nowhere")
    me = cluster.client_as(account("kube-system", "pod-garbage-collector"))      # with the rights of Kubernetes' own
    async with at_work(stranded.run(me, clock)):
        await clock.advance(WAIT + 1)
        left: Object = await client.get(PODS, "counted", "default")

        assert ["counted"] == await names(client, PODS)

    assert left["metadata"].get("deletionTimestamp")
    assert "Failed" == left["status"]["phase"]
    assert [("DisruptionTarget", "DeletionByPodGC")] == [
        (each["type"], each["reason"]) for each in left["status"]["conditions"] if each["type"] == "DisruptionTarget"]


async def story(dies_after: int | None) -> tuple[Sequence[Write], list[str]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        await node(client, "box")
        for number in range(3):
            await bound(client, f"lost-{number}", "nowhere")
        await bound(client, "runs", "box")
        life = cluster.transport("first life", die_after=dies_after)
        async with at_work(stranded.run(Client(life), clock)) as tasks:
            await clock.advance(WAIT + 1)
            if tasks[0].done():
                async with at_work(stranded.run(cluster.client(), clock)):
                    await clock.advance(WAIT + 1)
        return list(life.writes), await names(client, PODS)


async def test_dying_after_any_write_changes_nothing_in_the_end() -> None:
    async for where, clean, end in crash_points(story):
        assert ["runs"] == clean == end, where
