"""Which looks at a container count, and when the next is due."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit
from trainmaster.cluster.kubelet.probing import Kind, Tally, next_look, probe_of, settled, wanted

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
ALL: Object = {"name": "main", "startupProbe": {"exec": {}}, "livenessProbe": {"exec": {}},
               "readinessProbe": {"exec": {}}}


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(("expected", "kind", "probe", "looks"), [
    pytest.param([None, None, False], "liveness", {}, "---", id="three failures in a row count"),
    pytest.param([None, None, True, True, True, False], "liveness", {}, "--+---", id="with one success between: anew"),
    pytest.param([True], "readiness", {}, "+", id="one success counts"),
    pytest.param([None, True], "readiness", {"successThreshold": 2}, "++", id="unless two are asked for"),
    pytest.param([True, True, True, False, True], "readiness", {}, "+---+", id="readiness comes and goes"),
    pytest.param([False], "startup", {"failureThreshold": 1}, "-", id="one failure is enough where it is said"),
])
def test_tally(expected: list[bool | None], kind: Kind, probe: Object, looks: str) -> None:
    found = probe_of({f"{kind}Probe": {"exec": {}, **probe}}, kind)
    assert found is not None
    tally, outcomes = Tally(), []
    for look in looks:
        tally = tally.after(found, look == "+")
        outcomes.append(tally.outcome)

    assert expected == outcomes


@pytest.mark.parametrize(("expected", "kind", "outcome"), [
    pytest.param(True, "startup", True, id="started: nothing more to ask"),
    pytest.param(True, "startup", False, id="never started: it ends"),
    pytest.param(True, "liveness", False, id="dead: it ends"),
    pytest.param(False, "liveness", True, id="alive: ask again"),
    pytest.param(False, "readiness", False, id="not ready: ask again"),
    pytest.param(False, "startup", None, id="not known yet: ask again"),
])
def test_settled(expected: bool, kind: Kind, outcome: bool | None) -> None:
    probe = probe_of(ALL, kind)
    assert probe is not None

    assert expected == settled(probe, Tally(outcome))


def running(**more: Any) -> ContainerSeen:
    return ContainerSeen(Attempt(0, NOON), **more)


@pytest.mark.parametrize(("expected", "state", "deleted"), [
    pytest.param(["startup"], running(started=False), False, id="before it has started: the startup probe alone"),
    pytest.param(["liveness", "readiness"], running(), False, id="afterwards: the others"),
    pytest.param([], ContainerSeen(Attempt(0, NOON, Exit(0, NOON))), False, id="it has ended: none"),
    pytest.param([], running(beginning=True), False, id="its postStart hook is under way: none"),
    pytest.param([], running(verdict="liveness"), False, id="it must end anyway: none"),
    pytest.param(["readiness"], running(), True, id="it is being deleted: only whether it is ready"),
    pytest.param([], running(started=False), True, id="deleted before it has started: none"),
])
def test_wanted(expected: list[str], state: ContainerSeen, deleted: bool) -> None:
    assert expected == [probe.kind for probe in wanted(ALL, state, deleted=deleted)]


@pytest.mark.parametrize(("expected", "now"), [
    pytest.param(10, 0.1, id="one period after the last"),
    pytest.param(10, 9.9, id="however long that look took"),
    pytest.param(30, 25, id="beats that passed meanwhile are skipped"),
])
def test_next_look(expected: float, now: float) -> None:
    assert after(expected) == next_look(NOON, after(now), timedelta(seconds=10))


def test_the_defaults_of_the_api() -> None:
    probe = probe_of({"livenessProbe": {"tcpSocket": {"port": 1}}}, "liveness")
    assert probe is not None

    assert (0, 10, 1, 1, 3) == (
        probe.delay.seconds, probe.period.seconds, probe.timeout.seconds, probe.successes, probe.failures
    )
