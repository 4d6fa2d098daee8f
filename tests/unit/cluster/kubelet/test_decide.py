"""What the node does next for a pod: rows are rules, in the order of their precedence."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.actions import EndSandbox, Kill, MakeSandbox, Plan, Pull, Remove, Start, Terminate
from trainmaster.cluster.kubelet.decide import decide
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit, Observed, Waiting

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
UP = "10.88.0.2"


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def pod(*containers: str, init: tuple[str, ...] = (), beside: tuple[str, ...] = (), restart: str = "Never",
        deleted: int | None = None, phase: str = "", with_hook: str = "", **spec: Any) -> Object:
    about: Object = {"name": "p", "namespace": "default", "uid": "u"}
    if deleted is not None:
        about |= {"deletionTimestamp": "2030-01-01T12:00:00Z", "deletionGracePeriodSeconds": deleted}
    return {
        "metadata": about,
        "spec": {
            "containers": [{"name": name} | hooked(with_hook) for name in containers or ("main",)],
            "initContainers": [{"name": name} | ({"restartPolicy": "Always"} if name in beside else {})
                               for name in init], "restartPolicy": restart, **spec,
        },
        "status": {"phase": phase} if phase else {},
    }


def hooked(name: str) -> Object:
    return {"lifecycle": {name: {"sleep": {"seconds": 1}}}} if name else {}


def seen(
    address: str = UP, draining: bool = False, waiting: Waiting | None = None, **containers: ContainerSeen
) -> Observed:
    return Observed(NOON, address, address, waiting, containers, draining)


def visited(**more: Any) -> Object:
    return pod(ephemeralContainers=[{"name": "debug"}], **more)


def fresh(**more: Any) -> ContainerSeen:
    return ContainerSeen(**more)


def pulled() -> ContainerSeen:
    return ContainerSeen(image_ready=True)


def running(number: int = 0, **more: Any) -> ContainerSeen:
    return ContainerSeen(Attempt(number, NOON), image_ready=True, **more)


def exited(code: int, number: int = 0, level: int = 0, at: float = 1, **more: Any) -> ContainerSeen:
    return ContainerSeen(Attempt(number, NOON, Exit(code, after(at)), level), image_ready=True, **more)


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param(Plan((MakeSandbox(),)), pod(), seen(""), id="nothing exists yet: the sandbox comes first"),
    pytest.param(
        Plan(look_again_at=after(10)), pod(), seen("", waiting=Waiting("FailedMount", "", after(10))),
        id="its volumes could not be mounted: not before it is worth trying again"),
    pytest.param(Plan((Pull("main"),)), pod(), seen(), id="then the image"),
    pytest.param(Plan(), pod(), seen(main=fresh(pulling=True)), id="which is being pulled: wait for it"),
    pytest.param(
        Plan(look_again_at=after(10)), pod(), seen(main=fresh(waiting=Waiting("ErrImagePull", "", after(10)))),
        id="which cannot be had: again later"),
    pytest.param(Plan((Start("main", 0, 0),)), pod(), seen(main=pulled()), id="then the container"),
    pytest.param(
        Plan((Start("a", 0, 0), Pull("b"))), pod("a", "b"), seen(a=pulled()),
        id="containers do not wait for each other's images"),
    pytest.param(Plan(), pod(), seen(main=running()), id="it runs: nothing to do"),
    pytest.param(Plan((EndSandbox(),)), pod(), seen(main=exited(0)), id="all is done: the sandbox goes"),
    pytest.param(Plan(), pod(), seen("", main=exited(0)), id="all is done and gone: nothing to do"),
    pytest.param(Plan(), pod("a", "b"), seen(a=exited(1), b=running()), id="one failed, the other goes on"),
    pytest.param(Plan((Start("debug", 0, 0),)), visited(), seen(main=running(), debug=pulled()),
                 id="an ephemeral container comes later"),
    pytest.param(Plan((Start("debug", 0, 0),)), visited(init=("first",)), seen(first=running(), debug=pulled()),
                 id="and waits for no init container"),
    pytest.param(Plan(), visited(restart="Always"), seen(main=running(), debug=exited(1)),
                 id="it is started once, however it ends"),
    pytest.param(Plan((Terminate("debug", timedelta(seconds=30)),), None), visited(),
                 seen(main=exited(0), debug=running()), id="and the pod does not go on for it"),
    pytest.param(Plan(), pod(ephemeralContainers=[{"name": "../x"}]), seen(main=running()),
                 id="one whose name is a path is not there"),
    pytest.param(Plan(), pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}), seen(""),
                 id="a pod that wants a sysctl that is not its own is refused"),
])
def test_a_pod_that_runs_once(expected: Plan, thing: Object, world: Observed) -> None:
    assert expected == decide(thing, world, after(2))


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param(Plan((Start("main", 1, 1),)), pod(restart="Always"), seen(main=exited(0)),
                 id="Always: an end is followed by a start, the first time at once"),
    pytest.param(Plan(look_again_at=after(11)), pod(restart="Always"), seen(main=exited(0, 1, level=1)),
                 id="the second time after ten seconds"),
    pytest.param(Plan((Start("main", 1, 1),)), pod(restart="OnFailure"), seen(main=exited(1)),
                 id="OnFailure: a failure is followed by a start"),
    pytest.param(Plan((EndSandbox(),)), pod(restart="OnFailure"), seen(main=exited(0)),
                 id="OnFailure: success is the end"),
    pytest.param(Plan((MakeSandbox(),)), pod(restart="OnFailure"), seen("", main=exited(137)),
                 id="the sandbox was lost with the container: a new one first"),
    pytest.param(Plan((Start("b", 1, 1),), after(11)), pod("a", "b", restart="Always"),
                 seen(a=exited(1, 1, level=1), b=exited(1)), id="each container waits for itself alone"),
])
def test_restarts(expected: Plan, thing: Object, world: Observed) -> None:
    assert expected == decide(thing, world, after(2))


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param(Plan((Pull("one"),)), pod(init=("one", "two")), seen(), id="the first init container comes first"),
    pytest.param(Plan(), pod(init=("one", "two")), seen(one=running()), id="while it runs, nothing else starts"),
    pytest.param(Plan((Start("two", 0, 0),)), pod(init=("one", "two")), seen(one=exited(0), two=pulled()),
                 id="it succeeded: the next"),
    pytest.param(Plan((Start("main", 0, 0),)), pod(init=("one",)), seen(one=exited(0), main=pulled()),
                 id="all succeeded: the containers"),
    pytest.param(Plan((EndSandbox(),)), pod(init=("one",)), seen(one=exited(1)), id="Never: a failed one ends the pod"),
    pytest.param(Plan((Start("one", 1, 1),)), pod(init=("one",), restart="Always"), seen(one=exited(1)),
                 id="Always: a failed one is tried again"),
    pytest.param(Plan((Start("main", 0, 0),)), pod(init=("one",), restart="Always"), seen(one=exited(0), main=pulled()),
                 id="Always: a successful one is not"),
    pytest.param(Plan((Start("main", 1, 1),)), pod(init=("one",), restart="Always"),
                 seen(one=fresh(), main=exited(0)), id="a pod that has run is not initialized again"),
])
def test_init_containers(expected: Plan, thing: Object, world: Observed) -> None:
    assert expected == decide(thing, world, after(2))


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param(Plan((Terminate("main", timedelta(seconds=30)),)), pod(deleted=30), seen(main=running()),
                 id="a deleted pod is asked to end"),
    pytest.param(Plan(look_again_at=after(31)), pod(deleted=30), seen(main=running(terminating=after(1))),
                 id="and given its time"),
    pytest.param(Plan((Kill("main"),)), pod(deleted=1), seen(main=running(terminating=after(1))),
                 id="and not a moment more"),
    pytest.param(Plan(look_again_at=after(11.5)), pod(deleted=1),
                 seen(main=running(terminating=NOON, killed=after(1.5))), id="the kill takes a moment"),
    pytest.param(Plan((Kill("main", shim=True),)), pod(deleted=1),
                 seen(main=running(terminating=after(-99), killed=after(-9))), id="no effect: the shim goes too"),
    pytest.param(Plan((Kill("main"),)), pod(deleted=0), seen(main=running()), id="no grace at all: killed at once"),
    pytest.param(Plan((EndSandbox(),)), pod(deleted=30), seen(main=exited(143)), id="it ended: the sandbox goes"),
    pytest.param(Plan((Remove(),)), pod(deleted=30), seen("", main=exited(143)), id="then the object"),
    pytest.param(Plan((Remove(),)), pod(deleted=30), seen(""), id="one that never started goes at once"),
    pytest.param(Plan((Terminate("a", timedelta(seconds=5)), Terminate("b", timedelta(seconds=5)))),
                 pod("a", "b", deleted=5), seen(a=running(), b=running()), id="all containers are asked together"),
    pytest.param(Plan(), pod(restart="Always", phase="Failed"), seen("", main=exited(1)),
                 id="a phase that is final stays so: no restart"),
    pytest.param(Plan((Terminate("main", timedelta(seconds=30)),)), pod(), seen(draining=True, main=running()),
                 id="the node is drained: all pods end"),
    pytest.param(Plan(), pod(), seen("", draining=True), id="and none begins"),
])
def test_ends(expected: Plan, thing: Object, world: Observed) -> None:
    assert expected == decide(thing, world, after(2))


@pytest.mark.parametrize(("expected", "seconds", "world"), [
    pytest.param(Plan(look_again_at=after(60)), 59, seen(main=running()),
                 id="within its deadline: look again at its end"),
    pytest.param(Plan((Terminate("main", timedelta(seconds=30)),)), 60, seen(main=running()),
                 id="past it: the pod ends"),
    pytest.param(Plan((EndSandbox(),)), 59, seen(main=exited(0)), id="done before it: no need to look again"),
])
def test_active_deadline(expected: Plan, seconds: int, world: Observed) -> None:
    assert expected == decide(pod(activeDeadlineSeconds=60), world, after(seconds))


def accompanied(restart: str = "Never") -> Object:
    return pod(init=("one", "log", "two", "net"), beside=("log", "net"), restart=restart)


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param(Plan((Start("log", 0, 0),)), accompanied(), seen(one=exited(0), log=pulled()),
                 id="a sidecar starts in its turn"),
    pytest.param(Plan(), accompanied(), seen(one=exited(0), log=running(started=False)),
                 id="the next waits for its startup probe"),
    pytest.param(Plan(), accompanied(), seen(one=exited(0), log=running(beginning=True)),
                 id="and for its postStart hook"),
    pytest.param(Plan((Start("two", 0, 0),)), accompanied(), seen(one=exited(0), log=running(), two=pulled()),
                 id="but not for its end"),
    pytest.param(Plan((Start("main", 0, 0),)), accompanied(),
                 seen(one=exited(0), log=running(), two=exited(0), net=running(), main=pulled()),
                 id="all are up: the containers"),
    pytest.param(Plan((Start("log", 1, 1),)), accompanied(),
                 seen(one=exited(0), log=exited(0), two=exited(0), net=running(), main=running()),
                 id="a sidecar that ended is started again, whatever the pod's policy"),
    pytest.param(Plan((Terminate("net", timedelta(seconds=30)),), after(32)), accompanied(),
                 seen(one=exited(0), log=running(), two=exited(0), net=running(), main=exited(1)),
                 id="the containers are done: the last sidecar ends first"),
    pytest.param(Plan((Terminate("log", timedelta(seconds=30)),)), accompanied(),
                 seen(one=exited(0), log=running(), two=exited(0), net=exited(143), main=exited(0)),
                 id="then the one before it"),
    pytest.param(Plan((EndSandbox(),)), accompanied(),
                 seen(one=exited(0), log=exited(143), two=exited(0), net=exited(143), main=exited(0)),
                 id="then the sandbox"),
    pytest.param(Plan((Terminate("log", timedelta(seconds=30)),)), accompanied(),
                 seen(one=exited(0), log=running(), two=exited(1)), id="an init container failed: sidecars end too"),
    pytest.param(Plan((MakeSandbox(),)), accompanied("Always"),
                 seen("", one=exited(0), log=exited(137), two=exited(0), net=exited(137), main=exited(137)),
                 id="all was lost: a new sandbox for all that comes back"),
])
def test_sidecars(expected: Plan, thing: Object, world: Observed) -> None:
    assert expected == decide(thing, world, after(2))


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param(Plan((Start("a", 0, 0),)), pod("a", "b", with_hook="postStart"), seen(a=pulled(), b=pulled()),
                 id="after one with a postStart hook no other is started"),
    pytest.param(Plan(), pod("a", "b", with_hook="postStart"), seen(a=running(beginning=True), b=pulled()),
                 id="while its hook runs"),
    pytest.param(Plan((Start("b", 0, 0),)), pod("a", "b", with_hook="postStart"), seen(a=running(), b=pulled()),
                 id="but afterwards"),
    pytest.param(Plan((Start("b", 0, 0),)), pod("a", "b", with_hook="postStart"), seen(a=exited(1), b=pulled()),
                 id="also when it failed"),
])
def test_hooks_after_the_start(expected: Plan, thing: Object, world: Observed) -> None:
    assert expected == decide(thing, world, after(2))


@pytest.mark.parametrize(("expected", "thing", "world"), [
    pytest.param(Plan((Terminate("main", timedelta(seconds=30)),)), pod(), seen(main=running(verdict="liveness")),
                 id="one that failed its liveness probe is asked to end"),
    pytest.param(Plan((Terminate("main", timedelta(seconds=7)),)), pod(terminationGracePeriodSeconds=7),
                 seen(main=running(verdict="postStart")), id="one whose postStart hook failed, within the pod's grace"),
    pytest.param(Plan(look_again_at=after(31)), pod(), seen(main=running(verdict="liveness", terminating=after(1))),
                 id="it gets its time"),
    pytest.param(Plan((Kill("main"),)), pod(), seen(main=running(verdict="startup", terminating=after(-28))),
                 id="and no more"),
    pytest.param(Plan((Terminate("a", timedelta(seconds=30)), Start("b", 1, 1))), pod("a", "b", restart="Always"),
                 seen(a=running(verdict="liveness"), b=exited(1)), id="the others go on meanwhile"),
    pytest.param(Plan((Start("main", 1, 1),)), pod(restart="OnFailure"), seen(main=exited(0, verdict="liveness")),
                 id="OnFailure: it is started again even if it ended well"),
    pytest.param(Plan((EndSandbox(),)), pod(restart="OnFailure"), seen(main=exited(0, verdict="postStart")),
                 id="after a failed hook only if it did not"),
    pytest.param(Plan((EndSandbox(),)), pod(), seen(main=exited(143, verdict="liveness")),
                 id="Never: it is not started again"),
    pytest.param(Plan(look_again_at=after(11)), pod(restart="Always"),
                 seen(main=exited(143, 1, level=1, verdict="liveness")), id="it waits like any other that fails often"),
])
def test_failing_containers(expected: Plan, thing: Object, world: Observed) -> None:
    assert expected == decide(thing, world, after(2))
