"""Jobs on the embedded server: to the end and beyond, in every mode, and through every trouble."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.cluster.controllers.workloads.scene import Scene, scene, template

from trainmaster.api.core import BATCH_JOBS, EVENTS, PODS
from trainmaster.api.meta import Object, metadata, moment, name_of, timestamp
from trainmaster.cluster.controllers.workloads.completion import FINALIZER, Tally
from trainmaster.cluster.controllers.workloads.indexes import INDEX
from trainmaster.cluster.controllers.workloads.job_pods import need
from trainmaster.kube.errors import NotFound


def job(restart: str = "Never", **spec: Any) -> Object:
    pod = template()
    pod["spec"] = {**pod["spec"], "restartPolicy": restart}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"template": pod, **spec}}


async def get(it: Scene) -> Object:
    return await it.client.get(BATCH_JOBS, "web", "default")


async def counts(it: Scene) -> Object:
    status = (await get(it)).get("status") or {}
    return {name: value for name, value in status.items()
            if name not in ("conditions", "startTime", "completionTime") and value}


async def said(it: Scene) -> list[tuple[str, str]]:
    return [(each["type"], each["reason"]) for each in ((await get(it)).get("status") or {}).get("conditions") or ()
            if each["status"] == "True"]


async def active(it: Scene) -> list[Object]:
    return [pod for pod in await it.pods() if pod["status"]["phase"] not in ("Succeeded", "Failed")]


async def finish(it: Scene, phase: str = "Succeeded", pattern: str = "*", code: int = 1) -> None:
    ended = {"name": "c", "restartCount": 0, "image": "i", "imageID": "", "ready": False,
             "state": {"terminated": {"exitCode": code if phase == "Failed" else 0,
                                      "finishedAt": timestamp(it.clock.now())}}}
    await it.report(pattern, phase, containerStatuses=[ended])
    await it.settle()


async def test_a_job_runs_to_its_end() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(completions=3, parallelism=2))
        await it.settle()
        seen = [await counts(it)]
        pod = (await it.pods())[0]
        await it.report()
        await it.settle()
        seen.append(await counts(it))
        await finish(it)
        seen.append(await counts(it))
        await finish(it)
        seen.append(await counts(it))
        found = await get(it)
        events = {(each["reason"], each["message"].partition(":")[0])
                  for each in (await it.client.list(EVENTS, "default")).items}

        assert [FINALIZER] == metadata(pod)["finalizers"]
        assert [{"active": 2}, {"active": 2, "ready": 2}, {"active": 1, "succeeded": 2}, {"succeeded": 3}] == seen
        assert [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")] == await said(it)
        assert found["status"]["completionTime"] >= found["status"]["startTime"]
        assert {("SuccessfulCreate", "Created pod"), ("Completed", "Job completed")} == events
        assert [[]] * 3 == [metadata(pod).get("finalizers") or [] for pod in await it.pods()]


async def test_without_completions_one_success_is_enough() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(parallelism=3))
        await it.settle()
        await finish(it, pattern=name_of((await it.pods())[0]))
        between = await counts(it)
        await finish(it)

        assert ({"active": 2, "succeeded": 1}, 3) == (between, len(await it.pods()))
        assert ("Complete", "CompletionsReached") in await said(it)


async def test_failures_are_retried_ever_more_slowly_up_to_the_limit() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(backoffLimit=2))
        waits = []
        for _ in range(3):
            await it.settle()
            failed = it.clock.now()
            await finish(it, "Failed")
            while not await active(it) and not await said(it):
                await it.settle(1)
            waits.append(round((it.clock.now() - failed).total_seconds()))

        assert [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")] == await said(it)
        assert {"failed": 3} == await counts(it)
        assert 9 <= waits[0] <= 12
        assert 19 <= waits[1] <= 22


async def test_a_failed_job_stops_its_other_pods_and_ends_when_they_are_gone() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(parallelism=2, completions=2, backoffLimit=0))
        await it.settle()
        await it.bind()
        await finish(it, "Failed", name_of((await it.pods())[0]))
        early = await said(it)
        await it.bury()
        await it.settle()

        assert [("FailureTarget", "BackoffLimitExceeded")] == early
        assert ("Failed", "BackoffLimitExceeded") in await said(it)
        assert {"failed": 2} == await counts(it)


async def test_a_deadline_needs_no_event() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(activeDeadlineSeconds=60))
        await it.settle(55)
        early = await said(it)
        await it.settle(10)
        await it.bury()
        await it.settle()

        assert ([], True) == (early, ("Failed", "DeadlineExceeded") in await said(it))


async def test_a_suspended_job_has_no_pods_and_starts_anew() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(parallelism=2, suspend=True))
        await it.settle()
        first = (await said(it), len(await it.pods()), "startTime" in (await get(it))["status"])
        await it.client.patch(BATCH_JOBS, "web", "default", {"spec": {"suspend": False}})
        await it.settle()
        began = moment((await get(it))["status"]["startTime"])
        await it.settle(60)
        await it.client.patch(BATCH_JOBS, "web", "default", {"spec": {"suspend": True}})
        await it.run(1)
        paused = (await said(it), len(await it.pods()), await counts(it))
        await it.client.patch(BATCH_JOBS, "web", "default", {"spec": {"suspend": False}})
        await it.settle()

        assert ([("Suspended", "JobSuspended")], 0, False) == first
        assert ([("Suspended", "JobSuspended")], 0, {}) == paused     # and nothing has failed
        assert moment((await get(it))["status"]["startTime"]) - began > timedelta(seconds=60)
        assert 2 == len(await it.pods())


async def test_a_job_goes_when_its_time_is_over() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(ttlSecondsAfterFinished=60))
        await it.settle()
        await finish(it)
        await it.settle(30)
        await get(it)
        await it.settle(40)

        assert "deletionTimestamp" in metadata(await get(it))      # the garbage collector has the rest


async def test_each_index_is_done_once() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(completionMode="Indexed", completions=4, parallelism=2))
        await it.settle()
        pod = (await it.pods())[0]
        await finish(it, pattern="web-0-*")
        seen = [await counts(it)]
        await finish(it, "Failed", "web-1-*")
        await finish(it, pattern="web-2-*")
        await finish(it, pattern="web-3-*")
        await it.settle(30)
        seen.append(await counts(it))
        await finish(it, pattern="web-1-*")

        assert (f"metadata.labels['{INDEX}']", "web-0") == (
            pod["spec"]["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], pod["spec"]["hostname"])
        assert [{"active": 2, "succeeded": 1, "completedIndexes": "0"},
                {"active": 1, "succeeded": 3, "failed": 1, "completedIndexes": "0,2,3"}] == seen
        assert {"succeeded": 4, "failed": 1, "completedIndexes": "0-3"} == await counts(it)


async def test_an_index_that_failed_too_often_leaves_the_others_alone() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(
            completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1))
        await it.settle()
        for _ in range(2):
            await finish(it, "Failed", "web-1-*")
            await it.settle(30)
        seen = await counts(it)
        await finish(it)

        assert {"active": 2, "failed": 2, "failedIndexes": "1"} == seen
        assert [("FailureTarget", "FailedIndexes"), ("Failed", "FailedIndexes")] == await said(it)
        assert {"succeeded": 2, "failed": 2, "completedIndexes": "0,2", "failedIndexes": "1"} == await counts(it)


@pytest.mark.parametrize(("rule", "expected", "failed"), [
    pytest.param({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
                 [("FailureTarget", "PodFailurePolicy"), ("Failed", "PodFailurePolicy")], 1, id="this code is final"),
    pytest.param({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}, [], 0,
                 id="this code does not count"),
    pytest.param({"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [42]}}, [], 1,
                 id="another code is final"),
])
async def test_what_an_exit_code_means(rule: Object, expected: list[tuple[str, str]], failed: int) -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(podFailurePolicy={"rules": [rule]}))
        await it.settle()
        name = name_of((await it.pods())[0])
        await finish(it, "Failed", code=42)
        messages = [each["message"] for each in (await get(it))["status"].get("conditions") or ()]

        assert (expected, failed) == (await said(it), (await counts(it)).get("failed", 0))
        if expected:
            told = f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
            assert [told] * 2 == messages


async def test_a_success_policy_ends_a_job_early() -> None:
    async with scene() as it:
        it.begin()
        policy = {"rules": [{"succeededIndexes": "0"}]}
        await it.client.create(
            BATCH_JOBS, job(completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy))
        await it.settle()
        await it.bind()
        await finish(it, pattern="web-0-*")
        early = await said(it)
        await it.bury()
        await it.settle()

        assert [("SuccessCriteriaMet", "SuccessPolicy")] == early
        assert [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")] == await said(it)


@pytest.mark.parametrize(("policy", "expected"), [
    pytest.param("TerminatingOrFailed", (2, {"active": 1, "failed": 1, "terminating": 1}), id="at once"),
    pytest.param("Failed", (1, {"terminating": 1}), id="when it has ended"),
])
async def test_a_deleted_pod_is_replaced(policy: str, expected: tuple[int, Object]) -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(podReplacementPolicy=policy))
        await it.settle()
        await it.bind()
        pod = (await it.pods())[0]
        await it.client.delete(PODS, name_of(pod), "default")
        await it.settle(15)

        assert expected == (len(await it.pods()), await counts(it))


async def test_restarts_in_place_count_too() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job("OnFailure", backoffLimit=2))
        await it.settle()
        again = {"name": "c", "restartCount": 2, "image": "i", "imageID": "", "ready": True, "state": {}}
        await it.report(containerStatuses=[again])
        await it.settle()

        assert ("FailureTarget", "BackoffLimitExceeded") in await said(it)


async def test_pods_of_a_job_that_went_while_nobody_looked_are_let_go() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job())
        await it.settle()
        await it.end()
        await it.client.delete(BATCH_JOBS, "web", "default", propagation="Background")
        with pytest.raises(NotFound):
            await get(it)
        name = name_of((await it.pods())[0])
        await it.client.delete(PODS, name, "default", grace=0)
        it.begin()
        await it.settle()

        assert [] == await it.pods()


async def test_a_job_of_somebody_else_is_left_alone() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(BATCH_JOBS, job(managedBy="kueue.x-k8s.io/multikueue"))
        await it.settle()

        assert ([], {}) == (await it.pods(), await counts(it))


@pytest.mark.parametrize("more", [pytest.param({}, id="all of one back-off"),
                                  pytest.param({"backoffLimitPerIndex": 1}, id="each index for itself")])
def test_a_job_of_billions_is_begun_with_the_first_indexes(more: dict[str, Any]) -> None:
    billions = job(completions=2**31 - 1, parallelism=3, completionMode="Indexed", **more)
    metadata(billions)["uid"] = "u"

    found = need(Tally(billions, [], datetime(2026, 1, 1, tzinfo=UTC)))

    assert ["0", "1", "2"] == [metadata(pod)["annotations"][INDEX] for pod in found.create]
