"""The shell of the scheduler on the real embedded API server: what is decided is done, and told once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from trainmaster.api import groups
from trainmaster.api.core import DEFINITIONS, EVENTS, NODES, PODS, PRIORITY_CLASSES
from trainmaster.api.groups import WHY
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.scheduler import loop
from trainmaster.cluster.scheduler.hands import AT_ONCE, FOLD_SECONDS
from trainmaster.cluster.scheduler.loop import LATEST
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded
from trainmaster.testing.faults import Delay, Plan, nothing, on

WORDS = ("binding", "events", "podgroups", "queues", "pods/")      # of the paths that are written to


@asynccontextmanager
async def scheduling(plan: Plan = nothing) -> AsyncIterator[tuple[VirtualClock, Cluster, Client]]:
    clock = VirtualClock()
    async with embedded(clock) as cluster, running_loop(cluster, clock, plan):
        yield clock, cluster, cluster.client()


@asynccontextmanager
async def running_loop(cluster: Cluster, clock: VirtualClock, plan: Plan,
                       stop: asyncio.Event | None = None) -> AsyncIterator[asyncio.Task[None]]:
    for definition in groups.definitions():
        await cluster.client().create(DEFINITIONS, definition)
    running = asyncio.create_task(loop.run(cluster.client("scheduler", plan), clock, stop=stop))
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def pod(name: str, cpu: str = "1") -> Object:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}


async def add_node(client: Client, name: str = "a", cpu: str = "2") -> None:
    await client.create(NODES, {"metadata": {"name": name}})
    ready = {"type": "Ready", "status": "True"}
    status = {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "10"}, "conditions": [ready]}
    await client.patch(NODES, name, "", {"status": status}, subresource="status")


async def nodes_of_pods(client: Client) -> dict[str, str]:
    return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in (await client.list(PODS, "default")).items}


async def test_a_pod_that_fits_is_bound_and_told() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        await client.create(PODS, pod("x"))
        await clock.settle()

        assert {"x": "a"} == await nodes_of_pods(client)
        (event,) = (await client.list(EVENTS, "default")).items
        assert ("Scheduled", "Successfully assigned default/x to a") == (event["reason"], event["message"])


async def test_a_pod_that_fits_nowhere_says_why_once_and_goes_when_room_appears() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client, cpu="1")
        await client.create(PODS, pod("x", cpu="2"))
        await client.create(PODS, pod("other", cpu="100m"))   # another change must not make it say the same again
        await clock.settle()

        waiting = await client.get(PODS, "x", "default")
        told = [c["message"] for c in waiting["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert ["0/1 nodes are available: 1 Insufficient cpu."] == told
        events = [e for e in (await client.list(EVENTS, "default")).items if e["reason"] == "FailedScheduling"]
        assert [1] == [event["count"] for event in events]

        await add_node(client, "b", cpu="2")
        await clock.settle()

        assert {"x": "b", "other": "a"} == await nodes_of_pods(client)


async def test_room_given_to_one_pod_is_not_given_to_another_before_the_watch_shows_it() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client, cpu="2")
        for name in ("p1", "p2", "p3"):
            await client.create(PODS, pod(name))
        await clock.settle()

        assert 2 == sum(bool(node) for node in (await nodes_of_pods(client)).values())


async def test_a_pod_for_which_others_go_says_where_and_starts_there() -> None:
    async with scheduling() as (clock, _, client):
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 5})
        await add_node(client, cpu="1")
        await client.create(PODS, pod("low"))
        await clock.settle()
        important = pod("x")
        important["spec"]["priorityClassName"] = "high"
        await client.create(PODS, important)
        await clock.settle()

        assert "a" == (await client.get(PODS, "x", "default"))["status"]["nominatedNodeName"]
        assert (await client.get(PODS, "low", "default"))["metadata"]["deletionTimestamp"]

        await client.create(PODS, pod("late"))
        await client.delete(PODS, "low", "default", grace=0)
        await clock.settle()

        assert {"x": "a", "late": ""} == await nodes_of_pods(client)


async def test_pods_of_other_schedulers_are_left_alone() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        foreign = pod("x")
        foreign["spec"]["schedulerName"] = "somebody"
        await client.create(PODS, foreign)
        await clock.settle()

        assert {"x": ""} == await nodes_of_pods(client)


def gang_pod(group: str, index: int, cpu: str = "1") -> Object:
    made = pod(f"{group}-{index}", cpu)
    made["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": group}
    made["spec"]["schedulerName"] = "volcano"
    return made


def gang(name: str, least: int) -> Object:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": least}}


async def test_a_gang_waits_whole_says_why_and_starts_whole() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client, cpu="2")
        await client.create(groups.VOLCANO_GROUPS, gang("g", 3))
        for index in range(3):
            await client.create(PODS, gang_pod("g", index))
        await clock.advance(FOLD_SECONDS)

        assert {"g-0": "", "g-1": "", "g-2": ""} == await nodes_of_pods(client)
        waiting = await client.get(groups.VOLCANO_GROUPS, "g", "default")
        assert "Inqueue" == waiting["status"]["phase"]
        (condition,) = waiting["status"]["conditions"]
        assert condition["message"].startswith("1/3 tasks in gang unschedulable: pod group is not ready, 3 Pending")
        assert "2 of 3 members fit: 1 cpu short" in waiting["metadata"]["annotations"][WHY]
        revision = waiting["metadata"]["resourceVersion"]

        await client.create(PODS, pod("other", cpu="100"))   # a change that concerns others
        await clock.advance(FOLD_SECONDS)
        waiting = await client.get(groups.VOLCANO_GROUPS, "g", "default")
        assert revision == waiting["metadata"]["resourceVersion"], "nothing new is said when nothing changed"

        await add_node(client, "b", cpu="1")
        await clock.advance(FOLD_SECONDS)
        found = await nodes_of_pods(client)
        assert all(found[f"g-{index}"] for index in range(3))
        started = await client.get(groups.VOLCANO_GROUPS, "g", "default")
        assert "Running" == started["status"]["phase"]
        assert WHY not in started["metadata"].get("annotations", {})
        queue = await client.get(groups.VOLCANO_QUEUES, "default")
        assert ("3", 1) == (queue["status"]["allocated"]["cpu"], queue["status"]["running"])


async def test_groups_of_kube_batch_may_be_written_in_either_of_its_api_groups() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        later = groups.KUBE_BATCH_LATER_GROUPS
        await client.create(later, {**gang("g", 2), "apiVersion": later.api_version})
        for index in range(2):
            made = gang_pod("g", index)
            made["spec"]["schedulerName"] = "kube-batch"
            await client.create(PODS, made)
        await clock.advance(FOLD_SECONDS)

        assert {"g-0": "a", "g-1": "a"} == await nodes_of_pods(client)
        assert "Running" == (await client.get(later, "g", "default"))["status"]["phase"]

        both = groups.KUBE_BATCH_GROUPS
        await client.create(both, {**gang("g", 5), "apiVersion": both.api_version})
        await client.delete(later, "g", "default")
        await clock.advance(FOLD_SECONDS)
        assert "Pending" == (await client.get(both, "g", "default"))["status"]["phase"], "the other of its name counts"


async def test_a_pod_of_volcano_without_a_group_is_given_one() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        alone = pod("x")
        alone["spec"]["schedulerName"] = "volcano"
        made = await client.create(PODS, alone)
        await clock.settle()

        assert {"x": "a"} == await nodes_of_pods(client)
        (group,) = (await client.list(groups.VOLCANO_GROUPS, "default")).items
        assert f"podgroup-{made['metadata']['uid']}" == group["metadata"]["name"]


@pytest.mark.parametrize(("replicas", "stays"), [
    pytest.param(0, False, id="a set that wants no pods needs no group"),
    pytest.param(1, True, id="between two pods of a set the group stays"),
])
async def test_the_group_of_a_set_without_pods(replicas: int, stays: bool) -> None:
    sets = Resource("apps", "v1", "replicasets", "ReplicaSet")
    async with scheduling() as (clock, _, client):
        await add_node(client)
        template = {"metadata": {"labels": {"app": "x"}}, "spec": pod("x")["spec"]}
        owner = await client.create(sets, {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}})
        member = pod("x")
        member["spec"]["schedulerName"] = "volcano"
        member["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                                                  "uid": owner["metadata"]["uid"], "controller": True}]
        await client.create(PODS, member)
        await clock.settle()
        assert 1 == len((await client.list(groups.VOLCANO_GROUPS, "default")).items)

        await client.patch(sets, "web", "default", {"spec": {"replicas": replicas}})
        await client.delete(PODS, "x", "default", grace=0)
        await clock.settle()

        assert stays == bool((await client.list(groups.VOLCANO_GROUPS, "default")).items)


async def test_a_gang_that_lost_a_member_has_first_call_on_its_room_for_a_while() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client, cpu="2")
        await client.create(groups.VOLCANO_GROUPS, gang("g", 2))
        for index in range(2):
            await client.create(PODS, gang_pod("g", index))
        await clock.settle()
        for index in range(2):
            await client.patch(PODS, f"g-{index}", "default", {"status": {"phase": "Running"}}, subresource="status")
        await clock.settle()

        await client.delete(PODS, "g-1", "default", grace=0)
        await client.create(PODS, pod("thief"))
        await clock.settle()
        assert "" == (await nodes_of_pods(client))["thief"], "the place is kept"

        await client.create(PODS, gang_pod("g", 1))
        await clock.settle()
        assert {"g-0": "a", "g-1": "a", "thief": ""} == await nodes_of_pods(client)


async def test_the_claim_of_a_gang_ends_by_itself() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client, cpu="2")
        await client.create(groups.VOLCANO_GROUPS, gang("g", 2))
        for index in range(2):
            await client.create(PODS, gang_pod("g", index))
        await clock.settle()
        await client.patch(PODS, "g-0", "default", {"status": {"phase": "Running"}}, subresource="status")
        await client.delete(PODS, "g-1", "default", grace=0)
        await client.create(PODS, pod("other"))
        await clock.settle()
        assert "" == (await nodes_of_pods(client))["other"]

        await clock.advance(200)

        assert "a" == (await nodes_of_pods(client))["other"]


@pytest.mark.parametrize(("resource", "spec", "status"), [
    pytest.param(groups.KUBE_BATCH_GROUPS, {"minMember": 1, "priority": "high"}, {}, id="a priority in words"),
    pytest.param(groups.KUBE_BATCH_GROUPS, {"minTaskMember": "all", "roles": ["x"]}, {}, id="roles that are none"),
    pytest.param(groups.T9K_GROUPS, {"minResources": {"cpu": {"limits": 1}}}, {}, id="an amount that is an object"),
    pytest.param(groups.VOLCANO_GROUPS, {"minResources": {"cpu": "1e999999999"}}, {}, id="an amount beyond measure"),
    pytest.param(groups.VOLCANO_GROUPS, {"minMember": 1}, {"conditions": ["x"]}, id="conditions that are none"),
    pytest.param(groups.T9K_QUEUES, {"weight": "heavy", "guarantee": "all", "quota": {}}, {}, id="a queue of words"),
    pytest.param(groups.VOLCANO_QUEUES, {}, {"allocated": "much", "pending": "few"}, id="words in its status"),
])
async def test_what_a_group_or_queue_says_that_means_nothing_stops_nobody(
        resource: Resource, spec: Object, status: Object) -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        place = {"namespace": "default"} if resource.namespaced else {}
        odd = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "odd", **place},
               "spec": spec, "status": status}
        await client.create(resource, odd)
        if status and resource is groups.VOLCANO_QUEUES:
            await client.patch(resource, "odd", "", {"status": status}, subresource="status")
        member = gang_pod("odd", 0, cpu="100m")
        member["spec"]["schedulerName"] = "kube-batch" if resource is groups.KUBE_BATCH_GROUPS else "volcano"
        await client.create(PODS, member)
        await client.create(PODS, pod("other"))
        await clock.settle()

        assert "a" == (await nodes_of_pods(client))["other"]


@pytest.mark.parametrize("members", [
    pytest.param("\u00b2", id="a digit that is no number"),
    pytest.param("9" * 5000, id="more digits than a number can have"),
    pytest.param("2147483648", id="more members than a group can have"),
    pytest.param("0", id="nobody"),
])
async def test_a_pod_that_asks_for_an_impossible_group_gets_one_of_its_own(members: str) -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        alone = pod("x")
        alone["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": members}
        alone["spec"]["schedulerName"] = "volcano"
        await client.create(PODS, alone)
        await clock.settle()

        assert {"x": "a"} == await nodes_of_pods(client)


async def test_all_bindings_go_out_before_the_words_about_them() -> None:
    asked: list[str] = []

    def watching(request: Request, _: int) -> None:
        if request.method == "POST" and request.path.endswith(("/binding", "/events")):
            asked.append(request.path.rpartition("/")[2])

    clock = VirtualClock()
    async with embedded(clock) as cluster:
        client = cluster.client()
        await add_node(client, cpu="100")
        await client.patch(NODES, "a", "", {"status": {"allocatable": {"pods": "100"}}}, subresource="status")
        for number in range(3 * AT_ONCE):
            await client.create(PODS, pod(f"p{number}"))
        async with running_loop(cluster, clock, watching):
            await clock.settle()

    assert ["binding"] * 3 * AT_ONCE + ["events"] * 3 * AT_ONCE == asked


async def test_a_launch_is_told_in_few_writes_and_its_phases_at_once() -> None:
    """Sixteen members appear, start and end one by one; each would be a write of the group and one of the queue."""
    written: Counter[str] = Counter()

    def watching(request: Request, _: int) -> None:
        if request.method != "GET":
            written[f"{request.method} {next(word for word in WORDS if word in request.path)}"] += 1

    async with scheduling(watching) as (clock, _, client):
        await add_node(client, cpu="16")
        await client.patch(NODES, "a", "", {"status": {"allocatable": {"pods": "99"}}}, subresource="status")
        await clock.advance(1)
        written.clear()
        await client.create(groups.VOLCANO_GROUPS, gang("g", 16))
        await clock.settle()
        assert "Inqueue" == (await client.get(groups.VOLCANO_GROUPS, "g", "default"))["status"]["phase"]
        for index in range(16):
            await client.create(PODS, gang_pod("g", index))
            await clock.advance(0.01)
        assert "Running" == (await client.get(groups.VOLCANO_GROUPS, "g", "default"))["status"]["phase"]
        for phase, count in (("Running", "running"), ("Succeeded", "succeeded")):
            for index in range(16):
                await client.patch(PODS, f"g-{index}", "default", {"status": {"phase": phase}}, subresource="status")
                await clock.advance(0.1)
            await clock.advance(FOLD_SECONDS)
            assert 16 == (await client.get(groups.VOLCANO_GROUPS, "g", "default"))["status"][count]
        assert {"POST binding": 16, "POST events": 17} == {what: count for what, count in written.items()
                                                           if what.startswith("POST")}
        assert 12 >= written["PATCH podgroups"]
        assert 8 >= written["PATCH queues"]
        assert 0 == written["PATCH pods/"], "no member was told to wait for the next, who came at once"

        written.clear()
        await clock.advance(3600)
        assert {} == written, "nothing is written at rest"


async def test_who_comes_while_others_are_being_bound_does_not_wait_for_them() -> None:
    async with scheduling(on("POST", "slow/binding", Delay(3600))) as (clock, _, client):
        await add_node(client)
        await client.create(PODS, pod("slow"))
        await clock.settle()
        await client.create(PODS, pod("late"))
        await clock.advance(LATEST)
        await clock.settle()

        assert {"slow": "", "late": "a"} == await nodes_of_pods(client)


async def test_told_to_stop_it_ends_what_it_began_and_says_it() -> None:
    clock, stop = VirtualClock(), asyncio.Event()
    async with embedded(clock) as cluster:
        client = cluster.client()
        async with running_loop(cluster, clock, on("POST", "/binding", Delay(5)), stop) as running:
            await add_node(client)
            await client.create(PODS, pod("x"))
            await clock.settle()
            stop.set()
            await clock.advance(5)
            await running

        assert {"x": "a"} == await nodes_of_pods(client)
        assert ["Scheduled"] == [event["reason"] for event in (await client.list(EVENTS, "default")).items]
