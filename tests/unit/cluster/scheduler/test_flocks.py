"""Gangs whose members must stay together start where all of them have room, not where the first fits best."""

from typing import Any

import pytest

from trainmaster.api.meta import Key, Object
from trainmaster.cluster.scheduler.settings import DEFAULTS, Settings
from trainmaster.cluster.scheduler.volumes import Storage
from trainmaster.testing.scheduling import bound, decided, evicted, gang, machine, members, snapshot

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
CLASS = {"metadata": {"name": "later"}, "volumeBindingMode": "WaitForFirstConsumer",
         "provisioner": "rancher.io/local-path"}
CLAIM = {"metadata": {"name": "data"}, "spec": {"storageClassName": "later"}, "status": {"phase": "Pending"}}
SHARED: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


def near(topology: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": topology}
    return {"labels": {"app": "x"},
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def node(name: str, zone: str, gpu: int) -> Object:
    return machine(name, labels={ZONE: zone}, gpu=gpu)


SMALL_AND_LARGE = [node("a", "1", 2), node("b", "2", 3)]
IN_ZONES = [node("a", "1", 2), node("b", "2", 2), node("c", "2", 1)]


@pytest.mark.parametrize(("nodes", "tie", "least", "expected"), [
    pytest.param(SMALL_AND_LARGE, {}, 3, "aab", id="who is not tied is packed"),
    pytest.param(SMALL_AND_LARGE, SHARED, 3, "bbb", id="a claim that will be of one node"),
    pytest.param(SMALL_AND_LARGE, near(HOST), 3, "bbb", id="affinity to each other on a node"),
    pytest.param(IN_ZONES, near(ZONE), 3, "cbb", id="affinity to each other in a zone"),
    pytest.param(IN_ZONES, near(HOST), 3, "", id="who has no such place waits, all of them"),
    pytest.param(IN_ZONES, near(HOST), 2, "aa", id="only those count that are needed"),
    pytest.param([node("a", "1", 3), node("b", "2", 3)], near(HOST), 3, "aaa", id="among equals the first by name"),
])
def test_where_they_go(nodes: list[Object], tie: dict[str, Any], least: int, expected: str) -> None:
    there = snapshot(nodes, members("g", "w", 3, asks={"gpu": 1}, **tie), [gang("g", least)])
    there.storage = Storage(True, {Key("default", "data"): CLAIM}, {}, {"later": CLASS})

    found = bound(decided(there))

    assert expected == "".join(found[name] for name in sorted(found))


def test_others_are_sent_away_where_that_makes_room_for_all() -> None:
    """And the reason of one that waits says truly whether it could ever fit."""
    pods = [*members("low", "w", 2, asks={"gpu": 1}, on="b", phase="Running"),
            *members("high", "w", 3, asks={"gpu": 1}, **near(HOST))]
    groups = [gang("low", 2, phase="Running"), gang("high", 3, priorityClassName="high")]
    there = snapshot([node("b", "1", 3)], pods, groups, classes={"high": 10})

    patient, impatient = decided(there, DEFAULTS), decided(there, Settings(preempt=True))

    assert ([], {"high": True}) == (evicted(patient), {
        verdict.group.key.key.name: verdict.why.ever for verdict in patient.verdicts if verdict.why})
    assert ["low-w-0", "low-w-1"] == evicted(impatient)
