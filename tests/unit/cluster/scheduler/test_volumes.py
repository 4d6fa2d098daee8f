"""Pods with claims: which wait, where the others go, and what is said."""

from typing import Any

import pytest

from trainmaster.api.meta import Key, Object
from trainmaster.cluster.scheduler.volumes import Chosen, Storage
from trainmaster.testing.scheduling import bound, decided, gang, machine, member, members, single, snapshot

LATER = {"metadata": {"name": "later"}, "volumeBindingMode": "WaitForFirstConsumer",
         "provisioner": "rancher.io/local-path"}
FOUND = {"metadata": {"name": "found"}, "volumeBindingMode": "WaitForFirstConsumer",
         "provisioner": "kubernetes.io/no-provisioner"}
ANYWHERE = {"metadata": {"name": "anywhere"}, "volumeBindingMode": "WaitForFirstConsumer", "provisioner": "example.com"}
CLASSES: dict[str, Object] = {"later": LATER, "found": FOUND, "anywhere": ANYWHERE}


def claim(phase: str = "Pending", class_: str = "", volume: str = "", deleted: bool = False,
          selected: str = "") -> Object:
    about = {"name": "data", "annotations": {"volume.kubernetes.io/selected-node": selected}}
    return {"metadata": {**about, **({"deletionTimestamp": "x"} if deleted else {})},
            "spec": {"storageClassName": class_, "volumeName": volume}, "status": {"phase": phase}}


def volume(node: str, class_: str = "") -> Object:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {"metadata": {"name": f"on-{node}"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                                                         "storageClassName": class_, "capacity": {"storage": "1Gi"}}}


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
    pytest.param(TOLD.format("2 node(s) didn't find available persistent volumes to bind"),
                 claim(class_="later", selected="c"), id="one that waits for its volume on a node that is not there"),
    pytest.param(TOLD.format("2 node(s) didn't find available persistent volumes to bind"),
                 claim(class_="found"), id="one that nobody makes a volume for, and no node has one"),
    pytest.param(TOLD.format("pod has unbound immediate PersistentVolumeClaims"),
                 claim(class_="later", volume="near"), id="one that names its volume and is not bound to it"),
])
def test_pods_that_wait(expected: str, found: Object | None) -> None:
    there = snapshot([machine("a"), machine("b")], [single("x", **USES)])
    there.storage = Storage(True, {Key("default", "data"): found} if found else {}, {"far": volume("c")},
                            CLASSES)

    decision = decided(there)

    assert ([], [expected]) == ([*bound(decision)], [one.message for one in decision.waiting])


@pytest.mark.parametrize(("expected", "found"), [
    pytest.param("a", claim(class_="later"), id="a claim that waits for its pod keeps nobody waiting"),
    pytest.param("b", claim("Bound", volume="near"), id="a pod goes where its volume is"),
    pytest.param("b", claim(class_="later", selected="b"), id="or is to be"),
    pytest.param("b", claim(class_="found"), id="or where one is free for it"),
])
def test_pods_that_go(expected: str, found: Object) -> None:
    there = snapshot([machine("a"), machine("b")], [single("x", **USES)])
    there.storage = Storage(True, {Key("default", "data"): found}, {"near": volume("b", "found")}, CLASSES)

    assert {"x": expected} == bound(decided(there))


TAKEN = ("0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
         "access mode.")
