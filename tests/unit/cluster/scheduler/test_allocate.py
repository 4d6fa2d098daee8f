"""Who may make pods, who is tried next, and a whole gang or nothing: the small cases, one row each."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler.dialects import COSCHEDULING, DIALECTS, KUBE_BATCH, Dialect
from trainmaster.cluster.scheduler.settings import Settings
from trainmaster.testing.scheduling import (
    bound,
    decided,
    gang,
    line,
    machine,
    member,
    members,
    phases,
    single,
    snapshot,
)

GATE: dict[str, Any] = {"schedulingGates": [{"name": "later"}]}


def workers(name: str, count: int, cpu: int = 1, **more: Any) -> list[Object]:
    return members(name, "w", count, asks={"cpu": cpu} if cpu else {}, **more)


@pytest.mark.parametrize(
    ("pods", "groups", "expected"),
    [
        pytest.param(workers("a", 2, nodeSelector={"disk": "ssd"}), [gang("a", 2)], [],
                     id="no node has what the selector wants"),
        pytest.param([*workers("a", 2), member("a", "far", 0, asks={"cpu": 1}, nodeSelector={"disk": "ssd"})],
                     [gang("a", 2)], ["a-w-0", "a-w-1"], id="some fit nowhere, the others are enough"),
        pytest.param(workers("a", 2), [gang("a", 2)], ["a-w-0", "a-w-1"], id="one job, two pods, one node"),
        pytest.param(workers("a", 1), [gang("a", 1, phase="Pending", wants={"cpu": 100})], [],
                     id="a group that is not let in gets nothing"),
        pytest.param(workers("a", 2, **GATE), [gang("a", 2)], [], id="gated pods wait"),
        pytest.param([*workers("a", 2), member("a", "gated", 0, **GATE)], [gang("a", 2)], ["a-w-0", "a-w-1"],
                     id="one gated pod more than needed holds nobody"),
        pytest.param([*workers("a", 2), member("a", "small", 0)], [gang("a", 3)], ["a-small-0", "a-w-0", "a-w-1"],
                     id="members that ask for nothing and members that do"),
        pytest.param([*workers("full", 4, on="node", phase="Running"), *workers("a", 2, cpu=0)],
                     [gang("full", 4, phase="Running"), gang("a", 2)], ["a-w-0", "a-w-1"],
                     id="who asks for nothing finds a place on a full node"),
        pytest.param(workers("a", 2, cpu=0), [gang("a", 2, phase="Pending", wants={"cpu": 100})], [],
                     id="who asks for nothing waits for being let in, too"),
        pytest.param([member("a", "big", 0, asks={"cpu": 3}), *workers("a", 1)], [gang("a", 2)], ["a-big-0", "a-w-0"],
                     id="different requests in one gang"),
        pytest.param([*workers("a", 3, cpu=2), *workers("b", 2)], [gang("a", 3), gang("b", 2)], ["b-w-0", "b-w-1"],
                     id="what was tried for one is free again for the next"),
    ],
)
def test_what_is_bound(pods: list[Object], groups: list[Object], expected: list[str]) -> None:
    assert expected == sorted(bound(decided(snapshot([machine(cpu=4)], pods, groups))))


def test_an_important_queue_whose_jobs_fit_nowhere_holds_nobody() -> None:
    pods = [*workers("a", 1, nodeSelector={"disk": "ssd"}), *workers("b", 1)]
    groups = [gang("a", 1, queue="first"), gang("b", 1, queue="second")]

    found = decided(snapshot([machine(cpu=4)], pods, groups, [line("first", priority=10), line("second")]))

    assert {"b-w-0"} == bound(found).keys()


def test_a_queue_that_has_its_share_is_not_served() -> None:
    pods = [*workers("a", 2, on="node", phase="Running"), *workers("a2", 1), *workers("b", 2)]
    groups = [gang("a", 1, queue="q1", phase="Running"), gang("a2", 1, queue="q1"), gang("b", 1, queue="q2")]

    found = decided(snapshot([machine(cpu=4)], pods, groups, [line("q1"), line("q2")]))

    assert {"b-w-0", "b-w-1"} == bound(found).keys()


def test_who_asks_for_nothing_is_placed_in_the_order_of_queues_jobs_and_pods() -> None:
    pods = [*workers("late", 1, cpu=0), *workers("first", 2, cpu=0), *workers("second", 1, cpu=0)]
    groups = [gang("late", 1, queue="other"), gang("first", 2, queue="important", priorityClassName="high"),
              gang("second", 1, queue="important")]
    queues = [line("other"), line("important", priority=5)]

    for places, expected in [(1, {"second"}), (2, {"first"}), (3, {"first", "second"})]:
        there = snapshot([machine(pods=places)], pods, groups, queues, classes={"high": 9})
        assert expected == {name.rpartition("-w-")[0] for name in bound(decided(there))}, places


@pytest.mark.parametrize(
    ("groups", "pods", "queues", "expected"),
    [
        pytest.param([gang("a", 1, phase="Pending")], [], [line()], {"a": "Inqueue"}, id="nothing is in the way"),
        pytest.param([gang("a", 2, wants={"cpu": 100})], workers("a", 1), [line()], {"a": "Inqueue"},
                     id="who was let in is not sent back"),
        pytest.param([gang("a", 1, wants={"cpu": 100})], [], [line()], {"a": "Pending"},
                     id="unless it made no pods and there is no room any more"),
        pytest.param([gang("a", 1, wants={"cpu": 1}), gang("b", 1, phase="Pending", wants={"cpu": 100})], [], [line()],
                     {"a": "Inqueue", "b": "Pending"}, id="who was let in first keeps what was promised"),
        pytest.param([gang("a", 1, phase="Running", wants={"cpu": 100})],
                     workers("a", 1, on="node", phase="Running"), [line()], {"a": "Running"},
                     id="who runs is left alone"),
        pytest.param([gang("a", 1, phase="Pending")], [], [], {"a": "Pending"}, id="the queue is not there"),
        pytest.param([gang("a", 1, phase="Pending", wants={"cpu": 3})], [], [line(capability={"cpu": 2})],
                     {"a": "Pending"}, id="the queue may not have so much"),
        pytest.param([gang("a", 1, phase="Pending", wants={"gpu": 1}), gang("b", 1, phase="Pending", wants={"cpu": 1})],
                     workers("full", 4, on="node", phase="Running"), [line()], {"a": "Pending", "b": "Pending"},
                     id="each is measured by what it asks for, and lacks it"),
        pytest.param([gang("b", 1, phase="Pending", wants={"memory": "1Gi"})],
                     workers("full", 4, on="node", phase="Running"), [line()], {"b": "Inqueue"},
                     id="each is measured by what it asks for, the rest may be used up"),
        pytest.param([gang("a", 1, wants={"cpu": 4}), gang("b", 1, phase="Pending", wants={"cpu": 4})], [], [line()],
                     {"a": "Inqueue", "b": "Pending"}, id="what was promised counts"),
        pytest.param([gang("a", 4, phase="Running", wants={"cpu": 4}), gang("b", 1, phase="Pending", wants={"cpu": 4})],
                     workers("a", 4, on="node", phase="Succeeded"), [line()], {"a": "Completed", "b": "Inqueue"},
                     id="what a finished group had is promised to nobody"),
        pytest.param([gang("a", 1, wants={"cpu": 4}), gang("b", 1, phase="Pending", wants={"cpu": 4})],
                     workers("a", 4, **GATE), [line()], {"a": "Inqueue", "b": "Inqueue"},
                     id="what gated pods would need is promised to nobody"),
    ],
)
def test_who_may_make_pods(groups: list[Object], pods: list[Object], queues: list[Object],
                           expected: dict[str, str]) -> None:
    assert expected == phases(decided(snapshot([machine(cpu=4)], pods, groups, queues)))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        pytest.param(2, [], id="too little for either"),
        pytest.param(4, ["a"], id="room for one"),
        pytest.param(6, ["a", "b"], id="room for both"),
    ],
)
def test_every_dialect_starts_gangs_whole(dialect: Dialect, cpus: int, expected: list[str]) -> None:
    """The pods of the two gangs alternate, as they come when two controllers make them at once."""
    pods = [pod for index in range(3) for name in "ab" for pod in workers(name, 3, dialect=dialect)[index:index + 1]]
    groups = [gang(name, 3, dialect=dialect) for name in "ab"]

    found = bound(decided(snapshot([machine(cpu=cpus)], pods, groups, dialect=dialect)))

    assert [f"{name}-w-{index}" for name in expected for index in range(3)] == sorted(found)


def test_kube_batch_lets_pods_be_made_before_there_is_room() -> None:
    """Where nothing decides who may make pods, jobs run all the same."""
    pods = workers("a", 2, dialect=KUBE_BATCH)
    group = gang("a", 2, dialect=KUBE_BATCH, phase="Pending", wants={"cpu": 100})

    assert 2 == len(bound(decided(snapshot([machine(cpu=4)], pods, [group], dialect=KUBE_BATCH))))


def together(name: str, count: int, cpu: int = 1, **more: Any) -> list[Object]:
    """Pods of scheduler-plugins."""
    return workers(name, count, cpu, dialect=COSCHEDULING, **more)


@pytest.mark.parametrize(
    ("pods", "groups", "expected"),
    [
        pytest.param([*together("a", 3), *together("b", 2)], [("a", 3), ("b", 3)], {"a": 3},
                     id="one has all its members, the other not"),
        pytest.param([*together("a", 3), *together("b", 3, priority=10)], [("a", 3), ("b", 3)], {"b": 3},
                     id="the pods' priority is the group's"),
        pytest.param([*together("a", 3), *(single(f"s-{n}", asks={"cpu": 1}) for n in range(3))], [("a", 3)],
                     {"a": 3, "s": 1}, id="beside three pods of nobody"),
        pytest.param([*together("a", 6), *together("b", 2)], [("a", 6), ("b", 2)], {"b": 2},
                     id="a group that does not fit lets the next one pass"),
        pytest.param([*together("a", 2), *together("a", 3, **GATE)[2:]], [("a", 2)], {"a": 2},
                     id="gated pods beyond those needed"),
        pytest.param([*together("a", 2), *together("a", 3, **GATE)[2:]], [("a", 3)], {}, id="a gated pod is needed"),
        pytest.param(together("a", 3, **GATE), [("a", 2)], {}, id="all are gated"),
        pytest.param(together("a", 2), [], {}, id="a group that is not there"),
        pytest.param(together("a", 2), [("a", 3)], {}, id="too few pods"),
    ],
)
def test_scheduler_plugins(pods: list[Object], groups: list[tuple[str, int]], expected: dict[str, int]) -> None:
    made = [gang(name, least, dialect=COSCHEDULING, phase="") for name, least in groups]

    found = bound(decided(snapshot([machine(cpu=4)], pods, made, dialect=COSCHEDULING)))

    assert expected == {job: sum(1 for name in found if name.startswith(f"{job}-")) for job in expected}
    assert sum(expected.values()) == len(found)


@pytest.mark.parametrize(
    ("wants", "running", "expected"),
    [
        pytest.param(4, 0, None, id="there is so much"),
        pytest.param(6, 0, "resource gap: cpu: 2", id="there is less"),
        pytest.param(4, 2, None, id="what its own pods hold counts for it"),
    ],
)
def test_the_resources_of_a_group_of_scheduler_plugins(wants: int, running: int, expected: str | None) -> None:
    pods = [*together("a", running, on="node", phase="Running"), *together("a", 3)[running:]]
    group = gang("a", 3, dialect=COSCHEDULING, phase="", wants={"cpu": wants})

    decision = decided(snapshot([machine(cpu=4)], pods, [group], dialect=COSCHEDULING))

    assert ({expected} if expected else set()) == {waiting.message for waiting in decision.waiting}
    assert (0 if expected else 3 - running) == len(bound(decision))


@pytest.mark.parametrize(
    ("before", "least", "pods", "expected"),
    [
        pytest.param("", 2, [], "Pending", id="nobody there"),
        pytest.param("Pending", 2, ["Pending", "Pending"], "Scheduling", id="enough pods"),
        pytest.param("Scheduling", 2, ["Running", "Pending"], "Scheduling", id="one of two runs"),
        pytest.param("Scheduling", 2, ["Running", "Running"], "Running", id="both run"),
        pytest.param("Running", 2, ["Running", "Succeeded"], "Running", id="one is done"),
        pytest.param("Running", 2, ["Succeeded", "Succeeded"], "Finished", id="both are done"),
        pytest.param("Running", 2, ["Running", "Failed"], "Failed", id="one failed"),
        pytest.param("Running", 2, ["Running"], "Pending", id="one is gone"),
        pytest.param("Finished", 2, [], "Finished", id="finished stays when the pods are gone"),
        pytest.param("Failed", 2, ["Failed", "Succeeded"], "Failed", id="failed stays"),
        pytest.param("Finished", 2, ["Pending", "Pending"], "Scheduling", id="finished, and made anew"),
        pytest.param("Failed", 2, ["Running", "Running"], "Running", id="failed, and made anew"),
    ],
)
def test_phases_of_scheduler_plugins(before: str, least: int, pods: list[str], expected: str) -> None:
    there = [member("a", "w", index, dialect=COSCHEDULING, phase=phase, on="" if phase == "Pending" else "node")
             for index, phase in enumerate(pods)]
    group = gang("a", least, dialect=COSCHEDULING, phase=before)

    assert {"a": expected} == phases(decided(snapshot([machine()], there, [group], dialect=COSCHEDULING)))


@pytest.mark.parametrize("pool", [
    pytest.param("1", id="three groups for one node, of which one can start"),
    pytest.param("3", id="three groups for nodes that are not there"),
])
def test_what_was_promised_for_one_pool_of_nodes_does_not_hold_up_another(pool: str) -> None:
    nodes = [machine("one", cpu=4, labels={"pool": "1"}), machine("two", cpu=4, labels={"pool": "2"})]
    groups = [gang(f"a{i}", 4, wants={"cpu": 4}) for i in range(3)]
    pods = [pod for i in range(3) for pod in workers(f"a{i}", 4, nodeSelector={"pool": pool})]
    groups.append(gang("b", 4, phase="Pending", wants={"cpu": 4}))

    assert "Inqueue" == phases(decided(snapshot(nodes, pods, groups)))["b"]


@pytest.mark.parametrize(("settings", "running", "queues", "expected"), [
    pytest.param(Settings(), {}, [line("a"), line("b")], "Pending", id="nothing could be freed"),
    pytest.param(Settings(reclaim=True), {}, [line("a"), line("b")], "Inqueue", id="what another queue has too much"),
    pytest.param(Settings(reclaim=True), {}, [line("a", reclaimable=False), line("b")], "Pending",
                 id="not what another gives to nobody"),
    pytest.param(Settings(preempt=True), {"queue": "b"}, [line("b")], "Inqueue",
                 id="what lesser gangs of its queue have"),
    pytest.param(Settings(preempt=True), {"queue": "b", "priorityClassName": "high"}, [line("b")], "Pending",
                 id="not what the equally important have"),
])
def test_who_could_send_others_away_is_let_in_for_it(settings: Settings, running: dict[str, Any], queues: list[Object],
                                                     expected: str) -> None:
    groups = [gang(f"x{i}", 1, phase="Running", **{"queue": "a", **running}) for i in range(4)]
    pods = [pod for i in range(4) for pod in workers(f"x{i}", 1, on="node", phase="Running")]
    late = gang("late", 2, phase="Pending", wants={"cpu": 2}, queue="b", priorityClassName="high")
    there = snapshot([machine(cpu=4)], pods, [*groups, late], queues, classes={"high": 10})

    assert expected == phases(decided(there, settings))["late"]


@pytest.mark.parametrize(("strategy", "expected"), [
    pytest.param("fifo", set(), id="strictly in order: who cannot start holds those behind it"),
    pytest.param("traverse", {"small-w-0"}, id="whoever fits"),
    pytest.param(None, {"small-w-0"}, id="which is the rule when nothing is said"),
])
def test_a_queue_may_let_nobody_overtake(strategy: str | None, expected: set[str]) -> None:
    queue = line(**({"dequeueStrategy": strategy} if strategy else {}))
    groups = [gang("big", 5, created="2026-01-01T11:00:00Z"), gang("small", 1)]

    found = bound(decided(snapshot([machine(cpu=4)], [*workers("big", 5), *workers("small", 1)], groups, [queue])))

    assert expected == set(found)


@pytest.mark.parametrize(("pods", "phase"), [
    pytest.param([], "Inqueue", id="nobody there"),
    pytest.param(workers("a", 1, on="node", phase="Running"), "Running", id="somebody runs"),
])
def test_a_group_that_asks_for_nobody_is_not_over_before_it_began(pods: list[Object], phase: str) -> None:
    assert {"a": phase} == phases(decided(snapshot([machine(cpu=4)], pods, [gang("a", 0, phase="Inqueue")])))


def test_a_group_of_scheduler_plugins_holds_no_room_while_it_waits_so_no_time_is_needed_to_give_it_back() -> None:
    """`scheduleTimeoutSeconds` ends what is held at Permit, and a back-off lets the next pass. Here nothing is held."""
    waits = gang("big", 5, dialect=COSCHEDULING, phase="Scheduling", scheduleTimeoutSeconds=1)
    fits = gang("fits", 4, dialect=COSCHEDULING, phase="Scheduling")
    pods = [*workers("big", 5, dialect=COSCHEDULING), *workers("fits", 4, dialect=COSCHEDULING)]

    found = bound(decided(snapshot([machine(cpu=4)], pods, [waits, fits], dialect=COSCHEDULING)))

    assert {f"fits-w-{index}" for index in range(4)} == set(found)
