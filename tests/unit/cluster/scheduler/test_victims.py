"""Who is sent away for whom: by importance within a queue, what was borrowed between queues."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler.dialects import KUBE_BATCH, VOLCANO
from trainmaster.cluster.scheduler.settings import Settings
from trainmaster.testing.scheduling import bound, decided, evicted, gang, line, machine, members, snapshot

CLASSES = {"low": 1, "mid": 5, "high": 10}
PREEMPT, RECLAIM = Settings(preempt=True), Settings(reclaim=True)


def running(name: str, count: int, cpu: int = 1, on: str = "node", **more: Any) -> list[Object]:
    return members(name, "w", count, asks={"cpu": cpu} if cpu else {}, on=on, phase="Running", **more)


def waiting(name: str, count: int, cpu: int = 1, **more: Any) -> list[Object]:
    return members(name, "w", count, asks={"cpu": cpu} if cpu else {}, **more)


def low(name: str = "low", least: int = 1, **spec: Any) -> Object:
    return gang(name, least, phase="Running", **{"priorityClassName": "low", **spec})


def high(name: str = "high", least: int = 1, **spec: Any) -> Object:
    return gang(name, least, **{"priorityClassName": "high", **spec})


@pytest.mark.parametrize(
    ("pods", "groups", "expected"),
    [
        pytest.param([*running("low", 2), *waiting("high", 2)], [low(), high(least=2)], [],
                     id="there is room for all"),
        pytest.param([*running("low", 2), *running("going", 2, deleted=True), *waiting("high", 2)],
                     [low(), low("going"), high(least=2)], [], id="room is being given back already"),
        pytest.param([*running("low", 4), *waiting("high", 1)], [low(), high()], ["low-w-0"], id="one victim"),
        pytest.param([*running("low", 4), *waiting("high", 1, cpu=3)], [low(), high()],
                     ["low-w-0", "low-w-1", "low-w-2"], id="enough victims for one large pod"),
        pytest.param([*running("low", 1), *running("mid", 3), *waiting("high", 1, cpu=4)],
                     [low(), low("mid", priorityClassName="high"), high()], [],
                     id="the equally important stay, and for less than all nobody goes"),
        pytest.param([*running("low", 4), *waiting("high", 1)], [low(queue="other"), high()], [],
                     id="those of another queue stay"),
        pytest.param([*running("low", 4, annotations={"volcano.sh/preemptable": "false"}), *waiting("high", 1)],
                     [low(), high()], [], id="those that may not be sent away stay"),
        pytest.param([*running("low", 4), *waiting("high", 1, preemptionPolicy="Never")], [low(), high()], [],
                     id="one that sends nobody away waits"),
        pytest.param([*running("low", 4), *waiting("high", 1)],
                     [low(), high(phase="Pending", wants={"cpu": 100})], [], id="a group that is not let in waits"),
        pytest.param([*running("low", 2), *waiting("high", 1, cpu=5)], [low(), high()], [],
                     id="what is free and what could be freed are together too small"),
        pytest.param([*running("low", 4), *waiting("mid", 1), *waiting("high", 1)],
                     [low(), gang("mid", 1, priorityClassName="mid"), high()], ["low-w-0", "low-w-1"],
                     id="several that need room, each gets a place"),
        pytest.param([*running("low", 1), *waiting("mid", 1, cpu=4), *waiting("high", 1, cpu=4)],
                     [low(), gang("mid", 1, priorityClassName="mid"), high()], ["low-w-0"],
                     id="for the most important first; the next finds nobody below it"),
    ],
)
def test_preemption_within_a_queue(pods: list[Object], groups: list[Object], expected: list[str]) -> None:
    there = snapshot([machine(cpu=4)], pods, groups, [line(), line("other")], classes=CLASSES)

    assert expected == evicted(decided(there, PREEMPT))


@pytest.mark.parametrize(
    ("victim", "newcomer", "expected"),
    [
        pytest.param(0, 1, 1, id="who asks for something may send away who asks for nothing"),
        pytest.param(0, 0, 1, id="who asks for nothing may send away its like"),
        pytest.param(1, 0, 0, id="but not who asks for something"),
    ],
)
def test_places_for_pods_are_fought_over_by_those_who_ask_for_nothing(victim: int, newcomer: int,
                                                                      expected: int) -> None:
    pods = [*running("low", 2, cpu=victim), *waiting("high", 1, cpu=newcomer)]

    there = snapshot([machine(pods=2)], pods, [low(), high()], classes=CLASSES)

    assert expected == len(evicted(decided(there, PREEMPT)))


def test_only_those_on_the_chosen_node_go() -> None:
    pods = [*running("a", 2, on="n1"), *running("b", 2, on="n2"), *waiting("high", 1, cpu=2)]
    groups = [low("a"), low("b"), high()]
    there = snapshot([machine("n1", cpu=2), machine("n2", cpu=2)], pods, groups, classes=CLASSES)

    assert ["a-w-0", "a-w-1"] == evicted(decided(there, PREEMPT))


def test_nobody_goes_when_the_queue_would_still_stop_the_gang() -> None:
    pods = [*running("low", 2), *waiting("high", 1, cpu=4)]
    there = snapshot([machine(cpu=4)], pods, [low(), high()], [line(capability={"cpu": 3})], classes=CLASSES)

    assert [] == evicted(decided(there, PREEMPT))


@pytest.mark.parametrize("dialect", [VOLCANO, KUBE_BATCH], ids=lambda dialect: dialect.name)
def test_both_dialects_with_priorities(dialect: Any) -> None:
    """Preemption, several victims at once, and the more important job and pod first."""
    old = running("low", 4, dialect=dialect)
    groups = [gang("low", 1, phase="Running", dialect=dialect, priorityClassName="low"),
              gang("high", 3, dialect=dialect, priorityClassName="high")]
    there = snapshot([machine(cpu=4)], [*old, *waiting("high", 3, dialect=dialect)], groups, dialect=dialect,
                     classes=CLASSES)
    assert 3 == len(evicted(decided(there, PREEMPT)))

    fresh = [gang(name, 2, dialect=dialect, priorityClassName=name) for name in ("low", "high")]
    pods = [*waiting("low", 2, dialect=dialect), *waiting("high", 2, dialect=dialect)]
    assert {"high-w-0", "high-w-1"} == bound(decided(snapshot(
        [machine(cpu=2)], pods, fresh, dialect=dialect, classes=CLASSES))).keys()

    important = members("low", "important", 1, asks={"cpu": 1}, priority=9, dialect=dialect)
    few = [*waiting("low", 1, dialect=dialect), *important]
    assert {"low-important-0"} == bound(decided(snapshot(
        [machine(cpu=1)], few, [gang("low", 1, dialect=dialect)], dialect=dialect))).keys()


@pytest.mark.parametrize(
    ("pods", "poor", "queues", "expected"),
    [
        pytest.param(running("a", 3), {}, [line("q1"), line("q2")], 0, id="there is room"),
        pytest.param(running("a", 4), {}, [line("q1"), line("q2")], 1, id="a queue that has more gives back"),
        pytest.param(running("a", 4), {}, [line("q1", reclaimable=False), line("q2")], 0,
                     id="a queue that gives nothing back"),
        pytest.param(running("a", 4), {}, [line("q1"), line("q2", state="Closed")], 0, id="not for a closed queue"),
        pytest.param(running("a", 4), {"phase": "Pending", "wants": {"cpu": 100}}, [line("q1"), line("q2")], 0,
                     id="not for a group that is not let in"),
        pytest.param(running("a", 4), {"nodeSelector": {"disk": "ssd"}}, [line("q1"), line("q2")], 0,
                     id="not for a job that would fit on no node even then"),
    ],
)
def test_taking_back_what_was_borrowed(pods: list[Object], poor: dict[str, Any], queues: list[Object],
                                       expected: int) -> None:
    selector = {"nodeSelector": poor.pop("nodeSelector")} if "nodeSelector" in poor else {}
    groups = [gang("a", 1, queue="q1", phase="Running"), gang("b", 1, queue="q2", **poor)]

    there = snapshot([machine(cpu=4)], [*pods, *waiting("b", 1, **selector)], groups, queues)

    assert expected == len(evicted(decided(there, RECLAIM)))


def test_what_is_free_on_the_node_is_used_before_anybody_goes() -> None:
    pods = [*running("a", 3), *waiting("b", 1, cpu=2)]
    groups = [gang("a", 1, queue="q1", phase="Running"), gang("b", 1, queue="q2")]

    assert 1 == len(evicted(decided(snapshot([machine(cpu=4)], pods, groups, [line("q1"), line("q2")]), RECLAIM)))
