"""Probes in virtual time: what they find out about a container, and when."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.checks import Checks
from trainmaster.cluster.kubelet.events import Events
from trainmaster.cluster.kubelet.handlers import Target
from trainmaster.cluster.kubelet.life import Health, Life, health_of, standing
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit, Observed
from trainmaster.cluster.kubelet.records import VERDICT, Failed, read
from trainmaster.cluster.kubelet.settings import PodPlaces
from trainmaster.kube.client import Client
from trainmaster.testing.builders import pod as built
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded

NAMES = {"+": 0, "-": 1}


class Told(Events):
    """Events as they are said."""

    def __init__(self, client: Client, clock: VirtualClock) -> None:
        super().__init__(client, clock)
        self.said: list[tuple[str, str]] = []

    def _put(self, _pod: Object, _kind: str, reason: str, message: str) -> None:
        self.said.append((reason, message))


class World:
    """One container whose command answers as written: + well, - not, ? cannot be asked."""

    def __init__(self, clock: VirtualClock, events: Told, folder: Path) -> None:
        self.clock = clock
        self.events = events
        self.looks: list[float] = []
        self.answers = ""
        self.folder = folder
        self.checks = Checks(clock, events, self._reach)
        self.life: Life | None = None

    def begin(self, answers: str, **probes: Object) -> Life:
        pod = built("a", uid="u")
        pod["spec"]["containers"][0] |= {
            f"{kind}Probe": {"exec": {"command": ["ask"]}, **probe} for kind, probe in probes.items()
        }
        self.answers = answers
        places = PodPlaces(self.folder / "pod", self.folder / "volumes", self.folder / "logs")
        places.attempt("main", 0).mkdir(parents=True)
        self.life = Life(pod, places, self.clock.now(), self.follow)
        self.created = self.clock.now()
        self.follow()
        return self.life

    def follow(self) -> None:
        """What the pod's worker does each time it is woken."""
        assert self.life is not None
        known = health_of(self.life, "main", 0)
        state = ContainerSeen(Attempt(0, self.created), started=known.started, ready=known.ready, verdict=known.verdict)
        self.checks.follow(self.life, Observed(self.created, containers={"main": state}))

    def _reach(self, life: Life, name: str, _attempt: int) -> Target:
        async def run(_argv: Sequence[str], _timeout: float) -> tuple[int, bytes]:
            self.looks.append((self.clock.now() - self.created).total_seconds())
            answer = self.answers[:1] or "+"
            self.answers = self.answers[1:]
            if answer == "?":
                raise Failed("run a command", 0, "no way in")
            return NAMES[answer], b"text"

        async def none() -> Any:
            raise AssertionError("no connection is asked for")

        return Target(life.container(name), "10.88.0.2", run, none)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        made = World(clock, Told(cluster.client(), clock), tmp_path)
        yield made
        if made.life is not None:
            tasks = list(made.life.probes.values())
            made.life.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("expected", "probe"), [
    pytest.param([0, 10, 20, 30], {}, id="at once, and every ten seconds"),
    pytest.param([5, 7, 9, 11, 13], {"initialDelaySeconds": 5, "periodSeconds": 2, "until": 14}, id="as it is said"),
])
async def test_when_it_is_asked(world: World, expected: list[float], probe: dict[str, Any]) -> None:
    until = probe.pop("until", 35)
    world.begin("", readiness=probe)

    await world.clock.advance(until)

    assert expected == world.looks


async def test_a_container_that_dies_must_end(world: World) -> None:
    life = world.begin("+--+---", liveness={"periodSeconds": 1})

    await world.clock.advance(5.5)
    assert "" == health_of(life, "main", 0).verdict
    await world.clock.advance(1)

    assert "liveness" == health_of(life, "main", 0).verdict
    written = read(str(life.places.attempt("main", 0)), VERDICT) or {}
    assert "liveness" == written["verdict"]
    assert isinstance(written["at"], int)
    assert 5 * [("Unhealthy", "Liveness probe failed: text")] == world.events.said
    await world.clock.advance(60)
    assert 7 == len(world.looks), "it must end anyway, so nobody asks"


