"""A list of jobs that goes on: told by the watches of jobs, pods and groups; the test plays operator and node."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tests.unit.sdk.stage import INSTALLED, JOB, TFJOBS, Stage

from trainmaster import AsyncClient
from trainmaster.api import groups
from trainmaster.api.core import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PODS
from trainmaster.api.meta import Object, uid_of
from trainmaster.api.schema import definitions
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.kube.client import Client
from trainmaster.sdk.jobs import Job
from trainmaster.sdk.session import Session
from trainmaster.sdk.watching import TOGETHER, Watching
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded

RUNNING = {"type": "Running", "status": "True", "reason": "TFJobRunning", "message": "it runs"}


class Told:
    """What was told: name, state and why of each job."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock, self._rows = clock, list[tuple[str, str, str]]()

    def __call__(self, jobs: Sequence[Job]) -> None:
        self._rows += [(job.name, job.state, job.why) for job in jobs]

    async def new(self) -> list[tuple[str, str, str]]:
        """Since the last call."""
        await self._clock.settle()
        await self._clock.advance(2 * TOGETHER)
        found, self._rows = self._rows, []
        return found


@asynccontextmanager
async def followed(session: Session, clock: VirtualClock, names: Sequence[str] = ()) -> AsyncIterator[Told]:
    told = Told(clock)
    known = await session.jobs(None)
    work = asyncio.create_task(Watching(session, "default", told, names=names).run(known))
    try:
        yield told
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def replica(kube: Client, job: Object) -> None:
    labels = {"training.kubeflow.org/job-name": job["metadata"]["name"], "training.kubeflow.org/replica-type": "worker",
              "training.kubeflow.org/replica-index": "0"}
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job["metadata"]["name"], "uid": uid_of(job),
             "controller": True}
    await kube.create(PODS, {
        "metadata": {"name": "mnist-worker-0", "namespace": "default", "labels": labels, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "tensorflow", "image": "x"}]}})


async def status(kube: Client, restarts: int, state: Object, phase: str = "Running") -> None:
    container = {"name": "tensorflow", "restartCount": restarts, "image": "x", "imageID": "", "ready": False,
                 "state": state, "lastState": {"terminated": {"exitCode": 3}} if restarts else {}}
    await kube.patch(PODS, "mnist-worker-0", "default", {"status": {
        "phase": phase, "containerStatuses": [container]}}, subresource="status")


async def runs(kube: Client) -> None:
    await kube.patch(TFJOBS, "mnist", "default", {"status": {"conditions": [RUNNING]}}, subresource="status")


def pause(span: str) -> Object:
    return {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off {span} restarting failed container=x"}}


async def test_a_crash_loop_is_told_although_the_job_says_nothing_of_it(stage: Stage) -> None:
    job = await stage.sdk.submit(JOB)
    await replica(stage.kube, job.object)
    await status(stage.kube, 0, {"running": {}})
    await runs(stage.kube)
    async with followed(stage.sdk.session, stage.clock) as told:
        assert [] == await told.new()      # what was shown before is not told again

        await status(stage.kube, 1, pause("10s"))
        assert [("mnist", "Running", "worker-0: exit code 3; is started again after 10s")] == await told.new()
        await status(stage.kube, 1, {"running": {}})
        assert [("mnist", "Running", "worker-0: started again once, last after: exit code 3")] == await told.new()
        await status(stage.kube, 2, pause("20s"))
        assert [("mnist", "Running", "worker-0: exit code 3; is started again after 20s")] == await told.new()
        await stage.clock.advance(30)
        assert [] == await told.new()

        await stage.kube.delete(PODS, "mnist-worker-0", "default")
        assert [("mnist", "Running", "")] == await told.new()


async def test_what_a_job_waits_for_is_told_when_the_scheduler_says_it(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    async with followed(stage.sdk.session, stage.clock) as told:
        assert [] == await told.new()
        await stage.kube.create(groups.VOLCANO_GROUPS, {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": "mnist", "namespace": "default", "annotations": {groups.WHY: '{"why": "2 of 3 fit"}'}},
            "spec": {"minMember": 3}})
        assert [("mnist", "Waiting", "2 of 3 fit")] == await told.new()
        await stage.kube.patch(groups.VOLCANO_GROUPS, "mnist", "default", {"metadata": {"annotations": None}})
        assert [("mnist", "Waiting", "")] == await told.new()


async def test_news_that_come_together_are_told_once(stage: Stage) -> None:
    async with followed(stage.sdk.session, stage.clock) as told:
        assert [] == await told.new()
        job = await stage.sdk.submit(JOB)
        await replica(stage.kube, job.object)
        await status(stage.kube, 0, {"running": {}})
        await runs(stage.kube)
        assert [("mnist", "Running", "")] == await told.new()


async def test_only_the_jobs_of_the_names(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    await stage.sdk.submit(JOB.replace("name: mnist", "name: other"))
    async with followed(stage.sdk.session, stage.clock, ["other", "third"]) as told:
        await stage.sdk.submit(JOB.replace("name: mnist", "name: third"))
        await stage.condition("Failed")
        assert [("third", "Waiting", "")] == await told.new()


async def test_somebody_who_may_see_one_kind_of_job_only_is_told_of_it() -> None:
    """Neither its pods nor the other kinds keep the news back."""
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        await cluster.install([each for each in definitions() if each["metadata"]["name"] in INSTALLED])
        await AsyncClient(transport=cluster.transport(), clock=clock).submit(JOB)
        admin = cluster.client()
        rule = {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get", "list", "watch"]}
        await admin.create(CLUSTER_ROLES, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                                           "metadata": {"name": "tf"}, "rules": [rule]})
        await admin.create(CLUSTER_ROLE_BINDINGS, {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "tf"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tf"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}]})
        eve = Session(cluster.client_as(Identity("eve", ())), clock, "default")
        async with followed(eve, clock) as told:
            assert [] == await told.new()
            await runs(admin)
            assert [("mnist", "Running", "")] == await told.new()
