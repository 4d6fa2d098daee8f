"""A job followed on the embedded API server; the test plays operator and node."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from trainmaster.api.core import EVENTS, PODS
from trainmaster.api.meta import Object, Resource
from trainmaster.api.schema import definitions
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.progress import curves
from trainmaster.progress.curves import Curves, Said
from trainmaster.progress.report import Report
from trainmaster.sdk.follow import CannotStart, JobGone, Outcome, follow
from trainmaster.sdk.replicas import Replica
from trainmaster.sdk.usage import Usage
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded
from trainmaster.testing.faults import Cut, Fault, Refuse

TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")


@dataclass
class Seen:
    """A view that keeps what it is shown."""

    states: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    percents: list[tuple[str, float | None]] = field(default_factory=list)
    wants_usage: bool = False
    notes: list[str] = field(default_factory=list)

    def replica(self, replica: Replica) -> None:
        self.states.append(f"{replica.name} {replica.state}")

    def gone(self, replica: Replica) -> None:
        self.states.append(f"{replica.name} gone")

    def lines(self, replica: str, texts: Sequence[str]) -> None:
        self.printed += [f"{replica} {text}" for text in texts]

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, job: str, found: Curves) -> None:
        self.percents.append((job, found.percent))

    def used(self, replica: str, amounts: Usage) -> None:
        raise AssertionError(f"nobody asked what {replica} uses: {amounts}")


@dataclass
class Network:
    """Between the follower and the server: the first watch of pods is cut after its first news, and it may be away."""

    away: bool = False
    cut: bool = False
    blind: bool = False      # pods cannot be watched, although everything else works

    def plan(self, request: Request, _number: int) -> Fault | None:
        of_pods = request.path.endswith("/pods") and ("watch", "true") in request.query
        if self.away or (self.blind and of_pods):
            return Refuse()
        if not self.cut and of_pods:
            self.cut = True
            return Cut(1)
        return None


@dataclass
class Story:
    clock: VirtualClock
    client: Client
    job: Object
    seen: Seen
    following: asyncio.Task[Outcome]
    network: "Network"

    async def pod(self, index: int) -> None:
        labels = {"training.kubeflow.org/job-name": "a", "training.kubeflow.org/replica-type": "worker",
                  "training.kubeflow.org/replica-index": str(index)}
        about = {"name": f"a-worker-{index}", "namespace": "default", "labels": labels}
        containers = [{"name": "tensorflow", "image": "x"}]
        await self.client.create(PODS, {"metadata": about, "spec": {"containers": containers}})

    async def pod_status(self, index: int, **status: object) -> None:
        await self.client.patch(PODS, f"a-worker-{index}", "default", {"status": status}, subresource="status")
        await self.clock.settle()

    async def condition(self, state: str) -> None:
        condition = {"type": state, "status": "True", "reason": state, "message": f"the job {state}"}
        await self.client.patch(TFJOBS, "a", "default", {"status": {"conditions": [condition]}}, subresource="status")


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        await cluster.install(definitions())
        client = cluster.client()
        worker = {"replicas": 2, "template": {"spec": {"containers": [{"name": "tensorflow", "image": "x"}]}}}
        job = await client.create(TFJOBS, {"apiVersion": TFJOBS.api_version, "kind": TFJOBS.kind,
                                           "metadata": {"name": "a", "namespace": "default"},
                                           "spec": {"tfReplicaSpecs": {"Worker": worker}}})
        seen, network = Seen(), Network()
        following = asyncio.create_task(follow(cluster.client("follower", network.plan), clock, TFJOBS, job, seen))
        try:
            yield Story(clock, client, job, seen, following, network)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def test_states_are_shown_when_they_change_and_the_outcome_names_who_still_runs(story: Story) -> None:
    await story.pod(0)
    await story.pod(1)
    await story.clock.settle()
    await story.pod_status(0, phase="Succeeded")
    await story.pod_status(0, phase="Succeeded", hostIP="127.0.0.1")   # nothing a person sees changed
    await story.condition("Succeeded")

    outcome = await story.clock.run(story.following)

    assert ["worker-0 Pending", "worker-1 Pending", "worker-0 Completed"] == story.seen.states
    assert Outcome(True, "the job Succeeded", (), ("a-worker-1",)) == outcome


async def test_of_several_failures_the_first_comes_first(story: Story) -> None:
    await story.pod(0)
    await story.pod(1)
    await story.pod_status(1, phase="Failed", reason="Evicted", message="low on memory")
    await story.pod_status(0, phase="Failed", reason="Evicted", message="also low")
    await story.condition("Failed")

    outcome = await story.clock.run(story.following)

    assert not outcome.succeeded
    assert [("worker-1", "low on memory"), ("worker-0", "also low")] == [(f.replica, f.why) for f in outcome.failures]


async def test_what_became_of_the_replicas_is_known_although_their_watch_lags_behind_that_of_the_job(
    story: Story,
) -> None:
    await story.clock.settle()
    story.network.blind = True
    await story.pod(0)      # with it the watch of pods is cut, and it cannot begin again
    await story.clock.settle()
    await story.pod(1)
    await story.pod_status(1, phase="Failed", reason="Evicted", message="low on memory")
    await story.pod_status(0, phase="Succeeded")
    await story.condition("Failed")

    outcome = await story.clock.run(story.following)

    assert [("worker-1", "low on memory")] == [(each.replica, each.why) for each in outcome.failures]
    assert () == outcome.left_running


async def test_that_a_replica_is_started_again_is_told_by_its_state_alone(story: Story) -> None:
    await story.pod(0)
    await story.clock.settle()
    about = {"kind": "TFJob", "name": "a", "namespace": "default", "uid": story.job["metadata"]["uid"]}
    for number, (reason, message) in enumerate((
        ("CrashLoopBackOff", "Error pod a-worker-0 container t waiting message: back-off 10s restarting failed"),
        ("FailedCreatePod", "Error creating: forbidden"),
    )):
        await story.client.create(EVENTS, {
            "metadata": {"name": f"e{number}", "namespace": "default"}, "involvedObject": about, "type": "Warning",
            "reason": reason, "message": message})
    await story.clock.settle()

    assert ["the job: Error creating: forbidden"] == story.seen.notes


async def test_a_job_that_is_deleted_ends_the_following(story: Story) -> None:
    await story.clock.settle()
    await story.client.delete(TFJOBS, "a", "default")

    with pytest.raises(JobGone):
        await story.clock.run(story.following)


async def test_a_replica_that_can_never_start_ends_the_following_with_the_reason(story: Story) -> None:
    await story.pod(0)
    waiting = {"reason": "InvalidImageName", "message": "'<image>' is not an image name."}
    status = {"name": "tensorflow", "image": "<image>", "imageID": "", "ready": False, "restartCount": 0,
              "state": {"waiting": waiting}}
    await story.pod_status(0, phase="Pending", containerStatuses=[status])

    with pytest.raises(CannotStart, match=r"worker-0 cannot start: '<image>' is not an image name\."):
        await story.clock.run(story.following)


async def test_progress_is_shown_and_kept_for_the_end(story: Story) -> None:
    found = curves.added(None, Said(Report(0.5, None, {"loss": 1.0}), story.clock.now()))
    assert found is not None
    annotations = {curves.ANNOTATION: curves.written(found)}
    await story.clock.settle()
    await story.client.patch(TFJOBS, "a", "default", {"metadata": {"annotations": annotations}})
    await story.condition("Succeeded")

    outcome = await story.clock.run(story.following)

    assert ("a", 50.0) == story.seen.percents[-1]
    assert found == outcome.curves


async def test_a_server_that_stays_away_is_one_sentence_and_its_return_another(story: Story) -> None:
    await story.clock.settle()
    story.network.away = True
    await story.pod(0)
    await story.clock.advance(20)
    away = list(story.seen.notes)
    story.network.away = False
    await story.clock.advance(60)
    await story.condition("Succeeded")
    await story.clock.run(story.following)

    assert ["the control plane does not answer; the replicas go on without it, and are shown again when it is back"
            ] == away
    assert [*away, "the control plane is back"] == story.seen.notes


async def test_an_end_that_the_server_tells_shows_that_it_is_back(story: Story) -> None:
    await story.clock.settle()
    story.network.away = True
    await story.pod(0)
    await story.clock.advance(20)
    await story.condition("Succeeded")
    story.network.away = False
    await story.clock.run(story.following)

    assert "the control plane is back" == story.seen.notes[-1]
    assert 2 == len(story.seen.notes)
