"""One look at one job: what wakes it, what it writes, what it never does."""

from typing import Any

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import NAMESPACE, Stage, resource_of, stage

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, name_of, timestamp
from trainmaster.kube.transport import Request
from trainmaster.testing.faults import Delay, Fault


async def told(it: Stage, reason: str) -> list[tuple[str, int]]:
    return [(event["message"], event["count"]) for event in await it.events() if event["reason"] == reason]


async def begun(it: Stage, **changes: Any) -> None:
    it.begin()
    await it.apply(tfjob(**changes))
    await it.settle()
    await it.run()
    await it.settle()


async def last(it: Stage) -> str:
    return str((await it.status())["conditions"][-1]["type"])


async def test_a_quiet_job_still_meets_its_deadline() -> None:
    """No event arrives after the start; only the clock moves."""
    async with stage() as it:
        await begun(it, policy={"activeDeadlineSeconds": 3600})
        await it.clock.advance(3500)
        assert "Running" == await last(it)

        await it.clock.advance(100)
        assert "Failed" == await last(it)


async def test_the_end_of_the_last_pod_is_the_end_of_the_job_at_once() -> None:
    """News of one pod among several waits a moment for the others'; after the last there is nothing to wait for."""
    async with stage() as it:
        await begun(it, roles={"Worker": (2, "Never")}, successPolicy="AllWorkers")
        seen = []
        for pod in ("*-0", "*-1"):
            await it.succeed(pod)
            await it.clock.advance(0.001)
            worker = (await it.status())["replicaStatuses"]["Worker"]
            seen.append((await last(it), worker.get("succeeded", 0)))

        assert [("Running", 0), ("Succeeded", 2)] == seen


async def test_a_finished_job_goes_in_time() -> None:
    async with stage(collects=True) as it:
        await begun(it, policy={"ttlSecondsAfterFinished": 600})
        await it.succeed()
        await it.clock.advance(590)
        assert await it.job() is not None

        await it.clock.advance(20)
        assert await it.job() is None
        assert [("Deleted job: mnist", 1)] == await told(it, "SuccessfulDeleteJob")


@pytest.mark.parametrize(("change", "says"), [
    pytest.param({"successPolicy": "Most"}, 'spec.successPolicy: Unsupported value: "Most"', id="a word nobody knows"),
    pytest.param({"roles": {"Worker": (1, "Never"), "Helper": (1, "Never")}}, "spec.tfReplicaSpecs[Helper]",
                 id="a role nobody knows"),
])
async def test_a_job_that_cannot_run_says_so_and_makes_nothing(change: Object, says: str) -> None:
    async with stage() as it:
        it.begin()
        await it.apply(tfjob(**change))
        await it.settle()

        condition = (await it.status())["conditions"][-1]
        assert ("Failed", "TFJobFailedValidation") == (condition["type"], condition["reason"])
        assert says in condition["message"]
        assert [(condition["message"], 1)] == await told(it, "TFJobFailedValidation")
        assert [] == await it.pods()


async def test_an_edit_that_makes_no_sense_does_not_cost_the_training() -> None:
    async with stage() as it:
        await begun(it)
        await it.patch(successPolicy="Most")
        await it.settle()
        assert ("Running", 2) == (await last(it), len(await it.pods()))
        assert 1 == len(await told(it, "TFJobFailedValidation"))

        await it.patch(successPolicy="")
        await it.settle()
        await it.succeed()
        await it.settle()
        assert "Succeeded" == await last(it)


async def test_what_is_wrong_with_a_pod_is_told_once_however_often_we_look() -> None:
    async with stage() as it:
        it.begin()
        await it.apply(tfjob())
        await it.settle()
        state = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
        status = {"phase": "Pending", "containerStatuses": [{
            "name": "tensorflow", "image": "x", "imageID": "", "ready": False, "restartCount": 0, "state": state,
        }]}
        for moment in range(3):
            status["startTime"] = timestamp(it.clock.now())
            await it.client.patch(PODS, "mnist-worker-0", NAMESPACE, {"status": status}, subresource="status")
            await it.settle(moment + 1)

        message = "Error pod mnist-worker-0 container tensorflow waiting message: Back-off pulling image"
        assert [(message, 1)] == await told(it, "ImagePullBackOff")


