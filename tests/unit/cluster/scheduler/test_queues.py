"""What queues may have: by weight, by what was promised down a tree, by quota."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler.amounts import ONE
from trainmaster.cluster.scheduler.dialects import T9K, read_queue
from trainmaster.cluster.scheduler.queues import Account, settle
from trainmaster.cluster.scheduler.reasons import Code, Reason
from trainmaster.cluster.scheduler.settings import Decision, Settings
from trainmaster.testing.scheduling import bound, decided, evicted, gang, line, machine, members, snapshot

GPU = "nvidia.com/gpu"


def counted(names: Any) -> dict[str, int]:
    """How many pods of each job."""
    found: dict[str, int] = {}
    for name in names:
        job = name.rpartition("-w-")[0]
        found[job] = found.get(job, 0) + 1
    return found


def jobs(*asked: tuple[str, str, int], each: int = 1, on: str = "", **more: Any) -> tuple[list[Object], list[Object]]:
    """Jobs of (name, queue, pods of one GPU), at least one of them at once: pods and groups."""
    pods = [pod for name, _, count in asked for pod in members(
        name, "w", count, asks={"gpu": each}, on=on, phase="Running" if on else "Pending", **more)]
    return pods, [gang(name, 1, queue=queue, phase="Running" if on else "Inqueue",
                       **({"dialect": more["dialect"]} if "dialect" in more else {})) for name, queue, _ in asked]


def why(decision: Decision, name: str) -> Reason | None:
    return next(verdict.why for verdict in decision.verdicts if verdict.group.key.key.name == name)


@pytest.mark.parametrize(
    ("queues", "requests", "expected"),
    [
        pytest.param([line("a", weight=1), line("b", weight=3)], {"a": 8, "b": 8}, {"a": 2, "b": 6}, id="by weight"),
        pytest.param([line("a", weight=1), line("b", weight=3)], {"a": 8, "b": 1}, {"a": 7, "b": 1},
                     id="what one does not want goes to the other"),
        pytest.param([line("a", capability={"gpu": 1}), line("b")], {"a": 8, "b": 8}, {"a": 1, "b": 7},
                     id="none more than its capability"),
        pytest.param([line("a", guarantee={"gpu": 6}), line("b")], {"a": 8, "b": 8}, {"a": 6, "b": 2},
                     id="what is guaranteed is the least"),
        pytest.param([line("a", guarantee={"gpu": 4}), line("b"), line("c")], {"a": 8, "b": 8, "c": 8},
                     {"a": 4, "b": 2, "c": 2}, id="the others share the rest"),
        pytest.param([line("a", guarantee={"gpu": 2}), line("b")], {"a": 8, "b": 8}, {"a": 4, "b": 4},
                     id="a guarantee below the fair part changes nothing"),
        pytest.param([line("a", guarantee={"gpu": 6}), line("b")], {"b": 8}, {"b": 2},
                     id="what is guaranteed stays free for a queue without jobs"),
        pytest.param([line("a"), line("b"), line("c")], {"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1},
                     id="never more than is asked for"),
        pytest.param([line("a"), line("b"), line("c")], {"a": 8, "b": 8, "c": 8}, {"a": 3, "b": 3, "c": 2},
                     id="devices are whole"),
    ],
)
def test_shares_by_weight(queues: list[Object], requests: dict[str, int], expected: dict[str, int]) -> None:
    accounts = [Account(read_queue(queue)) for queue in queues]
    for account in accounts:
        if account.queue.name in requests:
            account.request = {GPU: requests[account.queue.name] * ONE}

    settle(accounts, {GPU: 8 * ONE})

    assert expected == {account.queue.name: account.deserved[GPU] // ONE for account in accounts if account.request}


TREE = [line("team", deserved={"gpu": 4}, capability={"gpu": 6}), line("other", deserved={"gpu": 4}),
        line("a", parent="team", deserved={"gpu": 3}), line("b", parent="team", deserved={"gpu": 1})]


@pytest.mark.parametrize(
    ("queues", "asked", "expected"),
    [
        pytest.param([line("a", deserved={"gpu": 2}), line("b", deserved={"gpu": 6})], [("x", "a", 8)], {"x": 8},
                     id="a queue borrows what nobody uses"),
        pytest.param([line("a", deserved={"gpu": 2}, capability={"gpu": 5}), line("b", deserved={"gpu": 3})],
                     [("x", "a", 8)], {"x": 5}, id="up to its capability"),
        pytest.param([line("a", deserved={"gpu": 2}), line("b", deserved={"gpu": 3}, guarantee={"gpu": 3})],
                     [("x", "a", 8)], {"x": 5}, id="and never what is guaranteed to another"),
        pytest.param([line("a", deserved={"gpu": 2}), line("b", deserved={"gpu": 6})], [("x", "a", 8), ("y", "b", 8)],
                     {"x": 2, "y": 6}, id="two that want all get what they deserve"),
        pytest.param([line("a"), line("b", deserved={"gpu": 6})], [("x", "a", 8), ("y", "b", 4)], {"x": 4, "y": 4},
                     id="who deserves nothing comes last"),
        pytest.param(TREE, [("x", "a", 8)], {"x": 6}, id="a branch may not have more than the queue above it"),
        pytest.param(TREE, [("x", "a", 8), ("y", "b", 8)], {"x": 4, "y": 2}, id="children together, too"),
        pytest.param(TREE, [("x", "a", 8), ("y", "other", 8)], {"x": 4, "y": 4},
                     id="branches share as their tops deserve"),
        pytest.param([line("team"), *TREE[1:]], [("x", "a", 8), ("y", "b", 8), ("z", "other", 8)],
                     {"x": 3, "y": 1, "z": 4}, id="a top that says nothing deserves what its children do"),
        pytest.param([line("team"), line("a", parent="team", guarantee={"gpu": 3}), line("b")], [("x", "b", 8)],
                     {"x": 5}, id="what is guaranteed to a child is kept from other branches"),
        pytest.param([line("a", parent="b", deserved={"gpu": 4}), line("b", parent="a")], [("x", "a", 2)], {"x": 2},
                     id="a circle of parents is cut and stops nobody"),
    ],
)
def test_promises_and_the_tree(queues: list[Object], asked: list[tuple[str, str, int]],
                               expected: dict[str, int]) -> None:
    pods, groups = jobs(*asked)

    assert expected == counted(bound(decided(snapshot([machine(gpu=8)], pods, groups, queues))))


@pytest.mark.parametrize(
    ("queues", "running", "asked", "expected"),
    [
        pytest.param([line("a", deserved={"gpu": 2}), line("b", deserved={"gpu": 6})], ("x", "a", 8), ("y", "b", 3),
                     {"x": 1}, id="what was borrowed is given back, as much as the gang needs"),
        pytest.param([line("a", deserved={"gpu": 8}), line("b", deserved={"gpu": 6})], ("x", "a", 8), ("y", "b", 1),
                     {}, id="what is deserved is not taken"),
        pytest.param([line("a", deserved={"gpu": 2}), line("b")], ("x", "a", 8), ("y", "b", 1), {},
                     id="who deserves nothing takes nothing back"),
        pytest.param([line("a", deserved={"gpu": 2}, guarantee={"gpu": 8}), line("b", deserved={"gpu": 6})],
                     ("x", "a", 8), ("y", "b", 1), {}, id="what is guaranteed is not taken"),
        pytest.param([line("a", deserved={"gpu": 2}, reclaimable=False), line("b", deserved={"gpu": 6})],
                     ("x", "a", 8), ("y", "b", 1), {}, id="nor from a queue that gives nothing back"),
        pytest.param([line("a", deserved={"gpu": 2}), line("b", deserved={"gpu": 6}, state="Closed")],
                     ("x", "a", 8), ("y", "b", 1), {}, id="nor for a queue that is closed"),
        pytest.param(TREE, ("x", "other", 8), ("y", "a", 1), {"x": 1}, id="across branches"),
        pytest.param([line("up", deserved={"gpu": 8}), line("a", parent="up", deserved={"gpu": 2}),
                      line("b", deserved={"gpu": 4})], ("x", "a", 8), ("y", "b", 1), {},
                     id="not from a branch that has no more than it deserves"),
        pytest.param([line("up", deserved={"gpu": 8}), line("a", parent="up", deserved={"gpu": 2}),
                      line("b", parent="up", deserved={"gpu": 4})], ("x", "a", 8), ("y", "b", 1), {"x": 1},
                     id="within that branch it is"),
    ],
)
def test_giving_back(queues: list[Object], running: tuple[str, str, int], asked: tuple[str, str, int],
                     expected: dict[str, int]) -> None:
    there, old = jobs(running, on="node")
    pods, new = jobs(asked)

    decision = decided(snapshot([machine(gpu=8)], [*there, *pods], [*old, *new], queues), Settings(reclaim=True))

    assert expected == counted(evicted(decision))


@pytest.mark.parametrize(
    ("queue", "queues", "expected"),
    [
        pytest.param("team", TREE, (Code.QUEUE_INNER, "team"), id="a queue with others below it starts nothing"),
        pytest.param("a", [line("team", state="Closed"), *TREE[1:]], (Code.QUEUE_CLOSED, "a"),
                     id="a queue below a closed one is closed"),
        pytest.param("a", [line("team", capability={"gpu": 1}), *TREE[1:]], (Code.QUEUE_FULL, "team"),
                     id="the queue that is full is named, not the one below it"),
    ],
)
def test_reasons_in_the_tree(queue: str, queues: list[Object], expected: tuple[Code, str]) -> None:
    pods = members("x", "w", 2, asks={"gpu": 1})

    decision = decided(snapshot([machine(gpu=8)], pods, [gang("x", 2, queue=queue)], queues))

    found = why(decision, "x")
    assert found is not None
    assert ({}, *expected) == (bound(decision), found.code, found.queue)


def t9k(name: str, *, quota: dict[str, Any] | None = None, **spec: Any) -> Object:
    if quota:
        spec["quota"] = {"requests": quota}
    return line(name, **spec)


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param([t9k("a"), t9k("b")], {"x": 2, "y": 2}, id="without quotas the cluster is the measure"),
        pytest.param([t9k("a", quota={GPU: "1"}), t9k("b")], {"x": 1, "y": 3}, id="a quota is the most"),
        pytest.param([t9k("a"), t9k("b", priority=10)], {"y": 4}, id="the more important queue comes first"),
        pytest.param([t9k("a", quota={GPU: "8"}), t9k("b", quota={GPU: "8"})], {"x": 2, "y": 2},
                     id="among equals the smaller dominant share comes first"),
        pytest.param([t9k("a", quota={GPU: "12"}), t9k("b", quota={GPU: "4"})], {"x": 3, "y": 1},
                     id="a share is a part of the quota"),
        pytest.param([t9k("a", closed=True), t9k("b")], {"y": 4}, id="a closed queue starts nothing"),
    ],
)
def test_t9k_queues(queues: list[Object], expected: dict[str, int]) -> None:
    pods, groups = jobs(("x", "a", 4), ("y", "b", 4), dialect=T9K)

    found = decided(snapshot([machine(gpu=4)], pods, groups, queues, T9K))

    assert expected == counted(bound(found))


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        pytest.param("b", [], id="equals wait"),
        pytest.param("c", [], id="its quota is used up, so it waits"),
        pytest.param("d", ["a3-w-0"], id="the more important queue takes the place of the youngest below it"),
    ],
)
def test_t9k_preemption_by_queue(queue: str, expected: list[str]) -> None:
    """300 CPU in all; A uses 150 of 200 and B 50 of 100, C all of 50 and D 50 of 200, which are more important."""
    queues = [t9k("a", quota={"cpu": "200"}, priority=1), t9k("b", quota={"cpu": "100"}, priority=1),
              t9k("c", quota={"cpu": "50"}, priority=2), t9k("d", quota={"cpu": "200"}, priority=2)]
    running = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "c1": "c", "d1": "d"}
    pods = [pod for number, name in enumerate(running) for pod in members(
        name, "w", 1, asks={"cpu": 50}, on="node", phase="Running", dialect=T9K,
        created=f"2026-01-01T11:0{number if name[0] == 'a' else 0}:00Z")]
    groups = [gang(name, 1, queue=its, dialect=T9K) for name, its in running.items()]
    new = members("new", "w", 1, asks={"cpu": 50}, dialect=T9K)
    groups.append(gang("new", 1, queue=queue, dialect=T9K))
    there = snapshot([machine(cpu=300)], [*pods, *new], groups, queues, T9K)

    assert [] == evicted(decided(there))
    assert expected == evicted(decided(there, Settings(preempt=True)))


def place(name: str, path: str, weights: str) -> Object:
    made = line(name)
    made["metadata"]["annotations"] = {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}
    return made


@pytest.mark.parametrize(("room", "queues", "asks", "expected"), [
    pytest.param(10, [place("sci", "root/sci", "100/50"), place("dev", "root/eng/dev", "100/50/50"),
                      place("prod", "root/eng/prod", "100/50/50")],
                 {"sci": {"cpu": 1, "memory": "1G"}, "dev": {"cpu": 1}, "prod": {"memory": "1G"}},
                 {"sci": 5, "dev": 5, "prod": 5}, id="a branch is measured by what it has most of"),
    pytest.param(30, [place("q1", "root/q1", "100/25"), place("q2", "root/q2", "100/25"),
                      place("q31", "root/q3/q31", "100/25/50"), place("q32", "root/q3/q32", "100/25/50"),
                      place("q4", "root/q4", "100/25")],
                 {"q1": {"cpu": 1}, "q2": {"cpu": 1}, "q31": {"cpu": 1}, "q32": {"memory": "1G"},
                  "q4": {"memory": "1G"}},
                 {"q1": 10, "q2": 10, "q31": 10, "q32": 15, "q4": 15}, id="who can have no more does not block others"),
    pytest.param(9, [place("a", "root/a", "1/2"), place("b", "root/b", "1/1")], {"a": {"cpu": 1}, "b": {"cpu": 1}},
                 {"a": 6, "b": 3}, id="by weight"),
    pytest.param(8, [place("a1", "a/a1", "1/1"), place("a2", "root/a/a2", "1/1/3"), line("b")],
                 {"a1": {"cpu": 1}, "a2": {"cpu": 1}, "b": {"cpu": 1}}, {"a1": 1, "a2": 3, "b": 4},
                 id="the root may be left out, and who says nothing stands below it"),
])
def test_dominant_shares_down_a_hierarchy(room: int, queues: list[Object], asks: dict[str, dict[str, Any]],
                                          expected: dict[str, int]) -> None:
    pods = [pod for name, wanted in asks.items() for pod in members(name, "w", room, asks=wanted)]
    groups = [gang(name, 1, queue=name) for name in asks]

    found = bound(decided(snapshot([machine(cpu=room, memory=f"{room}G", pods=200)], pods, groups, queues)))

    assert expected == {name: sum(1 for pod in found if pod.startswith(f"{name}-w-")) for name in asks}


@pytest.mark.parametrize(("queues", "running", "asked", "expected"), [
    pytest.param([place("a", "root/a", "1/1"), place("b", "root/b", "1/1")], {"a": 8}, {"b": 8}, {"a": 4},
                 id="until both have the same"),
    pytest.param([place("a", "root/a", "1/3"), place("b", "root/b", "1/1")], {"a": 8}, {"b": 8}, {"a": 2},
                 id="until each has what it weighs"),
    pytest.param([place("a", "root/x/a", "1/1/1"), place("b", "root/x/b", "1/1/1"), place("c", "root/c", "1/1")],
                 {"a": 4, "c": 4}, {"b": 8}, {"a": 2}, id="from its own branch, if the branches have the same"),
    pytest.param([place("a", "root/x/a", "1/1/1"), place("b", "root/x/b", "1/1/1"), place("c", "root/c", "1/1")],
                 {"a": 2, "b": 2, "c": 4}, {"a": 4, "b": 4, "c": 4}, {}, id="nothing, when all have their part"),
])
def test_giving_back_down_a_hierarchy(queues: list[Object], running: dict[str, int], asked: dict[str, int],
                                      expected: dict[str, int]) -> None:
    there, old = jobs(*((f"{name}{i}", name, 1) for name, count in running.items() for i in range(count)), on="node")
    pods, new = jobs(*((f"{name}new{i}", name, 1) for name, count in asked.items() for i in range(count)))
    made = snapshot([machine(gpu=8)], [*there, *pods], [*old, *new], queues)

    gone = [name[0] for name in evicted(decided(made, Settings(reclaim=True)))]

    assert expected == {name: gone.count(name) for name in sorted(set(gone))}


def test_two_gangs_of_a_queue_take_back_together_no_more_than_it_deserves() -> None:
    there, old = jobs(*((f"x{i}", "a", 1) for i in range(8)), on="node")
    pods, new = jobs(("y", "b", 2), ("z", "b", 2))
    for group in new:
        group["spec"]["minMember"] = 2
    queues = [line("a", deserved={"gpu": 6}), line("b", deserved={"gpu": 2})]

    assert 2 == len(evicted(decided(snapshot([machine(gpu=8)], [*there, *pods], [*old, *new], queues),
                                    Settings(reclaim=True))))


def test_a_queue_of_t9k_may_use_only_its_nodes() -> None:
    pods, groups = jobs(("x", "a", 2), dialect=T9K)
    nodes = [machine("small", cpu=64, gpu=4), machine("big", labels={"pool": "train"}, gpu=1)]
    queue = t9k("a", nodeSelector={"matchLabels": {"pool": "train"}})

    decision = decided(snapshot(nodes, pods, groups, [queue], dialect=T9K))

    assert {"x-w-0": "big"} == bound(decision)


def test_the_default_queue_of_t9k_needs_no_object() -> None:
    pods, groups = jobs(("x", "default", 2), dialect=T9K)

    assert 2 == len(bound(decided(snapshot([machine(gpu=2)], pods, groups, [], dialect=T9K))))


@pytest.mark.parametrize(("selector", "labels", "starts"), [
    pytest.param({"matchLabels": {"team": "a"}}, {"team": "a"}, True, id="a namespace that it is for"),
    pytest.param({"matchLabels": {"team": "a"}}, {"team": "b"}, False, id="a namespace that it is not for"),
    pytest.param({}, {"team": "b"}, True, id="an empty selector means all"),
    pytest.param(None, {}, True, id="without a selector it is for all"),
])
def test_t9k_queues_take_groups_of_the_namespaces_they_are_for(
        selector: Object | None, labels: dict[str, str], starts: bool) -> None:
    spec: Object = {} if selector is None else {"namespaceSelector": selector}
    there = snapshot([machine(gpu=8)], members("g", "w", 2, dialect=T9K, asks={"gpu": 1}),
                     [gang("g", 2, dialect=T9K, queue="q")], [line("q", **spec)], T9K)
    there.spaces["default"] = labels

    decision = decided(there)

    assert (2 if starts else 0) == len(decision.bindings)
    words = [waiting.message for waiting in decision.waiting]
    assert starts or all("queue q is not for this namespace" in each for each in words)
