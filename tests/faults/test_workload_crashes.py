"""Die after any write, start again, arrive at the same end: the controllers of workloads.

The writes are those of a clean run. Events are left out: they are courtesy, and dying after one is dying after the
write before it.
"""

from collections.abc import Awaitable, Callable

import pytest
from tests.unit.cluster.controllers.workloads import test_jobs as job_tests
from tests.unit.cluster.controllers.workloads import test_stateful_sets as stateful_tests
from tests.unit.cluster.controllers.workloads.scene import Scene, scene, workload
from tests.unit.cluster.controllers.workloads.test_deployments import patch, revisions, set_image

from trainmaster.api.core import BATCH_JOBS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from trainmaster.api.meta import Object

pytestmark = pytest.mark.faults

Story = Callable[[Scene], Awaitable[Object]]


async def picture(it: Scene) -> Object:
    status = (await it.client.get(DEPLOYMENTS, "web", "default"))["status"]
    said = sorted((each["type"], each["status"], each["reason"], each["message"]) for each in status.pop("conditions"))
    pods = sorted(pod["spec"]["containers"][0]["image"] for pod in await it.pods())
    return {"sets": await revisions(it), "pods": pods, "status": status, "said": said}


async def replica_set(it: Scene) -> Object:
    await it.client.create(REPLICA_SETS, workload("ReplicaSet", replicas=3))
    await it.run(2)
    await it.client.patch(REPLICA_SETS, "web", "default", {"spec": {"replicas": 1}})
    await it.run(3)
    return {"pods": len(await it.pods()), "status": (await it.client.get(REPLICA_SETS, "web", "default"))["status"]}


async def rollout(it: Scene) -> Object:
    await it.client.create(DEPLOYMENTS, workload("Deployment", replicas=2))
    await it.run(2)
    await set_image(it, "i:2")
    await it.run(5)
    return await picture(it)


async def recreation(it: Scene) -> Object:
    spec: Object = {"replicas": 2, "strategy": {"type": "Recreate"}, "revisionHistoryLimit": 0}
    await it.client.create(DEPLOYMENTS, workload("Deployment", **spec))
    await it.run(2)
    await set_image(it, "i:2")
    await it.run(4)
    return await picture(it)


async def resize(it: Scene) -> Object:
    await it.client.create(DEPLOYMENTS, workload("Deployment", replicas=3))
    await it.run(2)
    await patch(it, replicas=1)
    await it.run(3)
    return await picture(it)


async def job_end(it: Scene) -> Object:
    status = (await it.client.get(BATCH_JOBS, "web", "default"))["status"]
    said = [(each["type"], each["status"], each["reason"]) for each in status.get("conditions") or ()]
    pods = sorted((pod["status"]["phase"], tuple(pod["metadata"].get("finalizers") or ())) for pod in await it.pods())
    return {"counts": await job_tests.counts(it), "said": said, "pods": pods}


async def job_with_failures(it: Scene) -> Object:
    await it.client.create(BATCH_JOBS, job_tests.job(completions=3, parallelism=2, backoffLimit=3))
    await it.settle(5)
    await job_tests.finish(it, "Failed")
    await it.settle(40)
    await job_tests.finish(it)
    await it.settle(5)
    await job_tests.finish(it)
    await it.settle(5)
    return await job_end(it)


async def job_that_fails(it: Scene) -> Object:
    await it.client.create(BATCH_JOBS, job_tests.job(completions=2, parallelism=2, backoffLimit=0))
    await it.settle(5)
    await it.bind()
    first = (await it.pods())[0]["metadata"]["name"]
    await job_tests.finish(it, "Failed", first)
    await it.settle(5)
    await it.bury()
    await it.settle(5)
    return await job_end(it)


async def indexed_job(it: Scene) -> Object:
    await it.client.create(BATCH_JOBS, job_tests.job(
        completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1))
    await it.settle(5)
    await job_tests.finish(it, "Failed", "web-1-*")
    await it.settle(40)
    await job_tests.finish(it)
    await it.settle(5)
    return await job_end(it)


async def suspended_job(it: Scene) -> Object:
    await it.client.create(BATCH_JOBS, job_tests.job(parallelism=2))
    await it.settle(5)
    await it.client.patch(BATCH_JOBS, "web", "default", {"spec": {"suspend": True}})
    await it.run(2)
    await it.client.patch(BATCH_JOBS, "web", "default", {"spec": {"suspend": False}})
    await it.settle(5)
    return await job_end(it)


async def stateful_set(it: Scene) -> Object:
    await it.client.create(STATEFUL_SETS, stateful_tests.stateful(replicas=2))
    await it.run(3)
    await stateful_tests.set_image(it, "i:2")
    await it.run(5)
    await stateful_tests.patch(it, replicas=1)
    await it.run(2)
    status = (await it.client.get(STATEFUL_SETS, "web", "default"))["status"]
    return {"pods": await stateful_tests.images(it), "status": status}


@pytest.mark.parametrize("story", [
    pytest.param(stateful_set, marks=pytest.mark.full, id="a stateful set is updated and shrinks"),
    pytest.param(job_with_failures, id="a job succeeds after failures"),
    pytest.param(job_that_fails, marks=pytest.mark.full, id="a job fails while another pod runs"),
    pytest.param(indexed_job, id="an index is tried again"),
    pytest.param(suspended_job, marks=pytest.mark.full, id="a job is suspended and resumed"),
    pytest.param(replica_set, marks=pytest.mark.full, id="a replica set grows and shrinks"),
    pytest.param(rollout, id="a deployment is rolled out"),
    pytest.param(recreation, marks=pytest.mark.full, id="a deployment is recreated"),
    pytest.param(resize, marks=pytest.mark.full, id="a deployment is scaled"),
])
async def test_dying_after_any_write_ends_in_the_same_state(story: Story) -> None:
    async def told(dies_after: int | None) -> tuple[list[str], Object]:
        async with scene() as it:
            it.begin(dies_after)
            end = await story(it)
            return [str(write) for write in it.writes], end

    writes, clean = await told(None)
    for number, write in enumerate(writes, start=1):
        if "/events" not in write:
            assert clean == (await told(number))[1], f"died after write {number}: {write}"
