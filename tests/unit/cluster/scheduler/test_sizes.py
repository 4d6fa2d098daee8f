"""Gangs of the sizes that Kubernetes measures its own gang scheduling with: all start, whole, and none too many.

How fast it is, benchmarks/scheduler tells; here it counts that size changes nothing.
"""

from collections import Counter
from itertools import pairwise

import pytest

from trainmaster.cluster.scheduler.allocate import allocate
from trainmaster.cluster.scheduler.entrance import enqueue
from trainmaster.cluster.scheduler.floor import Floor
from trainmaster.cluster.scheduler.settings import DEFAULTS, Settings
from trainmaster.cluster.scheduler.trial import Trial
from trainmaster.testing.scheduling import NOW, bound, decided, evicted, gang, machine, members, phases, snapshot

FULL = pytest.mark.full


@pytest.mark.parametrize(("gangs", "size", "nodes"), [
    pytest.param(3, 3, 10, id="3 gangs of 3 on 10 nodes"),
    pytest.param(10, 3, 100, id="10 gangs of 3 on 100 nodes"),
    pytest.param(1000, 3, 5000, id="1000 gangs of 3 on 5000 nodes"),
    pytest.param(3, 1000, 5000, id="3 gangs of 1000 on 5000 nodes"),
    pytest.param(3000, 3, 5000, id="3000 gangs of 3 on 5000 nodes", marks=FULL),
    pytest.param(9, 1000, 5000, id="9 gangs of 1000 on 5000 nodes", marks=FULL),
])
def test_gangs_start_whole(gangs: int, size: int, nodes: int) -> None:
    """One gang more than there is room for: it waits, whole."""
    room = gangs * size
    there = [machine(f"n{i}", cpu=1 + (i < room - nodes)) for i in range(min(nodes, room))]
    there += [machine(f"full{i}", cpu=0) for i in range(nodes - len(there))]
    names = [f"g{i}" for i in range(gangs + 1)]
    pods = [pod for name in names for pod in members(name, "w", size, asks={"cpu": 1})]

    decision = decided(snapshot(there, pods, [gang(name, size) for name in names]))

    started = Counter(pod.rpartition("-w-")[0] for pod in bound(decision))
    assert [size] * gangs == list(started.values())
    assert ["Inqueue"] == [phase for name, phase in phases(decision).items() if name not in started]
    offers = {node["metadata"]["name"]: int(node["status"]["allocatable"]["cpu"]) for node in there}
    assert [] == [node for node, taken in Counter(bound(decision).values()).items() if taken > offers[node]]


@pytest.mark.parametrize("large", [
    pytest.param(0, id="that fits"), pytest.param(1, id="that does not fit because of its last member"),
])
def test_however_large_a_gang_is_others_get_their_turn_after_each_member(large: int) -> None:
    size = 500
    pods = [*members("g", "w", size, asks={"cpu": 1}), *members("g", "x", large, asks={"cpu": 99})]
    there = snapshot([machine(f"n{i}", cpu=64) for i in range(10)], pods, [gang("g", size + large)])
    floor = Floor(Trial(there), DEFAULTS, NOW)
    for _ in (*floor.gather(), *enqueue(floor)):
        pass

    placed = [0, *(len(floor.trial.steps) for _ in allocate(floor))]

    assert max(placed) >= size - 1, "it was looked at while it was tried"
    assert 1 == max(after - before for before, after in pairwise(placed))


@pytest.mark.parametrize("nodes", [2, 100])
def test_a_more_important_gang_takes_the_place_of_a_whole_one(nodes: int) -> None:
    low = [members("low", "w", nodes, asks={"cpu": 1})[i] for i in range(nodes)]
    for number, pod in enumerate(low):
        pod["spec"]["nodeName"], pod["status"]["phase"] = f"n{number}", "Running"
    high = members("high", "w", nodes, asks={"cpu": 1})
    groups = [gang("low", nodes, phase="Running"), gang("high", nodes, priorityClassName="high")]
    there = [machine(f"n{i}", cpu=1) for i in range(nodes)]

    first = decided(snapshot(there, [*low, *high], groups, classes={"high": 10}), Settings(preempt=True))
    then = decided(snapshot(there, high, groups, classes={"high": 10}), Settings(preempt=True))

    assert ({}, sorted(pod["metadata"]["name"] for pod in low)) == (bound(first), evicted(first))
    assert {pod["metadata"]["name"] for pod in high} == bound(then).keys()
