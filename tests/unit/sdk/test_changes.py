"""Changing a job that is there: scale, suspend, resume, restart, delete."""

import asyncio
from pathlib import Path

import pytest
from tests.unit.sdk.stage import JOB, TFJOBS, Stage

from trainmaster import AsyncClient, Job
from trainmaster.api.core import CONFIG_MAPS, PODS
from trainmaster.api.meta import uid_of
from trainmaster.kube.errors import Forbidden
from trainmaster.sdk.errors import NoReplica, NotPossible
from trainmaster.testing.faults import Answer, Faults, on


async def test_scale(stage: Stage) -> None:
    await stage.sdk.submit(JOB)

    def replicas(job: Job) -> dict[str, int]:
        return {role.name: role.replicas for role in job.roles()}

    assert {"PS": 1, "Worker": 4} == replicas(await stage.sdk.scale("mnist", 4))
    assert {"PS": 2, "Worker": 3} == replicas(await stage.sdk.scale("mnist", {"ps": 2, "worker": 3}))
    with pytest.raises(NoReplica, match=r"has no role 'chief'\. It has ps, worker\."):
        await stage.sdk.scale("mnist", {"chief": 1})
    with pytest.raises(NotPossible, match="below 0"):
        await stage.sdk.scale("mnist", -1)


async def test_suspend_and_resume(stage: Stage) -> None:
    await stage.sdk.submit(JOB)

    assert (await stage.sdk.suspend("mnist")).object["spec"]["runPolicy"]["suspend"] is True
    assert (await stage.sdk.resume("mnist")).object["spec"]["runPolicy"]["suspend"] is False
    await stage.condition("Succeeded")
    with pytest.raises(NotPossible, match="trainmaster restart mnist"):
        await stage.sdk.resume("mnist")


async def test_restart_of_a_job_that_has_ended_makes_it_anew(stage: Stage) -> None:
    first = await stage.sdk.submit(JOB)
    await stage.condition("Failed")
    again = await stage.clock.run(stage.sdk.restart("mnist"))

    assert (False, "Waiting", first.object["spec"]) == (first.uid == again.uid, again.state, again.object["spec"])


async def test_a_job_that_would_be_refused_is_not_removed_to_be_made_anew(stage: Stage) -> None:
    first = await stage.sdk.submit(JOB)
    await stage.condition("Failed")
    wire = Faults(stage.node, stage.clock, on("POST", TFJOBS.path("default"), Answer(403)))
    refusing = AsyncClient(transport=wire, clock=stage.clock)

    with pytest.raises(Forbidden):
        await refusing.restart("mnist")

    assert first.uid == (await stage.sdk.get("mnist")).uid


async def test_restart_of_a_script_that_has_ended_keeps_its_code(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "mnist.py").write_text("import tensorflow\n")
    await stage.sdk.submit(tmp_path / "mnist.py")
    await stage.condition("Failed")
    again = await stage.clock.run(stage.sdk.restart("mnist"))
    await stage.clock.settle()

    owners = [[owner["uid"] for owner in one["metadata"]["ownerReferences"]]
              for one in (await stage.kube.list(CONFIG_MAPS, "default", labels="trainmaster.dev/job=mnist")).items]
    assert [[again.uid]] == owners


async def test_restart_of_a_job_that_runs_waits_for_its_pods_to_go(stage: Stage) -> None:
    first = await stage.sdk.submit(JOB)
    await stage.pod("worker", 0)
    restarting = asyncio.create_task(stage.sdk.restart("mnist"))
    await stage.clock.settle()
    assert (await stage.sdk.get("mnist")).object["spec"]["runPolicy"]["suspend"] is True
    await stage.kube.delete(PODS, "mnist-worker-0", "default", grace=0)
    after = await stage.clock.run(restarting)

    assert (first.uid, False) == (after.uid, after.object["spec"]["runPolicy"]["suspend"])


async def test_restart_of_one_replica_deletes_its_pod(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    await stage.pod("worker", 0)
    kept = await stage.pod("worker", 1)
    await stage.sdk.restart("mnist", replica="worker-0")

    left = [uid_of(pod) for pod in (await stage.kube.list(PODS, "default")).items
            if not pod["metadata"].get("deletionTimestamp")]
    assert [uid_of(kept)] == left


async def test_restart_of_a_replica_whose_pod_is_about_to_be_made(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    for name in ("worker-1", "mnist-ps-0"):
        assert "mnist" == (await stage.sdk.restart("mnist", replica=name)).name
    with pytest.raises(NoReplica, match="has no replica 'worker-2'"):
        await stage.sdk.restart("mnist", replica="worker-2")
    await stage.sdk.suspend("mnist")
    with pytest.raises(NoReplica, match="has no replica 'worker-1'"):
        await stage.sdk.restart("mnist", replica="worker-1")


async def test_delete_waits_until_it_is_gone(stage: Stage) -> None:
    await stage.sdk.submit(JOB)
    await stage.clock.run(stage.sdk.delete("mnist"))

    assert [] == (await stage.kube.list(TFJOBS, "default")).items