async def test_the_spec_is_never_written() -> None:
    """Not even defaults: it is the user's."""
    async with stage() as it:
        it.begin()
        made = await it.apply(tfjob(roles={"worker": (2, "Never")}))
        await it.settle()
        await it.run()
        await it.settle()
        job = await it.job()

        assert job is not None
        assert made["spec"] == job["spec"]
        assert 1 == job["metadata"]["generation"]


async def test_b24_nothing_is_made_twice_while_the_news_of_it_are_late() -> None:
    """Upstream counts what it expects, and goes on as soon as one of its counts is met."""
    asked: list[str] = []

    def late(request: Request, _number: int) -> Fault | None:
        about_children = request.path.endswith(("/pods", "/services"))
        if request.method == "POST" and about_children:
            asked.append(request.path.rpartition("/")[2])
        return Delay(60.0) if about_children and ("watch", "true") in request.query else None

    async with stage() as it:
        it.begin(plan=late)
        await it.apply(tfjob(policy={"activeDeadlineSeconds": 600}))
        for seconds in range(20):
            await it.patch(runPolicy={"activeDeadlineSeconds": 600 + seconds})
            await it.clock.advance(1)
        assert ["services", "services", "pods", "pods"] == asked

        await it.clock.advance(120)
        assert ["services", "services", "pods", "pods"] == asked


async def test_jobs_that_nobody_touched_cost_no_write_when_the_operator_starts() -> None:
    async with stage() as it:
        it.begin()
        for number in range(20):
            thing = tfjob()
            thing["metadata"]["name"] = f"job-{number}"
            await it.apply(thing)
        await it.settle()
        await it.run()
        await it.settle()
        await it.end()

        it.begin()
        await it.clock.advance(minutes=5)

        assert [] == it.lives[-1].writes


async def test_a_burst_of_news_is_one_status() -> None:
    async with stage() as it:
        it.begin()
        await it.apply(tfjob(roles={"Worker": (10, "Never")}))
        await it.settle()
        before = len(it.lives[0].writes)
        await it.run()
        await it.settle()

        assert 1 == len(it.lives[0].writes) - before
        assert {"Worker": {"active": 10}} == (await it.status())["replicaStatuses"]


async def test_a_broken_job_does_not_delay_the_others() -> None:
    async with stage() as it:
        await it.client.create(PODS, {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "broken-worker-0", "namespace": NAMESPACE},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        })
        it.begin()
        broken = tfjob()
        broken["metadata"]["name"] = "broken"
        await it.apply(broken)
        await it.clock.advance(minutes=10)
        await it.apply(tfjob())
        await it.clock.advance(0.5)

        assert ["mnist-worker-0", "mnist-worker-1"] == [
            name_of(pod) for pod in await it.pods() if name_of(pod).startswith("mnist")
        ]


async def test_a_status_that_somebody_else_wrote_in_between_is_not_lost() -> None:
    async with stage() as it:
        await begun(it)
        job = await it.job()
        assert job is not None
        resource = resource_of(job)
        await it.client.patch(resource, "mnist", NAMESPACE, {"metadata": {"annotations": {"a": "b"}}})
        await it.succeed()
        await it.settle()

        job = await it.job()
        assert job is not None
        assert "b" == job["metadata"]["annotations"]["a"]
        assert "Succeeded" == await last(it)


async def test_a_pod_that_the_server_will_never_take_ends_the_job_with_the_servers_words() -> None:
    thing = tfjob(roles={"Worker": (2, "Never")})
    thing["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Sometimes"
    async with stage() as it:
        it.begin()
        await it.apply(thing)
        await it.settle()
        status = await it.status()

        assert ("Failed", "True") == tuple(status["conditions"][-1][key] for key in ("type", "status"))
        assert "cannot be made: " in status["conditions"][-1]["message"]
        assert "imagePullPolicy" in status["conditions"][-1]["message"]
        before = len(it.lives[-1].writes)
        await it.clock.advance(minutes=30)
        assert before == len(it.lives[-1].writes)


async def test_a_server_that_is_slow_to_make_pods_is_not_told_at_once_that_they_are_made() -> None:
    """They soon run, which is told with it."""
    def slow(request: Request, _number: int) -> Fault | None:
        return Delay(0.1) if request.method == "POST" else None

    async with stage() as it:
        it.begin(plan=slow)
        await it.apply(tfjob())
        await it.clock.advance(0.25)
        assert 2 == len(await it.pods())
        await it.run()
        await it.clock.advance(1)

        status = [write for write in it.writes if write.path.endswith("/status")]
        assert 1 == len(status)
        assert "Running" == await last(it)
