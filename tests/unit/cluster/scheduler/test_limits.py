"""A gang is let in only if the quotas of its namespace have room for all of it."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.testing.scheduling import decided, gang, machine, members, phases, snapshot


def quota(hard: dict[str, str], used: dict[str, str] | None = None, namespace: str = "default", **spec: Any) -> Object:
    return {"metadata": {"name": "team", "namespace": namespace}, "spec": {"hard": hard, **spec},
            "status": {"hard": hard, "used": used or {}}}


@pytest.mark.parametrize(("quotas", "phase", "sentence"), [
    pytest.param([quota({"requests.nvidia.com/gpu": "4"})], "Inqueue", None, id="just enough"),
    pytest.param([quota({"requests.nvidia.com/gpu": "4"}, {"requests.nvidia.com/gpu": "1"})], "Pending",
                 "quota team leaves too little now: 1 nvidia.com/gpu short", id="others use too much of it"),
    pytest.param([quota({"requests.nvidia.com/gpu": "3"})], "Pending",
                 "quota team never leaves enough: 1 nvidia.com/gpu short", id="it is too small for the gang"),
    pytest.param([quota({"pods": "3"})], "Pending", "quota team never leaves enough: 1 places for pods short",
                 id="there may not be so many pods"),
    pytest.param([quota({"count/pods": "4", "cpu": "1", "count/services": "0"})], "Inqueue", None,
                 id="it is about other things"),
    pytest.param([quota({"pods": "0"}, namespace="other")], "Inqueue", None, id="it is another namespace's"),
    pytest.param([quota({"pods": "0"}, scopes=["BestEffort"])], "Inqueue", None, id="it is about some pods only"),
])
def test_who_is_let_in(quotas: list[Object], phase: str, sentence: str | None) -> None:
    group = gang("a", 4, phase="Pending", wants={"gpu": 4})

    decision = decided(snapshot([machine(gpu=8)], [], [group], quotas=quotas))

    (verdict,) = decision.verdicts
    assert (phase, sentence) == (verdict.phase, verdict.why and verdict.why.told())


def test_two_gangs_are_not_promised_the_same() -> None:
    groups = [gang(name, 2, phase="Pending", wants={"gpu": 2}) for name in ("a", "b")]

    found = phases(decided(snapshot([machine(gpu=8)], [], groups, quotas=[quota({"nvidia.com/gpu": "3"})])))

    assert {"a": "Inqueue", "b": "Pending"} == found


def test_pods_that_are_there_are_counted_once() -> None:
    pods = members("a", "w", 2, asks={"gpu": 1})
    used = {"requests.nvidia.com/gpu": "2", "pods": "2"}
    there = snapshot([machine(gpu=8)], pods, [gang("a", 2, phase="Pending", wants={"gpu": 2})],
                     quotas=[quota({"requests.nvidia.com/gpu": "2", "pods": "2"}, used)])

    assert {"a": "Running"} == phases(decided(there))


def test_what_a_group_needs_may_be_written_as_quotas_count_it() -> None:
    """Volcano's jobs list everything under each of its names, and limits too."""
    group = gang("a", 1, phase="Pending", wants={
        "cpu": "1", "requests.cpu": "1", "limits.cpu": "2", "pods": "1", "count/pods": "1",
        "requests.nvidia.com/gpu": 1})

    assert {"a": "Inqueue"} == phases(decided(snapshot([machine(gpu=1)], [], [group])))
    assert {"a": "Pending"} == phases(decided(snapshot([machine()], [], [group])))
