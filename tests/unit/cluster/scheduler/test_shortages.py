"""What people are told about a job that waits: every kind of reason as one sentence."""

import pytest

from trainmaster.api.meta import Object
from trainmaster.testing.scheduling import decided, gang, line, machine, members, snapshot

RUNS = members("busy", "w", 3, asks={"gpu": 1}, on="node", phase="Running")
BUSY = gang("busy", 3, phase="Running")


@pytest.mark.parametrize(("nodes", "pods", "groups", "queues", "sentence"), [
    pytest.param([machine(gpu=4)], [*RUNS, *members("a", "w", 3, asks={"gpu": 1})], [BUSY, gang("a", 3)], [line()],
                 "1 of 3 members fit: 2 nvidia.com/gpu short; held by default/busy (3 nvidia.com/gpu)",
                 id="all of it is in use"),
    pytest.param([machine("x", gpu=3), machine("y", gpu=3)], members("a", "w", 1, asks={"gpu": 4}), [gang("a", 1)],
                 [line()], "0 of 1 members fit: 4 nvidia.com/gpu short (each needs 4 nvidia.com/gpu on one node; the "
                 "most that is free on one is 3 nvidia.com/gpu); it would not fit even if nothing else ran",
                 id="there is enough, but in pieces"),
    pytest.param([machine("x"), machine("y", unschedulable=True)],
                 members("a", "w", 2, nodeSelector={"zone": "b"}), [gang("a", 2)], [line()],
                 "0 of 2 members fit: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were "
                 "unschedulable; it would not fit even if nothing else ran", id="nodes are not of the kind it wants"),
    pytest.param([machine()], members("a", "w", 2), [gang("a", 3)], [line()],
                 "2 of 3 members exist; it starts when all are there", id="members are missing"),
    pytest.param([machine()], members("a", "w", 1), [gang("a", 1)], [],
                 "queue default does not exist; create it or name another", id="the queue is not there"),
    pytest.param([machine()], members("a", "w", 1), [gang("a", 1)], [line(state="Closed")],
                 "queue default is closed and starts nothing new", id="the queue is closed"),
    pytest.param([machine(gpu=8)], [*RUNS, *members("a", "w", 2, asks={"gpu": 1})], [BUSY, gang("a", 2)],
                 [line(capability={"gpu": 4})], "queue default may not have so much now: 1 nvidia.com/gpu short; held "
                 "by default/busy (3 nvidia.com/gpu)", id="the queue has used up what it may have"),
    pytest.param([machine(gpu=8)], [], [gang("a", 5, phase="Pending", wants={"gpu": 5})], [line(capability={"gpu": 4})],
                 "queue default may never have so much: 1 nvidia.com/gpu short", id="the queue may never have so much"),
    pytest.param([machine(gpu=3)], RUNS, [BUSY, gang("a", 2, phase="Pending", wants={"gpu": 2})], [line()],
                 "the cluster is too full to begin: 2 nvidia.com/gpu short; held by default/busy (3 nvidia.com/gpu)",
                 id="its pods are not even made"),
    pytest.param([machine(gpu=3)], RUNS, [BUSY, gang("a", 2, phase="Pending", wants={"gpu": 2}), gang(
        "0", 3, phase="Pending", wants={"gpu": 3})], [line()],
                 "the cluster is too full to begin: 2 nvidia.com/gpu short; held by default/busy (3 nvidia.com/gpu); "
                 "number 2 in queue default", id="another is in front of it"),
    pytest.param([machine(gpu=3)], [*members("busy", "w", 3, asks={"gpu": 1}, on="node", phase="Running", deleted=True),
                                    *members("a", "w", 3, asks={"gpu": 1})], [BUSY, gang("a", 3)], [line()],
                 "fits as soon as the pods that are ending are gone", id="room is being made"),
])
def test_what_is_told(nodes: list[Object], pods: list[Object], groups: list[Object], queues: list[Object],
                      sentence: str) -> None:
    decision = decided(snapshot(nodes, pods, groups, queues))
    told = {verdict.group.key.key.name: verdict.why for verdict in decision.verdicts}

    assert sentence == (told["a"] and told["a"].told())
