"""Reports of jobs: who may make them, and what becomes of them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import orjson
import pytest

from trainmaster.api.core import PODS
from trainmaster.api.kubeflow_v1 import TF_JOB
from trainmaster.api.membership import JOB_ROLE
from trainmaster.api.meta import Object
from trainmaster.api.schema import definitions
from trainmaster.cluster.apiserver.auth import Identity, account
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.local import reports
from trainmaster.local.reports import Reports
from trainmaster.progress import curves
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded

ADMIN = Identity("admin", ("system:masters",))


def body(percent: float = 50, loss: float = 1.0) -> bytes:
    return orjson.dumps({"trainerStatus": {"progressPercentage": percent, "lastUpdatedTime": "2026-01-01T00:00:00Z",
                                           "metrics": [{"name": "loss", "value": str(loss)}]}})


@dataclass
class Story:
    clock: VirtualClock
    client: Client
    reports: Reports
    pods: dict[str, Object]

    async def say(self, pod: str, who: Identity, content: bytes = b"", source: str = "") -> int:
        headers = {reports.SOURCE: source} if source else {}
        request = Request("POST", reports.path("default", pod), (), headers, content or body())
        return (await self.reports.answer(request, who)).status

    async def curves(self) -> curves.Curves | None:
        await self.clock.settle()
        return curves.of(await self.client.get(TF_JOB.resource, "a", "default"))

    def token(self, pod: str, uid: str = "") -> Identity:
        extra = (("authentication.kubernetes.io/pod-name", (pod,)),
                 ("authentication.kubernetes.io/pod-uid", (uid or self.pods[pod]["metadata"]["uid"],)))
        return account("default", "default", extra=extra)


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        await cluster.install(definitions())
        client = cluster.client()
        worker = {"replicas": 2, "template": {"spec": {"containers": [{"name": "tensorflow", "image": "x"}]}}}
        job = await client.create(TF_JOB.resource, {
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a", "namespace": "default"},
            "spec": {"tfReplicaSpecs": {"Worker": worker}}})
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "a", "uid": job["metadata"]["uid"],
                 "controller": True}
        pods = {}
        for index, role in enumerate(("master", "")):
            labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index),
                      **({JOB_ROLE: role} if role else {})}
            pod = {"metadata": {"name": f"a-worker-{index}", "namespace": "default", "labels": labels,
                                "ownerReferences": [owner]},
                   "spec": {"nodeName": "here", "containers": [{"name": "tensorflow", "image": "x"}]}}
            pods[f"a-worker-{index}"] = await client.create(PODS, pod)
        taken = Reports(client, clock)
        writing = asyncio.create_task(taken.run())
        try:
            yield Story(clock, client, taken, pods)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)


async def test_a_pod_speaks_for_its_job(story: Story) -> None:
    assert 200 == await story.say("a-worker-0", story.token("a-worker-0"))

    found = await story.curves()
    assert found is not None
    assert (50.0, "worker-0", "report", ((0.0, 1.0),)) == (found.percent, found.replica, found.source,
                                                           found.metrics["loss"])


@pytest.mark.parametrize(("who", "code"), [
    pytest.param(account("default", "default", extra=(("authentication.kubernetes.io/pod-name", ("a-worker-1",)),)),
                 403, id="another pod of the same job may not"),
    pytest.param(account("other", "default", extra=(("authentication.kubernetes.io/pod-name", ("a-worker-0",)),)),
                 403, id="a pod of that name elsewhere may not"),
    pytest.param(Identity("somebody"), 403, id="somebody may not"),
    pytest.param(ADMIN, 200, id="the administrator may"),
    pytest.param(Identity("system:node:here", ("system:nodes",)), 200, id="its node may"),
])
async def test_who_may_speak_for_a_pod(story: Story, who: Identity, code: int) -> None:
    assert code == await story.say("a-worker-0", who)


@pytest.mark.parametrize("speaker", [
    pytest.param(Identity("system:node:there", ("system:nodes",)), id="a node that does not run it"),
    pytest.param(account("default", "default", extra=(
        ("authentication.kubernetes.io/pod-name", ("a-worker-0",)),
        ("authentication.kubernetes.io/pod-uid", ("of-an-earlier-pod",)))), id="an earlier pod of that name"),
])
async def test_nothing_is_written_for(story: Story, speaker: Identity) -> None:
    await story.say("a-worker-0", speaker)

    assert await story.curves() is None


async def test_many_reports_are_one_write_each_two_seconds(story: Story) -> None:
    who = story.token("a-worker-0")
    await story.say("a-worker-0", who, body(1))
    await story.curves()
    first = (await story.client.get(TF_JOB.resource, "a", "default"))["metadata"]["resourceVersion"]
    for percent in range(2, 60):
        await story.say("a-worker-0", who, body(percent))
    await story.clock.settle()

    assert first == (await story.client.get(TF_JOB.resource, "a", "default"))["metadata"]["resourceVersion"]
    await story.clock.run(story.clock.sleep(reports.WRITE_EVERY))
    found = await story.curves()
    assert found is not None
    assert 59.0 == found.percent


async def test_a_node_says_how_it_knows(story: Story) -> None:
    await story.say("a-worker-0", Identity("system:node:here", ("system:nodes",)), source="log")

    found = await story.curves()
    assert found is not None
    assert "log" == found.source


@pytest.mark.parametrize(("path", "method", "content", "code"), [
    pytest.param("/progress/namespaces/default/pods", "POST", body(), 404, id="a place that is none"),
    pytest.param(reports.path("default", "a"), "GET", b"", 405, id="reading"),
    pytest.param(reports.path("default", "a"), "POST", b"{}", 400, id="no report"),
    pytest.param(reports.path("default", "a"), "POST", b" " * (reports.LARGEST + 1), 413, id="too much"),
])
async def test_what_is_refused(story: Story, path: str, method: str, content: bytes, code: int) -> None:
    assert code == (await story.reports.answer(Request(method, path, (), {}, content), ADMIN)).status


def test_a_container_with_a_token_is_told_where_to_report(story: Story) -> None:
    pod = story.pods["a-worker-0"]
    mounted = {"volumeMounts": [{"name": "t", "mountPath": reports.ACCOUNT}]}

    assert {"KUBEFLOW_TRAINER_SERVER_URL": "https://kubernetes.default.svc/progress/namespaces/default/pods/a-worker-0",
            "KUBEFLOW_TRAINER_SERVER_CA_CERT": f"{reports.ACCOUNT}/ca.crt",
            "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{reports.ACCOUNT}/token"} == reports.announced(pod, mounted)
    assert {} == reports.announced(pod, {})
    assert {} == reports.announced({"metadata": {"name": "x"}}, mounted)
