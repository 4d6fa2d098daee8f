"""Pods that have been in a queue for too long: which, when, and what is told to rest."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.cluster.scheduler.test_loop import add_node, pod, scheduling

from trainmaster.api import groups
from trainmaster.api.core import EVENTS, PODS
from trainmaster.api.meta import Object, Resource
from trainmaster.api.schema import definitions
from trainmaster.cluster.scheduler import tenure
from trainmaster.cluster.scheduler.dialects import T9K, read_queue
from trainmaster.kube.client import Client
from trainmaster.testing.scheduling import NOW, gang, line, machine, member, snapshot

OLD = "2026-01-01T10:00:00Z"      # two hours before NOW
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")


def owned(made: Object, kind: str, uid: str) -> Object:
    made["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": uid,
                                            "controller": True}]
    return made


def old(index: int = 0, **more: Any) -> Object:
    return member("g", "worker", index, dialect=T9K, **{"created": OLD, "on": "node", "phase": "Running", **more})


@pytest.mark.parametrize(("longest", "pods", "expected"), [
    pytest.param("1h", [old()], ["g-worker-0"], id="a pod that is older than its queue allows"),
    pytest.param("1h", [old(on="", phase="Pending")], ["g-worker-0"], id="waiting counts as well"),
    pytest.param("3h", [old()], [], id="not yet"),
    pytest.param("1w2d", [old()], [], id="weeks and days"),
    pytest.param("0", [old()], [], id="nothing is no bound"),
    pytest.param("soon", [old()], [], id="a word is no bound"),
    pytest.param("1h", [old(phase="Succeeded")], [], id="who is done may stay"),
    pytest.param("1h", [old(deleted=True)], [], id="who is going goes"),
    pytest.param("1h", [old(priority=2_000_000_000)], [], id="what the system needs stays"),
    pytest.param("1h", [owned(old(), "DaemonSet", "d")], [], id="the pods of a DaemonSet stay"),
    pytest.param("1h", [owned(old(index), "ReplicaSet", "r") for index in range(3)], ["g-worker-0"],
                 id="one for all of an owner"),
])
def test_who_is_overdue(longest: str, pods: list[Object], expected: list[str]) -> None:
    there = snapshot([machine(gpu=8)], pods, [gang("g", 1, dialect=T9K, queue="q")], [line("q", maxDuration=longest)],
                     T9K)

    assert expected == [late.pod.key.name for late in tenure.overdue(there, NOW)]


def test_the_next_end_is_known() -> None:
    there = snapshot([machine(gpu=8)], [old()], [gang("g", 1, dialect=T9K, queue="q")], [line("q", maxDuration="3h")],
                     T9K)

    assert NOW + timedelta(hours=1) == tenure.next_end(there, NOW)


@pytest.mark.parametrize(("text", "seconds"), [
    pytest.param("1y", 365 * 86400, id="a year"), pytest.param("1w2d3h4m5s6ms", 788645.006, id="all of them"),
    pytest.param("500ms", 0.5, id="half a second"), pytest.param(5, 0, id="a number"), pytest.param("", 0, id="empty"),
])
def test_how_long_is_long(text: object, seconds: float) -> None:
    assert seconds == pytest.approx(read_queue(line("q", maxDuration=text)).longest)


async def in_queue(client: Client, longest: str, owner: Object | None = None) -> None:
    await client.create(groups.T9K_QUEUES, {
        "apiVersion": "scheduler.tensorstack.dev/v1beta1", "kind": "Queue", "spec": {"maxDuration": longest},
        "metadata": {"name": "q", "namespace": "default"}})
    made = pod("x")
    made["spec"]["schedulerName"] = "t9k-scheduler"
    made["metadata"]["labels"] = {"scheduler.tensorstack.dev/queue": "q"}
    if owner is not None:
        made["metadata"]["ownerReferences"] = [{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": True}]
    await client.create(PODS, made)


async def test_a_pod_of_nobody_is_deleted_when_its_time_is_over() -> None:
    async with scheduling() as (clock, _, client):
        await add_node(client)
        await in_queue(client, "1h")
        await clock.settle()
        await clock.advance(3599)
        assert "a" == (await client.get(PODS, "x", "default"))["spec"]["nodeName"]

        await clock.advance(2)

        assert (await client.get(PODS, "x", "default"))["metadata"]["deletionTimestamp"]
        told = [event for event in (await client.list(EVENTS, "default")).items
                if event["reason"] == "MaxDurationExceeded"]
        assert ["Pod default/x is older than queue q allows (3600 seconds): deleted"] == [e["message"] for e in told]


async def test_what_made_the_pod_is_put_to_rest() -> None:
    async with scheduling() as (clock, cluster, client):
        await cluster.install([each for each in definitions() if each["spec"]["names"]["kind"] == "TFJob"])
        template = {"spec": {"containers": [{"name": "tensorflow", "image": "x"}]}}
        job_kind = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")
        job = await client.create(job_kind, {
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "j", "namespace": "default"},
            "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}}})
        await add_node(client)
        await in_queue(client, "1h", job)
        await clock.settle()
        await clock.advance(3601)

        assert (await client.get(job_kind, "j", "default"))["spec"]["runPolicy"]["suspend"]
        told = {event["involvedObject"]["kind"]: event["message"] for event in (
            await client.list(EVENTS, "default")).items if event["reason"] == "MaxDurationExceeded"}
        assert {"Pod", "TFJob"} == told.keys()
        assert told["TFJob"].endswith("TFJob j put to rest")
