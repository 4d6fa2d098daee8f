"""Claims and volumes: which step comes next. Rows are what is there."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.api.volumes import SELECTED_NODE
from trainmaster.cluster.controllers.storage.binding import (
    BIND_COMPLETED,
    Ask,
    Bind,
    ClaimStep,
    Classify,
    Lose,
    Nothing,
    Phase,
    Provision,
    Reclaim,
    Tell,
    Unprotect,
    VolumeStep,
    for_claim,
    for_volume,
    provisioned,
)
from trainmaster.cluster.controllers.storage.main import local_path

WAITING = Tell("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
NOTHING_THERE = Tell("FailedBinding", "no persistent volumes available for this claim and no storage class is set")


def claim(class_: str | None = "", size: str = "1Gi", volume: str = "", bound: bool = False, phase: str = "Pending",
          deleted: bool = False, selected: str = "", **spec: Any) -> Object:
    about: Object = {"name": "data", "namespace": "default", "uid": "c1"}
    about |= {"annotations": {SELECTED_NODE: selected}} if selected else {}
    about |= {"annotations": {BIND_COMPLETED: "yes"}} if bound else {}
    about |= {"deletionTimestamp": "x"} if deleted else {}
    made: Object = {"metadata": about, "status": {"phase": phase}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}}
    made["spec"] |= {"storageClassName": class_} if class_ is not None else {}
    made["spec"] |= {"volumeName": volume} if volume else {}
    return made


def volume(name: str = "pv", size: str = "1Gi", class_: str = "", phase: str = "Available", of: Object | None = None,
           policy: str = "Retain", deleted: bool = False, on: str = "", **spec: Any) -> Object:
    about: Object = {"name": name, "finalizers": ["kubernetes.io/pv-protection"]}
    about |= {"deletionTimestamp": "x"} if deleted else {}
    made: Object = {"metadata": about, "status": {"phase": phase}, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "storageClassName": class_,
        "persistentVolumeReclaimPolicy": policy, **spec}}
    made["spec"] |= {"claimRef": of} if of else {}
    if on:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
        made["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return made


def reference(name: str = "data", uid: str = "c1") -> Object:
    return {"namespace": "default", "name": name, **({"uid": uid} if uid else {})}


def class_named(name: str, **fields: Any) -> Object:
    return {**local_path(), "metadata": {"name": name}, **fields}


SMALL, LARGE = volume("small", "1Gi"), volume("large", "9Gi")
CLASSES = {"local-path": local_path(), "now": class_named("now", volumeBindingMode="Immediate"),
           "other": class_named("other", provisioner="example.com/nfs", volumeBindingMode="Immediate"),
           "none": class_named("none", provisioner="kubernetes.io/no-provisioner")}


@pytest.mark.parametrize(("expected", "thing", "volumes", "node"), [
    pytest.param(NOTHING_THERE, claim(), [], None, id="no class and no volume"),
    pytest.param(Bind(SMALL), claim(), [LARGE, SMALL], None, id="of two that fit, the smaller"),
    pytest.param(Bind(LARGE), claim(size="2Gi"), [SMALL, LARGE], None, id="one that is large enough"),
    pytest.param(NOTHING_THERE, claim(accessModes=["ReadWriteMany"]), [SMALL], None, id="not with other access"),
    pytest.param(NOTHING_THERE, claim(), [volume(class_="x")], None, id="not of another class"),
    pytest.param(NOTHING_THERE, claim(), [volume(of=reference("other", "c2"))], None, id="not somebody else's"),
    pytest.param(NOTHING_THERE, claim(), [volume(phase="Released")], None, id="not one that was used"),
    pytest.param(NOTHING_THERE, claim(), [volume(deleted=True)], None, id="not one that goes"),
    pytest.param(NOTHING_THERE, claim(selector={"matchLabels": {"a": "b"}}), [SMALL], None, id="not without its label"),
    pytest.param(Bind(volume("kept", "9Gi", of=reference(uid=""))), claim(),
                 [SMALL, volume("kept", "9Gi", of=reference(uid=""))], None, id="one that is kept for it comes first"),
    pytest.param(Classify("local-path"), claim(None), [], None, id="no class named: the default one"),
    pytest.param(WAITING, claim("local-path"), [volume(class_="local-path")], None, id="before anybody needs it: wait"),
    pytest.param(Provision("here"), claim("local-path"), [], "here", id="a pod needs it: make one where the pod is"),
    pytest.param(Bind(volume(class_="local-path", on="here")), claim("local-path"),
                 [volume("far", class_="local-path", on="there"), volume(class_="local-path", on="here")], "here",
                 id="or take one that the pod's node has"),
    pytest.param(Provision("there"), claim("local-path", selected="there"), [], None, id="or where the scheduler says"),
    pytest.param(Provision("there"), claim("local-path", selected="there"), [], "here", id="whose word counts first"),
    pytest.param(Ask("example.com/nfs"), claim("other"), [], None, id="a class that somebody else serves"),
    pytest.param(Provision(""), claim("now"), [], None, id="a class that does not wait"),
    pytest.param(NOTHING_THERE, claim("none"), [], "here", id="a class without a provisioner"),
    pytest.param(Tell("ProvisioningFailed", 'storageclass.storage.k8s.io "lost" not found', True), claim("lost"), [],
                 None, id="a class that is not there"),
    pytest.param(Nothing(), claim("local-path", deleted=True), [], "here", id="a claim that goes gets nothing"),
    pytest.param(Nothing(), claim(volume="pv"), [], None, id="it names a volume that is not there yet"),
    pytest.param(Bind(volume()), claim(volume="pv"), [SMALL, volume()], None, id="it names its volume"),
    pytest.param(Tell("FailedBinding", 'volume "pv" already bound to a different claim.', True), claim(volume="pv"),
                 [volume(of=reference("other", "c2"))], None, id="which is somebody else's"),
    pytest.param(Nothing(), claim(volume="pv", bound=True, phase="Bound"),
                 [volume(of=reference(), phase="Bound")], None, id="bound: all is well"),
    pytest.param(Bind(volume(of=reference())), claim(volume="pv", bound=True), [volume(of=reference())], None,
                 id="half bound: go on"),
    pytest.param(Lose("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"),
                 claim(volume="pv", bound=True, phase="Bound"), [], None, id="bound to what is gone"),
    pytest.param(Nothing(), claim(volume="pv", bound=True, phase="Lost"), [], None, id="said once"),
])
def test_claims(expected: ClaimStep, thing: Object, volumes: list[Object], node: str | None) -> None:
    assert expected == for_claim(thing, volumes, CLASSES, node)


@pytest.mark.parametrize(("expected", "thing", "named"), [
    pytest.param(Phase("Available"), volume(phase="Pending"), None, id="a new one can be had"),
    pytest.param(Nothing(), volume(), None, id="and stays so"),
    pytest.param(Phase("Available"), volume(phase="Pending", of=reference(uid="")), None, id="also if it is kept"),
    pytest.param(Nothing(), volume(phase="Bound", of=reference()), claim(), id="it is bound"),
    pytest.param(Phase("Released"), volume(phase="Bound", of=reference()), None, id="its claim is gone"),
    pytest.param(Phase("Released"), volume(phase="Bound", of=reference(uid="c0")), claim(),
                 id="another claim of the name is not it"),
    pytest.param(Nothing(), volume(phase="Released", of=reference()), None, id="Retain: there it stays"),
    pytest.param(Reclaim(), volume(phase="Released", of=reference(), policy="Delete"), None, id="Delete: it goes too"),
    pytest.param(Nothing(), volume(phase="Failed", of=reference(), policy="Delete"), None,
                 id="one that could not be deleted is left to people"),
    pytest.param(Nothing(), volume(phase="Bound", of=reference(), deleted=True), claim(),
                 id="deleted while it is used: it waits"),
    pytest.param(Unprotect(), volume(phase="Bound", of=reference(), deleted=True), None, id="and goes with its claim"),
])
def test_volumes(expected: VolumeStep, thing: Object, named: Object | None) -> None:
    assert expected == for_volume(thing, named)


def test_a_volume_that_is_made_for_a_claim() -> None:
    wanted = claim("local-path", "5Gi", accessModes=["ReadWriteMany"])
    made = provisioned(wanted, local_path(), ["here", "here-2"], "/v/x")

    assert "pvc-c1" == made["metadata"]["name"]
    assert ({"storage": "5Gi"}, ["ReadWriteMany"], "Delete", "local-path") == tuple(
        made["spec"][field] for field in
        ("capacity", "accessModes", "persistentVolumeReclaimPolicy", "storageClassName")
    )
    assert {"path": "/v/x", "type": "DirectoryOrCreate"} == made["spec"]["hostPath"]
    term, = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert ["here", "here-2"] == term["matchExpressions"][0]["values"]
