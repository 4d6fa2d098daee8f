"""How containers are ended: hook, request, grace, kill, and in which order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.actions import Kill, Plan, RunHook, Terminate
from trainmaster.cluster.kubelet.ending import end_failing, end_pod
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit, HookSeen, Observed

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOOK = {"lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def pod(main: Object | None = None, *, beside: tuple[Object, ...] = (), grace: int = 10) -> Object:
    return {
        "metadata": {"deletionTimestamp": "x", "deletionGracePeriodSeconds": grace},
        "spec": {
            "containers": [{"name": "main", **(main or {})}],
            "initContainers": [{"name": f"s{at}", "restartPolicy": "Always", **one} for at, one in enumerate(beside)],
        },
    }


def running(**more: Any) -> ContainerSeen:
    return ContainerSeen(Attempt(0, NOON), **more)


def gone() -> ContainerSeen:
    return ContainerSeen(Attempt(0, NOON, Exit(0, NOON)))


def seen(**containers: ContainerSeen) -> Observed:
    return Observed(NOON, "10.88.0.2", containers=containers, stopping=NOON)


@pytest.mark.parametrize(("expected", "thing", "world", "now"), [
    pytest.param(Plan((RunHook("main", seconds(10)),)), pod(HOOK), seen(main=running()), 0,
                 id="one with a preStop hook: first the hook"),
    pytest.param(Plan((), after(10)), pod(HOOK), seen(main=running(hook=HookSeen(NOON))), 3,
                 id="while it runs, nothing else"),
    pytest.param(Plan((Terminate("main", seconds(6)),)), pod(HOOK), seen(main=running(hook=HookSeen(NOON, True))), 4,
                 id="it is over: what is left of the grace is for the container"),
    pytest.param(Plan((Terminate("main", seconds(2)),)), pod(HOOK), seen(main=running(hook=HookSeen(NOON))), 10,
                 id="it takes all the grace: the container gets two seconds all the same"),
    pytest.param(Plan((), after(12)), pod(HOOK), seen(main=running(hook=HookSeen(NOON), terminating=after(10))), 11,
                 id="which it has"),
    pytest.param(Plan((Kill("main"),)), pod(HOOK), seen(main=running(hook=HookSeen(NOON), terminating=after(10))), 12,
                 id="and not more"),
    pytest.param(Plan((), after(10)), pod(HOOK), seen(main=running(hook=HookSeen(NOON, True), terminating=after(1))),
                 9, id="a quick hook leaves the grace as it is"),
    pytest.param(Plan((Kill("main"),)), pod(HOOK, grace=0), seen(main=running()), 0, id="no grace, no hook"),
    pytest.param(Plan((Kill("main"),)), pod(HOOK, grace=0), seen(main=running(hook=HookSeen(NOON))), 1,
                 id="forced while the hook runs: killed"),
])
def test_hooks_before_the_end(expected: Plan, thing: Object, world: Observed, now: float) -> None:
    assert expected == end_pod(thing, world, after(now), remove=True)


@pytest.mark.parametrize(("expected", "world", "now"), [
    pytest.param(Plan((RunHook("s1", seconds(10)), Terminate("main", seconds(10))), after(10)),
                 seen(s0=running(), s1=running(), main=running()), 0,
                 id="the main container is asked; the hooks of sidecars run beside it"),
    pytest.param(Plan((), after(10)),
                 seen(s0=running(), s1=running(hook=HookSeen(NOON, True)), main=running(terminating=NOON)), 3,
                 id="sidecars wait for it"),
    pytest.param(Plan((Terminate("s1", seconds(6)),), after(10)),
                 seen(s0=running(), s1=running(hook=HookSeen(NOON, True)), main=gone()), 4,
                 id="it is gone: the last sidecar, with what is left"),
    pytest.param(Plan((Terminate("s0", seconds(2)),)), seen(s0=running(), s1=gone(), main=gone()), 9.5,
                 id="then the first; two seconds are for everybody"),
    pytest.param(Plan((Terminate("s0", seconds(2)), Terminate("s1", seconds(2)), Kill("main"))),
                 seen(s0=running(), s1=running(hook=HookSeen(NOON)), main=running(terminating=NOON)), 10,
                 id="the grace is over: nobody waits for anybody"),
])
def test_sidecars_end_last(expected: Plan, world: Observed, now: float) -> None:
    assert expected == end_pod(pod(beside=({}, HOOK)), world, after(now), remove=True)


def test_a_pod_that_uses_too_much_gets_a_second() -> None:
    world = Observed(NOON, "10.88.0.2", containers={"main": running()}, evicted="too much", stopping=NOON)

    assert Plan((Terminate("main", seconds(1)),)) == end_pod(pod(), world, NOON, remove=False)


@pytest.mark.parametrize(("expected", "grace"), [
    pytest.param(seconds(30), {}, id="without a word: thirty seconds"),
    pytest.param(seconds(5), {"terminationGracePeriodSeconds": 5}, id="the probe's own grace"),
])
def test_the_grace_of_a_failing_container(expected: timedelta, grace: Object) -> None:
    thing = pod({"livenessProbe": grace})

    assert Plan((Terminate("main", expected),)) == end_failing(thing, seen(main=running(verdict="liveness")), NOON)
