"""Manifests become objects of a cluster, or a sentence that says why not."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.kube.test_discovery import old

from trainmaster.api.meta import Object, Resource
from trainmaster.api.schema import definitions
from trainmaster.cluster.controllers.garbage import Collector
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError
from trainmaster.sdk.errors import ManifestError
from trainmaster.sdk.manifests import Manifest
from trainmaster.sdk.submit import submit
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded
from trainmaster.testing.faults import Answer, on

TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with embedded(VirtualClock()) as cluster:
        await cluster.install(definitions())
        yield cluster.client()


def manifest(name: str = "a", namespace: str = "", **spec: object) -> Manifest:
    container = {"name": "tensorflow", "image": "x"}
    worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    about: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
    thing = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": about,
             "spec": {"tfReplicaSpecs": {"Worker": worker}, **spec}}
    return Manifest(thing, "job.yaml")


async def test_a_new_job_is_created_in_the_namespace_asked_for(client: Client) -> None:
    (one,) = await submit(client, VirtualClock(), [manifest()], "default")

    assert ("created", True, "default") == (one.how, one.is_training, one.thing["metadata"]["namespace"])


async def test_a_job_that_runs_already_is_followed_not_touched(client: Client) -> None:
    (first,) = await submit(client, VirtualClock(), [manifest()], "default")
    (again,) = await submit(client, VirtualClock(), [manifest()], "default")

    assert ("runs already", first.thing["metadata"]["uid"]) == (again.how, again.thing["metadata"]["uid"])


async def test_a_finished_job_of_the_same_name_makes_room() -> None:
    """With the garbage collector, which lets the old one go once all that it owned is gone."""
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        await cluster.install(definitions())
        client = cluster.client()
        collecting = asyncio.create_task(Collector(cluster.client("garbage"), clock).run())
        (first,) = await submit(client, clock, [manifest()], "default")
        condition = {"type": "Failed", "status": "True", "reason": "Failed", "message": "done"}
        await client.patch(TFJOBS, "a", "default", {"status": {"conditions": [condition]}}, subresource="status")

        (again,) = await clock.run(submit(client, clock, [manifest()], "default"))

        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)
    assert "replaced the finished one" == again.how
    assert first.thing["metadata"]["uid"] != again.thing["metadata"]["uid"]


async def test_a_finished_job_that_does_not_go_is_said_with_what_holds_it() -> None:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        await cluster.install(definitions())
        client = cluster.client()
        held = manifest()
        held.thing["metadata"]["finalizers"] = ["example.com/bookkeeping"]
        await submit(client, clock, [held], "default")
        condition = {"type": "Failed", "status": "True", "reason": "Failed", "message": "done"}
        await client.patch(TFJOBS, "a", "default", {"status": {"conditions": [condition]}}, subresource="status")

        with pytest.raises(ManifestError, match=r"is not gone after 120 s; it is held by .*example\.com/bookkeeping"):
            await clock.run(submit(client, clock, [manifest()], "default"))


async def test_a_group_that_does_not_answer_matters_only_to_those_of_its_kinds() -> None:
    """On many a cluster the metrics, or another server behind the API, are away."""
    async with embedded(VirtualClock()) as cluster:
        await cluster.install(definitions())
        another, ours = (cluster.client(plan=old(on("GET", f"/apis/{group}", Answer(503))))
                         for group in ("coordination.k8s.io/v1", "kubeflow.org/v1"))

        (one,) = await submit(another, VirtualClock(), [manifest()], "default")
        assert "created" == one.how
        with pytest.raises(ApiError, match="503"):
            await submit(ours, VirtualClock(), [manifest()], "default")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        pytest.param(manifest(spek=1), 'unknown field "spec.spek"', id="an unknown field is named"),
        pytest.param(manifest(runPolicy={"backoffLimit": -1}), "spec.runPolicy.backoffLimit: Invalid value: -1",
                     id="what the operator would refuse is refused before it is sent"),
        pytest.param(manifest(namespace="nowhere"), 'namespaces "nowhere" not found',
                     id="a namespace that is not there"),
        pytest.param(Manifest({**manifest().thing, "kind": "TfJob"}, "job.yaml"), "Did you mean .*'kind: TFJob'",
                     id="a kind in the wrong case"),
        pytest.param(Manifest({**manifest().thing, "kind": "Horse"}, "job.yaml"), "has no kind 'Horse'",
                     id="a kind that nobody knows"),
    ],
)
async def test_what_cannot_be_taken_is_said_with_its_file(client: Client, wrong: Manifest, sentence: str) -> None:
    with pytest.raises(ManifestError, match=rf"^job\.yaml: .*{sentence}"):
        await submit(client, VirtualClock(), [wrong], "default")


async def test_another_job_of_the_same_name_that_runs_is_not_mistaken_for_this_one(client: Client) -> None:
    await submit(client, VirtualClock(), [manifest()], "default")

    with pytest.raises(ManifestError, match="another TFJob of the name 'a' is running"):
        await submit(client, VirtualClock(), [manifest(successPolicy="AllWorkers")], "default")


async def test_what_comes_with_a_job_is_brought_to_what_the_file_says(client: Client) -> None:
    def config(value: str) -> Manifest:
        thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": value}}
        return Manifest(thing, "c.yaml")

    await submit(client, VirtualClock(), [config("old")], "default")
    (again,) = await submit(client, VirtualClock(), [config("new")], "default")

    assert ("updated", {"k": "new"}) == (again.how, again.thing["data"])


@pytest.mark.parametrize("second", [
    pytest.param(Manifest({**manifest().thing, "kind": "Horse"}, "job.yaml"), id="has an unknown kind"),
    pytest.param(manifest("b", runPolicy={"backoffLimit": -1}), id="is invalid"),
])
async def test_of_several_none_is_created_if_one(client: Client, second: Manifest) -> None:
    with pytest.raises(ManifestError):
        await submit(client, VirtualClock(), [manifest(), second], "default")

    assert [] == (await client.list(TFJOBS, "default")).items