async def test_a_container_is_ready_while_it_says_so(world: World) -> None:
    life = world.begin("-+---+", readiness={"periodSeconds": 1})
    ready = []

    for _ in range(6):
        await world.clock.advance(1)
        ready.append(health_of(life, "main", 0).ready)

    assert [True, True, True, False, True, True] == ready


async def test_nothing_else_is_asked_before_it_has_started(world: World) -> None:
    life = world.begin("---+", startup={"periodSeconds": 5, "failureThreshold": 9}, liveness={}, readiness={})
    assert (False, False) == (health_of(life, "main", 0).started, health_of(life, "main", 0).ready)

    await world.clock.advance(14)
    assert [0, 5, 10] == world.looks
    await world.clock.advance(2)

    assert (True, True) == (health_of(life, "main", 0).started, health_of(life, "main", 0).ready)
    assert [0, 5, 10, 15, 15, 15] == world.looks, "once it has started, both others are asked at once"
    await world.clock.advance(10)
    assert [25, 25] == world.looks[6:]


async def test_a_container_that_never_starts_must_end(world: World) -> None:
    life = world.begin("--", startup={"periodSeconds": 1, "failureThreshold": 2})

    await world.clock.advance(2)

    assert ("startup", False) == (health_of(life, "main", 0).verdict, health_of(life, "main", 0).started)


async def test_a_question_that_cannot_be_put_is_repeated_and_counts_for_nothing(world: World) -> None:
    life = world.begin("??+???", liveness={"failureThreshold": 1})

    await world.clock.advance(1)
    assert (3, []) == (len(world.looks), world.events.said)
    await world.clock.advance(10)

    assert "" == health_of(life, "main", 0).verdict
    assert [("Unhealthy", "Liveness probe errored and resulted in unknown state: run a command: no way in")] == (
        world.events.said
    )


async def test_the_next_attempt_begins_anew(world: World) -> None:
    life = world.begin("-", liveness={"failureThreshold": 1})
    await world.clock.advance(1)
    life.places.attempt("main", 1).mkdir(parents=True)

    life.anew("main")

    assert ("liveness", "") == (
        str((read(str(life.places.attempt("main", 0)), VERDICT) or {})["verdict"]), health_of(life, "main", 1).verdict
    )


@pytest.mark.parametrize(("expected", "told"), [
    pytest.param((True, True), {"restartCount": 0, "ready": True, "started": True}, id="what was told is kept"),
    pytest.param((False, False), {"restartCount": 1, "ready": True, "started": True}, id="but not of another attempt"),
    pytest.param((True, False), {"restartCount": 0, "ready": False, "started": True}, id="nor what was not told"),
])
async def test_a_new_agent_does_not_make_ready_pods_unready(
    world: World, expected: tuple[bool, bool], told: Object
) -> None:
    life = world.begin("", startup={}, readiness={})
    life.health.clear()
    life.pod["status"] = {"containerStatuses": [{"name": "main", "state": {"running": {}}, **told}]}

    known = health_of(life, "main", 0)

    assert expected == (known.started, known.ready)


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        pytest.param(None, "liveness", id="it runs: it must end"),
        pytest.param(timedelta(seconds=1), "liveness", id="it ended after the verdict: because of it"),
        pytest.param(timedelta(seconds=-1), "", id="it had ended before: the question failed for that"),
    ],
)
def test_a_verdict_on_an_attempt_that_had_ended_is_none(ended: timedelta | None, expected: str) -> None:
    fell = datetime(2030, 1, 1, tzinfo=UTC)
    attempt = Attempt(0, fell, Exit(0, fell + ended) if ended is not None else None)

    assert expected == standing(Health(0, True, True, "liveness", fell), attempt)
