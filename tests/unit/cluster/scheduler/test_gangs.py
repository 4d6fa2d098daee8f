"""Whole trains or none: the reference cases of gang scheduling, with their words."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler.census import census_of
from trainmaster.cluster.scheduler.dialects import COSCHEDULING, KUBE_BATCH, VOLCANO, group_of, read_group
from trainmaster.cluster.scheduler.gangs import Gang
from trainmaster.cluster.scheduler.reasons import Code
from trainmaster.cluster.scheduler.settings import Decision, Settings, Verdict
from trainmaster.cluster.scheduler.snapshot import read_pod
from trainmaster.testing.scheduling import (
    bound,
    decided,
    evicted,
    gang,
    line,
    machine,
    member,
    members,
    phases,
    snapshot,
)

JOB = "dist-mnist-for-e2e-test"


def mnist(**more: Any) -> list[Object]:
    """Two parameter servers that ask for nothing, four workers with a GPU each."""
    return [*members(JOB, "ps", 2, **more), *members(JOB, "worker", 4, asks={"gpu": 1}, **more)]


def verdict(decision: Decision, name: str = JOB) -> Verdict:
    return next(each for each in decision.verdicts if each.group.key.key.name == name)


def said(decision: Decision) -> dict[str, str]:
    return {waiting.pod.name: waiting.message for waiting in decision.waiting}


def test_a_group_that_cannot_fit_is_not_let_in_and_makes_no_pods() -> None:
    decision = decided(snapshot([machine(gpu=1)], [], [gang(JOB, 6, phase="", wants={"gpu": 4})]))

    found = verdict(decision)
    assert "Pending" == found.phase
    unready = "0/0 tasks in gang unschedulable: pod group is not ready, 6 minAvailable"
    assert [("Normal", "Unschedulable", "resource in cluster is overused: overused nvidia.com/gpu"),
            ("Warning", "Unschedulable", unready)] == [
                (each.type, each.reason, each.message) for each in found.events]
    assert (None, Code.CLUSTER_FULL) == (found.condition, found.why and found.why.code)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        pytest.param(3, "Pending", id="3 GPUs are 3.6 with the factor, less than 4"),
        pytest.param(4, "Inqueue", id="4 GPUs are enough"),
        pytest.param(10, "Inqueue", id="more than enough"),
    ],
)
def test_the_factor_of_overcommitment(gpus: int, expected: str) -> None:
    assert {JOB: expected} == phases(decided(snapshot([machine(gpu=gpus)], [],
                                                      [gang(JOB, 6, phase="", wants={"gpu": 4})])))


def test_exactly_at_the_factor_passes_and_what_is_promised_counts() -> None:
    groups = [gang("a", 1, phase="", wants={"cpu": 6}), gang("b", 1, phase="", wants={"cpu": 6}),
              gang("c", 1, phase="", wants={"cpu": 1})]

    assert {"a": "Inqueue", "b": "Inqueue", "c": "Pending"} == phases(decided(snapshot([machine(cpu=10)], [], groups)))


def test_all_start_in_one_decision_when_all_fit() -> None:
    decision = decided(snapshot([machine(gpu=4)], mnist(), [gang(JOB, 6, wants={"gpu": 4})]))

    assert 6 == len(bound(decision))
    assert "Running" == verdict(decision).phase
    assert [("Normal", "Scheduled", "pod group is ready")] == [
        (each.type, each.reason, each.message) for each in verdict(decision).events]


def test_none_starts_when_one_does_not_fit_and_each_is_told_what_it_waits_for() -> None:
    decision = decided(snapshot([machine("n1", gpu=1)], mnist(), [gang(JOB, 6)]))

    assert {} == bound(decision)
    found = verdict(decision)
    assert "Inqueue" == found.phase
    detail = ("pod group is not ready, 2 Allocated, 4 Pending, 6 minAvailable; Pending: 1 Schedulable, "
              f"3 Unschedulable. Origin reason is {JOB}-worker-1: "
              "0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu.")
    assert found.condition is not None
    assert ("Unschedulable", "NotEnoughResources", f"3/6 tasks in gang unschedulable: {detail}") == (
        found.condition.type, found.condition.reason, found.condition.message)
    assert [("Warning", "Unschedulable", f"4/6 tasks in gang unschedulable: {detail}")] == [
        (each.type, each.reason, each.message) for each in found.events]
    maybe = "Pod default/{} can possibly be assigned to n1, once minAvailable is satisfied"
    assert {
        f"{JOB}-worker-0": maybe.format(f"{JOB}-worker-0"),
        f"{JOB}-worker-1": "0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu.",
        f"{JOB}-worker-2": f"Task {JOB}-worker-2 with role spec worker has already predicated failed, skip",
        f"{JOB}-worker-3": f"Task {JOB}-worker-3 with role spec worker has already predicated failed, skip",
        f"{JOB}-ps-0": maybe.format(f"{JOB}-ps-0"),
        f"{JOB}-ps-1": maybe.format(f"{JOB}-ps-1"),
    } == said(decision)
    assert found.why is not None
    assert (Code.NO_NODE_FITS, 3, {"nvidia.com/gpu": 3000}) == (found.why.code, found.why.fitting, found.why.short)


def test_kube_batch_says_it_in_its_own_words() -> None:
    pods = members("tfjob-group", "worker", 6, dialect=KUBE_BATCH)
    group = gang("tfjob-group", 6, dialect=KUBE_BATCH, phase="")

    enough = decided(snapshot([machine(pods=6)], pods, [group], dialect=KUBE_BATCH))
    short = decided(snapshot([machine(pods=5)], pods, [group], dialect=KUBE_BATCH))

    assert 6 == len(bound(enough))
    assert {"tfjob-group": "Running"} == phases(enough)
    assert {} == bound(short)
    condition = verdict(short, "tfjob-group").condition
    assert condition is not None
    assert "1/6 tasks in gang unschedulable: 0 nodes are available" == condition.message


def test_coscheduling_has_phases_of_its_own() -> None:
    pods = members("g", "worker", 2, dialect=COSCHEDULING, asks={"cpu": 1})

    few = decided(snapshot([machine()], pods, [gang("g", 3, dialect=COSCHEDULING, phase="")], dialect=COSCHEDULING))
    enough = decided(snapshot([machine()], pods, [gang("g", 2, dialect=COSCHEDULING, phase="")], dialect=COSCHEDULING))

    assert ({}, {"g": "Pending"}) == (bound(few), phases(few))
    assert "pre-filter pod g-worker-0 cannot find enough sibling pods, current pods number: 2, minMember of group: 3" \
        == said(few)["g-worker-0"]
    assert (2, {"g": "Scheduling"}) == (len(bound(enough)), phases(enough))


def test_two_gangs_of_three_on_four_gpus_run_one_after_the_other() -> None:
    a, b = members("a", "w", 3, asks={"gpu": 1}), members("b", "w", 3, asks={"gpu": 1})
    groups = [gang("a", 3), gang("b", 3)]

    assert {"a-w-0", "a-w-1", "a-w-2"} == bound(decided(snapshot([machine(gpu=4)], [*a, *b], groups))).keys()
    running = members("a", "w", 3, asks={"gpu": 1}, on="node", phase="Running")
    assert {} == bound(decided(snapshot([machine(gpu=4)], [*running, *b], groups)))
    ended = members("a", "w", 3, asks={"gpu": 1}, on="node", phase="Succeeded")
    after = decided(snapshot([machine(gpu=4)], [*ended, *b], groups))
    assert {"b-w-0", "b-w-1", "b-w-2"} == bound(after).keys()
    assert {"a": "Completed", "b": "Running"} == phases(after)


def test_members_are_placed_in_order_and_a_cleverer_placement_is_not_looked_for() -> None:
    """The first takes a third of the free piece that the second needs whole, though another node would do for it. The
    reason stays true: with what it says is short, the gang starts."""
    nodes = [machine("a", gpu=4), machine("b", gpu=2)]
    pods = [*members("old", "w", 1, asks={"gpu": 1}, on="a", phase="Running"),
            member("g", "w", 0, asks={"gpu": 1}), member("g", "w", 1, asks={"gpu": 3})]
    groups = [gang("old", 1, phase="Running"), gang("g", 2)]

    decision = decided(snapshot(nodes, pods, groups))

    why = verdict(decision, "g").why
    assert ({}, {"nvidia.com/gpu": 3000}, True) == (bound(decision), why and why.short, why and why.ever)
    assert {"g-w-0", "g-w-1"} == bound(decided(snapshot([*nodes, machine("c", gpu=3)], pods, groups))).keys()


def test_more_members_than_the_minimum_come_as_far_as_there_is_room() -> None:
    decision = decided(snapshot([machine(gpu=3)], members("a", "w", 4, asks={"gpu": 1}), [gang("a", 2)]))

    assert (["a-w-0", "a-w-1", "a-w-2"], {"a": "Running"}) == (sorted(bound(decision)), phases(decision))


def test_a_gang_with_too_few_pods_says_so() -> None:
    decision = decided(snapshot([machine()], members("a", "w", 5), [gang("a", 6)]))

    assert {} == bound(decision)
    condition = verdict(decision, "a").condition
    assert condition is not None
    assert ("NotEnoughTasks", "Not enough valid tasks for gang-scheduling, valid: 5, min: 6") == (
        condition.reason, condition.message)


def test_equal_jobs_share_by_dominant_share() -> None:
    """9 CPU and 18 GB; one job's pods are heavy in memory, the other's in CPU."""
    a, b = members("a", "w", 9, asks={"cpu": 1, "memory": "4G"}), members("b", "w", 9, asks={"cpu": 3, "memory": "1G"})

    found = bound(decided(snapshot([machine(cpu=9, memory="18G")], [*a, *b], [gang("a", 1), gang("b", 1)])))

    assert (3, 2) == tuple(sum(1 for name in found if name.startswith(job)) for job in "ab")


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param(8, (2, 6), id="weights 1 and 3, both want all of 8 CPU"),
        pytest.param(1, (7, 1), id="the second wants one, the first gets the rest"),
    ],
)
def test_queues_share_by_weight(second: int, expected: tuple[int, int]) -> None:
    a, b = members("a", "w", 8, asks={"cpu": 1}), members("b", "w", second, asks={"cpu": 1})
    groups = [gang("a", 1, queue="q1"), gang("b", 1, queue="q2")]
    queues = [line("q1", weight=1), line("q2", weight=3)]

    found = bound(decided(snapshot([machine(cpu=8)], [*a, *b], groups, queues)))

    assert expected == tuple(sum(1 for name in found if name.startswith(job)) for job in "ab")


def test_one_gpu_for_two_equal_queues_goes_to_one_of_them() -> None:
    pods = [*members("a", "w", 1, asks={"gpu": 1}), *members("b", "w", 1, asks={"gpu": 1})]
    groups = [gang("a", 1, queue="q1"), gang("b", 1, queue="q2")]

    found = bound(decided(snapshot([machine(gpu=1)], pods, groups, [line("q1"), line("q2")])))

    assert {"a-w-0"} == found.keys(), "half a device each would be nothing for anybody"


@pytest.mark.parametrize(
    ("queues", "code"),
    [
        pytest.param([], Code.QUEUE_MISSING, id="a queue that does not exist"),
        pytest.param([line("default", state="Closed")], Code.QUEUE_CLOSED, id="a queue that is closed"),
        pytest.param([line("default", capability={"cpu": 1})], Code.QUEUE_FULL, id="a queue that may not have so much"),
    ],
)
def test_queues_that_start_nothing_are_named(queues: list[Object], code: Code) -> None:
    decision = decided(snapshot([machine()], members("a", "w", 2, asks={"cpu": 1}), [gang("a", 2)], queues))

    why = verdict(decision, "a").why
    assert ({}, code) == (bound(decision), why and why.code)


def test_a_running_group_whose_pods_are_all_gone_is_pending() -> None:
    assert {"a": "Pending"} == phases(decided(snapshot([machine()], [], [gang("a", 2, phase="Running", wants={
        "cpu": 1000})])))


def test_a_gang_that_lost_a_member_comes_before_new_ones() -> None:
    running = members("a", "w", 2, asks={"gpu": 1}, on="node", phase="Running")
    back = members("a", "w", 3, asks={"gpu": 1})[2:]
    fresh = members("b", "w", 1, asks={"gpu": 1})
    groups = [gang("b", 1, created="2026-01-01T00:00:00Z"), gang("a", 3, phase="Running")]

    assert {"a-w-2"} == bound(decided(snapshot([machine(gpu=3)], [*running, *back, *fresh], groups))).keys()


def test_a_broken_running_gang_that_cannot_be_whole_is_unknown() -> None:
    running = members("a", "w", 2, asks={"gpu": 1}, on="node", phase="Running")
    back = members("a", "w", 3, asks={"gpu": 1})[2:]

    assert {"a": "Unknown"} == phases(decided(snapshot([machine(gpu=2)], [*running, *back],
                                                       [gang("a", 3, phase="Running")])))


def test_members_on_their_way_out_keep_the_phase() -> None:
    going = members("a", "w", 2, on="node", phase="Running", deleted=True)

    assert {"a": "Running"} == phases(decided(snapshot([machine()], going, [gang("a", 2, phase="Running")])))


@pytest.mark.parametrize(
    ("switched", "least", "expected"),
    [
        pytest.param(False, 2, [], id="nobody is sent away unless it is switched on"),
        pytest.param(True, 2, ["low-w-0", "low-w-1"], id="the whole gang goes, half of it would be of no use"),
        pytest.param(True, 3, [], id="nobody is sent away for a gang that would not fit even then"),
    ],
)
def test_gang_preemption(switched: bool, least: int, expected: list[str]) -> None:
    low = members("low", "w", 2, asks={"gpu": 1}, on="node", phase="Running")
    high = members("high", "w", least, asks={"gpu": 1})
    groups = [gang("low", 2, phase="Running"), gang("high", least, priorityClassName="high")]

    decision = decided(snapshot([machine(gpu=2)], [*low, *high], groups, classes={"high": 100}),
                       Settings(preempt=switched))

    assert (expected, {}) == (evicted(decision), bound(decision))


def test_a_queue_takes_back_what_it_deserves() -> None:
    greedy = members("a", "w", 4, asks={"gpu": 1}, on="node", phase="Running")
    poor = members("b", "w", 2, asks={"gpu": 1})
    groups = [gang("a", 1, queue="q1", phase="Running"), gang("b", 2, queue="q2")]
    queues = [line("q1"), line("q2")]

    there = snapshot([machine(gpu=4)], [*greedy, *poor], groups, queues)

    assert [] == evicted(decided(there))
    assert 2 == len(evicted(decided(there, Settings(reclaim=True))))
    fixed = [line("q1", reclaimable=False), line("q2")]
    assert [] == evicted(decided(snapshot([machine(gpu=4)], [*greedy, *poor], groups, fixed), Settings(reclaim=True)))


def test_room_that_is_being_given_back_is_kept_for_the_gang_that_waits_for_it() -> None:
    going = members("old", "w", 2, asks={"gpu": 1}, on="node", phase="Running", deleted=True)
    waits, small = members("a", "w", 4, asks={"gpu": 1}), members("b", "w", 1, asks={"gpu": 1})
    groups = [gang("old", 2, phase="Running"), gang("a", 4), gang("b", 1)]

    decision = decided(snapshot([machine(gpu=4)], [*going, *waits, *small], groups))

    assert {} == bound(decision), "two GPUs are free, but the older gang of four needs them in a moment"
    why = verdict(decision, "a").why
    assert Code.BEING_FREED is (why and why.code)


def test_who_has_waited_too_long_is_not_overtaken_for_ever() -> None:
    running = members("r", "w", 1, asks={"gpu": 1}, on="node", phase="Running")
    big, small = members("big", "w", 4, asks={"gpu": 1}), members("small", "w", 1, asks={"gpu": 1})
    groups = [gang("r", 1, phase="Running"), gang("big", 4, created="2026-01-01T11:00:00Z"), gang("small", 1)]

    there = snapshot([machine(gpu=4)], [*running, *big, *small], groups)

    assert {"small-w-0"} == bound(decided(there, Settings(patience=0))).keys()
    assert {} == bound(decided(there, Settings(patience=600)))


def test_a_job_that_would_not_fit_the_empty_cluster_never_blocks_others() -> None:
    big, small = members("big", "w", 8, asks={"gpu": 1}), members("small", "w", 1, asks={"gpu": 1})
    groups = [gang("big", 8, created="2026-01-01T01:00:00Z"), gang("small", 1)]

    decision = decided(snapshot([machine(gpu=4)], [*big, *small], groups))

    assert {"small-w-0"} == bound(decision).keys()
    why = verdict(decision, "big").why
    assert why is not None
    assert not why.ever


def test_roles_have_minima_of_their_own() -> None:
    pods = [*members("a", "master", 1, asks={"gpu": 4}), *members("a", "worker", 3, asks={"gpu": 1})]
    with_master = gang("a", 3, minTaskMember={"master": 1, "worker": 2})

    assert {} == bound(decided(snapshot([machine(gpu=3)], pods, [with_master])))
    assert 3 == len(bound(decided(snapshot([machine(gpu=3)], pods, [gang("a", 3)]))))


def test_a_pod_that_names_a_group_which_is_not_there_is_told() -> None:
    assert 'PodGroup "a" not found in namespace default; create it, or correct the pod' in said(
        decided(snapshot([machine()], members("a", "w", 1))))["a-w-0"]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param(["Succeeded", "Succeeded"], "Completed", id="all are done"),
        pytest.param(["Failed", "Failed"], "Completed", id="all failed"),
        pytest.param(["Succeeded", "Failed"], "Completed", id="both ways"),
        pytest.param(["Succeeded", "Running"], "Running", id="one still runs"),
    ],
)
def test_the_phase_of_a_gang_that_ends(states: list[str], expected: str) -> None:
    pods = [member("a", "w", index, on="node", phase=state) for index, state in enumerate(states)]

    assert {"a": expected} == phases(decided(snapshot([machine()], pods, [gang("a", 2, phase="Running")])))


@pytest.mark.parametrize(
    ("states", "roles", "expected"),
    [
        pytest.param(["Pending", "Pending"], {}, (False, True, False), id="all wait"),
        pytest.param(["Bound", "Running"], {}, (True, True, False), id="bound is as good as running"),
        pytest.param(["Running", "Succeeded"], {}, (True, True, True), id="who is done counts, but holds nothing"),
        pytest.param(["Running", "Failed"], {}, (False, False, True), id="who failed does not count"),
        pytest.param(["Running", "Releasing"], {}, (False, False, True), id="nor who is on its way out"),
        pytest.param(["Running", "Gated"], {}, (False, False, True), id="nor who may not be placed yet"),
        pytest.param(["Running", "Pending"], {}, (False, True, True), id="one is missing"),
        pytest.param(["Running", "Running"], {"w": 2}, (True, True, False), id="enough of a role"),
        pytest.param(["Running", "Running"], {"w": 1, "x": 1}, (False, False, False), id="none of another role"),
        pytest.param(["Running", "Running"], {"w": 1, "x": 2}, (True, True, False),
                     id="roles that ask for more than the gang are not asked"),
    ],
)
def test_what_counts(states: list[str], roles: dict[str, int], expected: tuple[bool, bool, bool]) -> None:
    """Whether a gang of two is ready, could be, and has lost somebody."""
    more: dict[str, dict[str, Any]] = {
        "Bound": {"on": "node"}, "Running": {"on": "node", "phase": "Running"}, "Pending": {},
        "Succeeded": {"on": "node", "phase": "Succeeded"}, "Failed": {"on": "node", "phase": "Failed"},
        "Releasing": {"on": "node", "phase": "Running", "deleted": True}, "Gated": {"schedulingGates": [{"name": "g"}]}}
    pods = [read_pod(raw, group_of(raw)) for raw in (member("a", "w", index, **more[state])
                                                     for index, state in enumerate(states))]
    found = Gang(read_group(gang("a", 2, minTaskMember=roles), VOLCANO), census_of(pods))

    assert expected == (found.ready, found.complete, found.damaged)


def promised(name: str, span: str, *, created: str = "2026-01-01T11:00:00Z", **more: Any) -> Object:
    made = gang(name, 1, created=created, **more)
    made["metadata"]["annotations"] = {"volcano.sh/sla-waiting-time": span}
    return made


@pytest.mark.parametrize(("span", "expected"), [
    pytest.param("1h", "Inqueue", id="its time is over"),
    pytest.param("59m60s", "Inqueue", id="the same, said otherwise"),
    pytest.param("1h1s", "Pending", id="a second is left"), pytest.param("soon", "Pending", id="it says no time"),
])
def test_who_was_promised_to_be_let_in_is_let_in_when_the_time_is_over(span: str, expected: str) -> None:
    there = snapshot([machine(gpu=1)], [], [promised("a", span, phase="Pending", wants={"gpu": 8})])

    assert {"a": expected} == phases(decided(there))


def test_of_two_that_were_promised_a_start_the_more_urgent_comes_first() -> None:
    groups = [promised("a", "10h"), promised("b", "5h"), gang("0", 1, created="2026-01-01T10:00:00Z")]
    pods = [pod for name in ("0", "a", "b") for pod in members(name, "w", 1, asks={"gpu": 1})]

    assert {"b-w-0"} == bound(decided(snapshot([machine(gpu=1)], pods, groups))).keys()
    assert {"b-w-0", "a-w-0"} == bound(decided(snapshot([machine(gpu=2)], pods, groups))).keys()
