"""Actions to API calls: repeatable, bounded, told, and never on what is not ours."""

import asyncio
from copy import deepcopy
from dataclasses import dataclass

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import NAMESPACE, Stage, stage

from trainmaster.api.core import PODS, SERVICES
from trainmaster.api.meta import name_of, uid_of
from trainmaster.kube.transport import Request, Response, Stream, Transport
from trainmaster.operator.config import Settings
from trainmaster.testing.builders import pod
from trainmaster.testing.faults import Answer, Fault, Lose, on


async def told(it: Stage, reason: str) -> list[str]:
    return [event["message"] for event in await it.events() if event["reason"] == reason]


async def test_a_pod_of_somebody_else_is_not_touched_and_the_job_says_whose_name_it_is() -> None:
    async with stage() as it:
        stranger = await it.client.create(PODS, pod("mnist-worker-0", NAMESPACE))
        it.begin()
        await it.apply(tfjob())
        await it.settle()

        assert uid_of(stranger) == uid_of(await it.client.get(PODS, "mnist-worker-0", NAMESPACE))
        said, = await told(it, "FailedCreatePod")
        assert said.startswith('Error creating: pods "mnist-worker-0" already exists and belongs to nobody we know')
        assert "mnist-worker-1" in [name_of(found) for found in await it.pods()], "the others are made all the same"


async def test_when_the_stranger_is_gone_the_job_goes_on() -> None:
    async with stage() as it:
        await it.client.create(PODS, pod("mnist-worker-0", NAMESPACE))
        it.begin()
        await it.apply(tfjob())
        await it.settle()
        await it.client.delete(PODS, "mnist-worker-0", NAMESPACE, grace=0)
        await it.clock.advance(minutes=2)

        assert ["Created pod: mnist-worker-0"] == [
            message for message in await told(it, "SuccessfulCreatePod") if message.endswith("-0")
        ]


@pytest.mark.parametrize("fault", [
    pytest.param(Lose(), id="the answer was lost"),
    pytest.param(Answer(500, "InternalError"), id="the server stumbled"),
    pytest.param(Answer(429, "TooManyRequests", retry_after=1), id="the server is busy"),
    pytest.param(Answer(409, "Conflict"), id="somebody was faster"),
])
@pytest.mark.parametrize(("method", "path"), [
    pytest.param("POST", "/pods", id="making a pod"),
    pytest.param("POST", "/services", id="making a service"),
    pytest.param("PUT", "/status", id="writing the status"),
])
async def test_a_request_that_goes_wrong_is_made_good(method: str, path: str, fault: Fault) -> None:
    async with stage() as it:
        it.begin(plan=on(method, path, fault))
        await it.apply(tfjob())
        await it.clock.advance(5)
        await it.settle()

        assert ["mnist-worker-0", "mnist-worker-1"] == [name_of(found) for found in await it.pods()]
        assert ["mnist-worker-0", "mnist-worker-1"] == [name_of(found) for found in await it.services()]
        assert "Created" == (await it.status())["conditions"][-1]["type"]


async def test_b53_a_pod_that_the_server_refuses_is_told_and_the_rest_is_done() -> None:
    def first(request: Request, _number: int) -> Fault | None:
        asks = request.method == "POST" and request.path.endswith("/pods")
        return Answer(403, "Forbidden") if asks and b'"name":"mnist-worker-0"' in request.body else None

    async with stage() as it:
        it.begin(plan=first)
        await it.apply(tfjob())
        await it.clock.advance(1)

        assert (["mnist-worker-1"], 2) == ([name_of(pod) for pod in await it.pods()], len(await it.services()))
        assert ["Error creating: Forbidden (injected)"] == await told(it, "FailedCreatePod")
        assert "Created" == (await it.status())["conditions"][-1]["type"]


async def test_a_failed_deletion_of_a_service_holds_its_pod_back() -> None:
    """Or nobody would find the service again."""
    async with stage() as it:
        it.begin(plan=on("DELETE", "/services", *[Answer(403, "Forbidden")] * 100))
        await it.apply(tfjob(policy={"cleanPodPolicy": "All"}))
        await it.settle()
        await it.run()
        await it.settle()
        await it.succeed()
        await it.clock.advance(1)

        assert 2 == len(await it.pods())


@dataclass
class Counted:
    """A wire that counts how many creations are on it."""

    inner: Transport
    flying: int = 0
    most: int = 0

    async def send(self, request: Request) -> Response:
        makes = request.method == "POST" and not request.path.endswith("/events")
        self.flying += makes
        self.most = max(self.most, self.flying)
        await asyncio.sleep(0)
        answer = await self.inner.send(request)
        self.flying -= makes
        return answer

    async def open(self, request: Request) -> Stream:
        return await self.inner.open(request)

    async def close(self) -> None:
        await self.inner.close()


async def test_what_is_made_for_one_job_at_the_same_time_is_bounded() -> None:
    async with stage(Settings(at_once=3)) as it:
        it.begin()
        wire = it.lives[0].inner = Counted(it.lives[0].inner)
        await it.apply(tfjob(roles={"Worker": (20, "Never")}))
        await it.settle()

        assert 20 == len(await it.pods())
        assert 3 == wire.most


async def test_the_job_that_is_made_again_under_the_same_name_has_its_own_pods() -> None:
    async with stage(collects=True) as it:
        it.begin()
        await it.apply(tfjob())
        await it.settle()
        before = {uid_of(found) for found in await it.pods()}
        await it.delete()
        await it.settle()
        await it.apply(tfjob())
        await it.settle()

        after = {uid_of(found) for found in await it.pods()}
        assert 2 == len(after)
        assert not before & after


async def test_a_service_that_somebody_deletes_comes_back() -> None:
    async with stage() as it:
        it.begin()
        await it.apply(tfjob())
        await it.settle()
        await it.client.delete(SERVICES, "mnist-worker-1", NAMESPACE)
        await it.settle()

        assert ["mnist-worker-0", "mnist-worker-1"] == [name_of(found) for found in await it.services()]


async def test_the_events_of_a_whole_life() -> None:
    async with stage() as it:
        it.begin()
        await it.apply(deepcopy(tfjob(roles={"Worker": (1, "ExitCode")})))
        await it.settle()
        await it.run()
        await it.settle()
        await it.fail(code=137)
        await it.settle()
        await it.run()
        await it.settle()
        await it.succeed()
        await it.settle()

        assert {
            "Normal SuccessfulCreateService Created service: mnist-worker-0",
            "Normal SuccessfulCreatePod Created pod: mnist-worker-0",
            "Normal ExitedWithCode Pod: default.mnist-worker-0 exited with code 137",
            "Warning TFJobRestarting job mnist is restarting because Worker replica(s) failed.",
            "Normal SuccessfulDeletePod Deleted pod: mnist-worker-0",
            "Normal ExitedWithCode Pod: default.mnist-worker-0 exited with code 0",
            "Normal TFJobSucceeded TFJob default/mnist successfully completed.",
        } == {f"{event['type']} {event['reason']} {event['message']}" for event in await it.events()}
        assert {"tfjob-controller"} == {event["source"]["component"] for event in await it.events()}
        assert {("TFJob", "kubeflow.org/v1")} == {
            (event["involvedObject"]["kind"], event["involvedObject"]["apiVersion"]) for event in await it.events()
        }
