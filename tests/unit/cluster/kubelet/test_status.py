"""What the node writes into a pod's status."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit, Observed, Waiting
from trainmaster.cluster.kubelet.status import container_id, pod_status, quality_of_service

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(seconds=5)


def pod(*containers: str, init: tuple[str, ...] = (), restart: str = "Never", status: Object | None = None,
        **spec: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {
            "containers": [{"name": name, "image": "busybox"} for name in containers or ("main",)],
            "initContainers": [{"name": name, "image": "busybox"} for name in init], "restartPolicy": restart, **spec,
        },
        "status": status or {},
    }


def accompanied(**spec: Any) -> Object:
    made = pod(init=("one", "beside"), **spec)
    made["spec"]["initContainers"][1]["restartPolicy"] = "Always"
    return made


def running(number: int = 0, previous: Attempt | None = None, **more: Any) -> ContainerSeen:
    return ContainerSeen(Attempt(number, NOON, image_id="busybox"), previous, **more)


def exited(code: int, number: int = 0, level: int = 0, **more: Any) -> ContainerSeen:
    return ContainerSeen(Attempt(number, NOON, Exit(code, NOON + timedelta(seconds=4), **more), level))


def seen(
    draining: bool = False, address: str = "10.88.0.2", evicted: str = "", **containers: ContainerSeen
) -> Observed:
    return Observed(NOON, address, "10.88.0.2", None, containers, draining, evicted)


def status(thing: Object, world: Observed) -> Object:
    return pod_status(thing, world, LATER, "10.88.0.1")


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param("Pending", pod(), seen(), id="nothing started: Pending"),
    pytest.param("Running", pod(), seen(main=running()), id="one runs: Running"),
    pytest.param("Pending", pod("a", "b"), seen(a=running()),
                 id="one of two has never started: Pending, as the kubelet"),
    pytest.param("Running", pod("a", "b"), seen(a=exited(1), b=running()), id="one failed, one runs: Running"),
    pytest.param("Succeeded", pod("a", "b"), seen(a=exited(0), b=exited(0)), id="all succeeded: Succeeded"),
    pytest.param("Failed", pod("a", "b"), seen(a=exited(0), b=exited(3)), id="all ended, one failed: Failed"),
    pytest.param("Running", pod(restart="Always"), seen(main=exited(0)),
                 id="Always: between two attempts it is Running"),
    pytest.param("Running", pod(restart="OnFailure"), seen(main=exited(1)), id="OnFailure: so it is after a failure"),
    pytest.param("Succeeded", pod(restart="OnFailure"), seen(main=exited(0)), id="OnFailure: success is the end"),
    pytest.param("Pending", pod(init=("one",)), seen(one=running()), id="initializing: Pending"),
    pytest.param("Failed", pod(init=("one",)), seen(one=exited(1)), id="an init container failed for good: Failed"),
    pytest.param("Pending", pod(init=("one",), restart="Always"), seen(one=exited(1)),
                 id="one that comes back: Pending"),
    pytest.param("Failed", pod(status={"phase": "Failed"}), seen(main=exited(0)), id="a final phase never changes"),
    pytest.param("Failed", pod(), seen(draining=True, main=exited(143)), id="stopped with the node: Failed"),
    pytest.param("Pending", pod(), seen(draining=True), id="not yet begun when the node stops: still to be done"),
    pytest.param("Failed", pod(activeDeadlineSeconds=3), seen(main=exited(143)), id="past its deadline: Failed"),
    pytest.param("Running", pod(activeDeadlineSeconds=3), seen(main=running()), id="but not before it has ended"),
    pytest.param("Pending", pod(), seen(main=running(beginning=True)), id="its postStart hook is under way: Pending"),
    pytest.param("Running", accompanied(), seen(one=exited(0), beside=running(), main=exited(0)),
                 id="done, but a sidecar has not ended: Running"),
    pytest.param("Succeeded", accompanied(), seen(one=exited(0), beside=exited(137), main=exited(0)),
                 id="how a sidecar ended does not count"),
    pytest.param("Pending", accompanied(), seen(one=exited(0), beside=running(started=False)),
                 id="a sidecar has not started yet: Pending"),
    pytest.param("Running", accompanied(), seen(one=exited(0), beside=exited(1), main=running()),
                 id="a sidecar is being restarted: Running"),
    pytest.param("Running", pod(), seen(evicted="too much", main=running()), id="to be evicted: Running"),
    pytest.param("Failed", pod(restart="Always"), seen(evicted="too much", main=exited(137)), id="evicted: Failed"),
])
def test_phase(expected: str, thing: Object, world: Observed) -> None:
    assert expected == status(thing, world)["phase"]


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param({"waiting": {"reason": "ContainerCreating"}}, pod(), seen(), id="about to be made"),
    pytest.param({"waiting": {"reason": "PodInitializing"}}, pod(init=("one",)), seen(one=running()),
                 id="waits for the init containers"),
    pytest.param({"waiting": {"reason": "ErrImagePull", "message": "no such thing"}}, pod(),
                 seen(main=ContainerSeen(waiting=Waiting("ErrImagePull", "no such thing", LATER))), id="has no image"),
    pytest.param({"running": {"startedAt": "2030-01-01T12:00:00Z"}}, pod(), seen(main=running()), id="runs"),
    pytest.param(
        {"terminated": {
            "exitCode": 137, "reason": "Error", "signal": 9, "message": "last words",
            "startedAt": "2030-01-01T12:00:00Z", "finishedAt": "2030-01-01T12:00:04Z",
            "containerID": container_id("u", "main", 0),
        }}, pod(), seen(main=exited(137, signal=9, message="last words")), id="was killed, and left a word"),
    pytest.param(
        {"waiting": {
            "reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container=main pod=p_default(u)",
        }}, pod(restart="Always"), seen(main=exited(1, 1, level=1)), id="waits before it is started again"),
    pytest.param(
        {"waiting": {
            "reason": "CrashLoopBackOff", "message": "back-off 2m40s restarting failed container=main pod=p_default(u)",
        }}, pod(restart="Always"), seen(main=exited(1, 6, level=5)), id="waits long: minutes and seconds"),
    pytest.param(
        {"terminated": {
            "exitCode": 1, "reason": "Error", "startedAt": "2030-01-01T12:00:00Z",
            "finishedAt": "2030-01-01T12:01:00Z", "containerID": container_id("u", "main", 0),
        }}, pod(restart="Always"), seen(main=ContainerSeen(Attempt(0, NOON, Exit(1, NOON + timedelta(minutes=1))))),
        id="does not wait for its first restart, also when the clock was set back since it ended"),
])
def test_state_of_the_container(expected: Object, thing: Object, world: Observed) -> None:
    assert expected == status(thing, world)["containerStatuses"][0]["state"]


def test_a_restarted_container_shows_its_last_end_and_its_count() -> None:
    earlier = Attempt(0, NOON, Exit(3, NOON))

    shown = status(pod(restart="Always"), seen(main=running(1, earlier)))["containerStatuses"][0]

    assert (1, 3, True) == (shown["restartCount"], shown["lastState"]["terminated"]["exitCode"], shown["ready"])


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param(("True", "False", "ContainersNotReady"), pod(), seen(), id="nothing runs: initialized, not ready"),
    pytest.param(("True", "True", None), pod(), seen(main=running()), id="all run: ready"),
    pytest.param(("False", "False", "ContainersNotReady"), pod(init=("one",)), seen(one=running()), id="initializing"),
    pytest.param(("True", "False", "PodCompleted"), pod(), seen(main=exited(0)), id="succeeded: completed"),
    pytest.param(("True", "False", "PodFailed"), pod(), seen(main=exited(1)), id="failed"),
    pytest.param(("True", "False", "ContainersNotReady"), pod(), seen(main=running(ready=False)),
                 id="its readiness probe has not succeeded"),
    pytest.param(("True", "False", "ContainersNotReady"), pod(), seen(main=running(started=False)),
                 id="its startup probe has not"),
    pytest.param(("True", "True", None), accompanied(), seen(one=exited(0), beside=running(), main=running()),
                 id="with a sidecar that is ready"),
    pytest.param(("True", "False", "ContainersNotReady"), accompanied(),
                 seen(one=exited(0), beside=running(ready=False), main=running()), id="with one that is not"),
    pytest.param(("False", "False", "ContainersNotReady"), accompanied(),
                 seen(one=exited(0), beside=running(started=False)), id="a sidecar that has not started"),
    pytest.param(("True", "False", "ReadinessGatesNotReady"), pod(readinessGates=[{"conditionType": "example.com/x"}]),
                 seen(main=running()), id="a gate that nobody opened"),
])
def test_conditions(expected: tuple[str, str, str | None], thing: Object, world: Observed) -> None:
    found = {one["type"]: one for one in status(thing, world)["conditions"]}

    assert expected == (found["Initialized"]["status"], found["Ready"]["status"], found["Ready"].get("reason"))


def test_a_pod_that_is_evicted_says_why() -> None:
    found = status(pod(), seen(evicted="too much", main=exited(137)))

    assert ("Failed", "Evicted", "too much") == (found["phase"], found["reason"], found["message"])
    assert {"DisruptionTarget": "TerminationByKubelet"}.items() <= {
        one["type"]: one.get("reason") for one in found["conditions"]
    }.items()


def test_an_open_gate_lets_the_pod_be_ready() -> None:
    opened = {"conditions": [{"type": "example.com/x", "status": "True"}]}
    thing = pod(readinessGates=[{"conditionType": "example.com/x"}], status=opened)

    assert ["True"] == [one["status"] for one in status(thing, seen(main=running()))["conditions"]
                        if one["type"] == "Ready"]


def test_a_condition_keeps_its_time_while_it_stays_true() -> None:
    before = [{"type": "Ready", "status": "True", "lastTransitionTime": "2029-12-31T00:00:00Z"}]

    found = status(pod(status={"conditions": before}), seen(main=running()))["conditions"]

    assert ["2029-12-31T00:00:00Z"] == [one["lastTransitionTime"] for one in found if one["type"] == "Ready"]


def test_conditions_of_others_are_kept() -> None:
    before = [{"type": "example.com/fine", "status": "True"}]

    assert before[0] in status(pod(status={"conditions": before}), seen())["conditions"]


def test_the_address_stays_on_record_after_the_sandbox_is_gone() -> None:
    assert "10.88.0.2" == status(pod(), seen(address="", main=exited(0)))["podIP"]


def test_the_same_world_gives_the_same_status() -> None:
    first = status(pod(), seen(main=running()))

    assert first == status(pod(status=first), seen(main=running()))


@pytest.mark.parametrize(("expected", "resources"), [
    pytest.param("BestEffort", {}, id="asks for nothing"),
    pytest.param("Burstable", {"requests": {"cpu": "1"}}, id="asks for something"),
    pytest.param("Burstable", {"limits": {"cpu": "1"}}, id="limits one of the two"),
    pytest.param("Guaranteed", {"limits": {"cpu": "1", "memory": "1Gi"}}, id="limits both"),
    pytest.param("Burstable", {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}, id="asks for less"),
])
def test_quality_of_service(expected: str, resources: Object) -> None:
    thing = pod()
    thing["spec"]["containers"][0]["resources"] = resources

    assert expected == quality_of_service(thing)


def test_an_ephemeral_container_is_told_of_and_counts_for_nothing() -> None:
    thing = pod(ephemeralContainers=[{"name": "debug", "image": "busybox"}])

    told = status(thing, seen(main=running(), debug=exited(1)))

    (debug,) = told["ephemeralContainerStatuses"]
    assert ("debug", False, 1) == (debug["name"], debug["ready"], debug["state"]["terminated"]["exitCode"])
    assert "started" not in debug
    assert "Running" == told["phase"]
    assert ["True"] == [one["status"] for one in told["conditions"] if one["type"] == "Ready"]
    assert "BestEffort" == told["qosClass"]


def test_a_pod_that_is_refused_has_failed() -> None:
    thing = pod(securityContext={"sysctls": [{"name": "kernel/msgmax", "value": "1"}]})

    told = status(thing, seen(address=""))

    assert ("Failed", "SysctlForbidden") == (told["phase"], told["reason"])
    assert '"kernel.msgmax" not allowlisted' in told["message"]


@pytest.mark.parametrize(("expected", "restart", "world"), [
    pytest.param("Failed", "Never", seen(address=""), id="one that never began has failed"),
    pytest.param("Failed", "Always", seen(address="", main=exited(143)), id="one that would have gone on has failed"),
    pytest.param("Succeeded", "Always", seen(address="", main=exited(0)), id="or succeeded, if it took its end well"),
    pytest.param("Running", "Always", seen(main=exited(143)), id="as long as it has its address, it is not gone"),
])
def test_the_last_word_on_a_pod_that_is_deleted(expected: str, restart: str, world: Observed) -> None:
    thing = pod(restart=restart)
    thing["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"

    assert expected == status(thing, world)["phase"]