ALONE = {**claim("Bound", volume="any"), "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "any"}}


@pytest.mark.parametrize(("expected", "told", "others"), [
    pytest.param({"x": "a"}, [], [], id="nobody has it"),
    pytest.param({}, [TAKEN], [single("y", on="b", phase="Running", **USES)], id="a pod that runs has it, wherever"),
    pytest.param({"x": "a"}, [], [single("y", on="b", phase="Succeeded", **USES)], id="one that ended has it no more"),
    pytest.param({"x": "a"}, [TAKEN], [single("y", created="2030-01-02T00:00:00Z", **USES)],
                 id="of two that wait, the first gets it"),
    pytest.param({"x": "a"}, [], [{**single("y", on="b", phase="Running", **USES), "metadata": {
        "name": "y", "namespace": "other", "uid": "uid-y"}}], id="a claim of another namespace is another claim"),
])
def test_a_claim_for_one_pod_alone(expected: dict[str, str], told: list[str], others: list[Object]) -> None:
    there = snapshot([machine("a"), machine("b")], [single("x", **USES), *others])
    there.storage = Storage(True, {Key("default", "data"): ALONE}, {}, CLASSES)

    decision = decided(there)

    assert (expected, told) == (bound(decision), [one.message for one in decision.waiting])


def test_a_more_important_pod_takes_the_claim_from_another() -> None:
    pods = [single("x", priority=10, **USES), single("y", on="b", phase="Running", priority=1, **USES)]
    there = snapshot([machine("a"), machine("b")], pods)
    there.storage = Storage(True, {Key("default", "data"): ALONE}, {}, CLASSES)

    assert ["y"] == [each.pod.name for each in decided(there).evictions]


def test_a_gang_that_shares_a_claim_for_one_pod_never_starts_half() -> None:
    there = snapshot([machine("a")], members("g", "w", 2, **USES), [gang("g", 2)])
    there.storage = Storage(True, {Key("default", "data"): ALONE}, {}, CLASSES)

    assert {} == bound(decided(there))


def test_who_does_not_know_claims_does_not_wait_for_them() -> None:
    assert {"x": "a"} == bound(decided(snapshot([machine("a")], [single("x", **USES)])))


@pytest.mark.parametrize(("expected", "class_"), [
    pytest.param({"x": "a"}, "later", id="where volumes are of one node, the first pod decides for all"),
    pytest.param({"x": "a", "y": "b"}, "anywhere", id="where that is not known, each goes where there is room"),
])
def test_two_pods_of_one_claim_that_waits(expected: dict[str, str], class_: str) -> None:
    pods = [single(name, asks={"gpu": 1}, **USES) for name in "xy"]
    there = snapshot([machine("a", gpu=1), machine("b", gpu=1)], pods)
    there.storage = Storage(True, {Key("default", "data"): claim(class_=class_)}, {}, CLASSES)

    assert expected == bound(decided(there))


def found(node: str, *names: str) -> dict[str, Object]:
    """Volumes that are there, on a node."""
    return {name: {**volume(node, "found"), "metadata": {"name": name}} for name in names}


def own(index: int) -> dict[str, Any]:
    """A claim for each member of a gang."""
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{index}"}}]}


@pytest.mark.parametrize(("volumes", "chosen", "expected"), [
    pytest.param({**found("a", "v1", "v2")}, {}, {"g-w-0": "a", "g-w-1": "a"}, id="two volumes on one node"),
    pytest.param({**found("a", "v1"), **found("b", "v2")}, {}, {"g-w-0": "a", "g-w-1": "b"}, id="one on each node"),
    pytest.param({**found("a", "v1")}, {}, {}, id="one volume for two members: none starts"),
    pytest.param({**found("a", "v1", "v2")}, {Key("default", "other"): Chosen("uid-x", "a")}, {},
                 id="one of two is for a pod that is being bound"),
])
def test_a_volume_that_is_there_is_for_one_claim(
        volumes: dict[str, Object], chosen: dict[Key, Chosen], expected: dict[str, str]) -> None:
    pods = [member("g", "w", index, **own(index)) for index in range(2)]
    there = snapshot([machine("a"), machine("b")], pods, [gang("g", 2)])
    claims = {Key("default", name): {**claim(class_="found"), "metadata": {"name": name, "namespace": "default"}}
              for name in ("data-0", "data-1", "other")}
    there.storage = Storage(True, claims, volumes, CLASSES, chosen)

    assert expected == bound(decided(there))


APART = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
          "labelSelector": {}}]


@pytest.mark.parametrize(("expected", "disk"), [
    pytest.param({"g-w-0": "a", "g-w-1": "b"}, frozenset("ab"), id="on nodes with one disk it starts"),
    pytest.param({}, frozenset("a"), id="on others it cannot, and not half of it"),
])
def test_a_gang_that_is_spread_over_nodes_and_shares_a_claim_which_waits(
        expected: dict[str, str], disk: frozenset[str]) -> None:
    pods = members("g", "w", 2, topologySpreadConstraints=APART, **USES)
    there = snapshot([machine("a"), machine("b")], pods, [gang("g", 2)])
    there.storage = Storage(True, {Key("default", "data"): claim(class_="later")}, {}, CLASSES, disk=disk)

    assert expected == bound(decided(there))


def test_a_pod_that_was_given_a_node_decides_before_the_claim_says_so() -> None:
    there = snapshot([machine("a"), machine("b")], [single("y", **USES)])
    there.storage = Storage(True, {Key("default", "data"): claim(class_="later")}, {}, CLASSES,
                            {Key("default", "data"): Chosen("uid-x", "b")})

    assert {"y": "b"} == bound(decided(there))
