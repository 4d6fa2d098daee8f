"""Pods with claims: which wait, where the others go, and what is said."""

from typing import Any

import pytest

from trainmaster.api.meta import Key, Object
from trainmaster.cluster.scheduler.volumes import Storage
from trainmaster.testing.scheduling import bound, decided, machine, single, snapshot

LATER = {"metadata": {"name": "later"}, "volumeBindingMode": "WaitForFirstConsumer"}


def claim(phase: str = "Pending", class_: str = "", volume: str = "", deleted: bool = False) -> Object:
    return {"metadata": {"name": "data", **({"deletionTimestamp": "x"} if deleted else {})},
            "spec": {"storageClassName": class_, "volumeName": volume}, "status": {"phase": phase}}


def volume(node: str) -> Object:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}


USES: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
TOLD = "0/2 nodes are available: {}."


@pytest.mark.parametrize(("expected", "found"), [
    pytest.param(TOLD.format('persistentvolumeclaim "data" not found'), None, id="a claim that is not there"),
    pytest.param(TOLD.format('persistentvolumeclaim "data" is being deleted'), claim("Bound", deleted=True),
                 id="one that goes"),
    pytest.param(TOLD.format("pod has unbound immediate PersistentVolumeClaims"), claim(), id="one that nobody bound"),
    pytest.param(TOLD.format('persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"'),
                 claim("Lost", volume="gone"), id="one that lost its volume"),
    pytest.param(TOLD.format("2 node(s) didn't match PersistentVolume's node affinity"),
                 claim("Bound", volume="far"), id="one whose volume no node has"),
])
def test_pods_that_wait(expected: str, found: Object | None) -> None:
    there = snapshot([machine("a"), machine("b")], [single("x", **USES)])
    there.storage = Storage(True, {Key("default", "data"): found} if found else {}, {"far": volume("c")},
                            {"later": LATER})

    decision = decided(there)

    assert ([], [expected]) == ([*bound(decision)], [one.message for one in decision.waiting])


@pytest.mark.parametrize(("expected", "found"), [
    pytest.param("a", claim(class_="later"), id="a claim that waits for its pod keeps nobody waiting"),
    pytest.param("b", claim("Bound", volume="near"), id="a pod goes where its volume is"),
])
def test_pods_that_go(expected: str, found: Object) -> None:
    there = snapshot([machine("a"), machine("b")], [single("x", **USES)])
    there.storage = Storage(True, {Key("default", "data"): found}, {"near": volume("b")}, {"later": LATER})

    assert {"x": expected} == bound(decided(there))


def test_who_does_not_know_claims_does_not_wait_for_them() -> None:
    assert {"x": "a"} == bound(decided(snapshot([machine("a")], [single("x", **USES)])))
