"""The pods and services that should exist: every field that we set."""

from typing import Any

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World

from trainmaster.api.meta import Object
from trainmaster.engine import desired


def made(thing: Object, role: str = "Worker", index: int = 0) -> Object:
    job = World(thing).job
    found = job.group.role(role)
    assert found is not None
    return desired.pod(job, found, index).manifest


def service(thing: Object, role: str = "Worker", index: int = 0) -> Object:
    job = World(thing).job
    found = job.group.role(role)
    assert found is not None
    return desired.service(job, found, index).manifest


def with_template(template: Object, **changes: Any) -> Object:
    thing = tfjob(**changes)
    thing["spec"]["tfReplicaSpecs"]["Worker"]["template"] = template
    return thing


def with_containers(*containers: Object) -> Object:
    return with_template({"spec": {"containers": list(containers)}})


OURS = {"name": "tensorflow", "image": "example/train:1"}


def test_a_whole_pod() -> None:
    assert {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "mnist-worker-1",
            "namespace": "ns",
            "labels": {
                "training.kubeflow.org/operator-name": "tfjob-controller",
                "training.kubeflow.org/job-name": "mnist",
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": "1",
            },
            "ownerReferences": [{
                "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist", "uid": "job-1",
                "controller": True, "blockOwnerDeletion": True,
            }],
        },
        "spec": {
            "containers": [{
                "name": "tensorflow",
                "image": "example/train:1",
                "ports": [{"name": "tfjob-port", "containerPort": 2222}],
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "env": [{"name": "TF_CONFIG", "value": (
                    '{"cluster":{"worker":["mnist-worker-0.ns.svc:2222","mnist-worker-1.ns.svc:2222"]},'
                    '"task":{"type":"worker","index":1},"environment":"cloud"}'
                )}],
            }],
            "restartPolicy": "Never",
        },
    } == made(tfjob(), index=1)


def test_a_whole_service() -> None:
    labels = {
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "mnist",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "0",
    }
    assert {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "mnist-worker-0",
            "namespace": "ns",
            "labels": labels,
            "ownerReferences": [{
                "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist", "uid": "job-1",
                "controller": True, "blockOwnerDeletion": True,
            }],
        },
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "ports": [{"name": "tfjob-port", "port": 2222}],
            "publishNotReadyAddresses": True,
        },
    } == service(tfjob())


@pytest.mark.parametrize(("rule", "expected"), [
    pytest.param("Always", "Always", id="Always is copied"),
    pytest.param("OnFailure", "OnFailure", id="OnFailure is copied"),
    pytest.param("Never", "Never", id="Never is copied"),
    pytest.param("ExitCode", "Never", id="ExitCode is ours: the kubelet must not restart"),
])
def test_the_restart_policy_of_the_pod(rule: str, expected: str) -> None:
    assert expected == made(tfjob(roles={"Worker": (1, rule)}))["spec"]["restartPolicy"]


def test_a_restart_policy_in_the_template_is_overwritten_and_that_is_told() -> None:
    thing = with_template({"spec": {"containers": [OURS], "restartPolicy": "Always"}})
    job = World(thing).job

    todo = desired.pod(job, job.roles[0], 0)

    assert "Never" == todo.manifest["spec"]["restartPolicy"]
    assert ["SetPodTemplateRestartPolicy"] == [event.reason for event in todo.tells]


def test_metadata_of_the_template_reaches_the_pod_and_ours_wins() -> None:
    meta = {
        "name": "ignored", "labels": {"team": "a", "training.kubeflow.org/job-name": "other"},
        "annotations": {"sidecar.istio.io/inject": "false"}, "finalizers": ["example.org/keep"],
    }
    pod = made(with_template({"metadata": meta, "spec": {"containers": [OURS]}}), index=1)["metadata"]

    assert ("mnist-worker-1", "a", "mnist") == (
        pod["name"], pod["labels"]["team"], pod["labels"]["training.kubeflow.org/job-name"],
    )
    assert meta["annotations"] == pod["annotations"]
    assert ["example.org/keep"] == pod["finalizers"]


@pytest.mark.parametrize(("roles", "leaders"), [
    pytest.param(["Chief", "Worker"], ["chief-0"], id="the chief leads"),
    pytest.param(["Master", "PS", "Worker"], ["master-0"], id="the master leads"),
    pytest.param(["PS", "Worker"], ["worker-0"], id="without them worker 0 does"),
    pytest.param(["PS"], [], id="a parameter server never does"),
])
def test_who_is_labelled_as_master(roles: list[str], leaders: list[str]) -> None:
    it = World(tfjob(roles={role: (2 if role in ("Worker", "PS") else 1, "Never") for role in roles}))
    it.settle()

    found = [name for name, pod in it.pods.items() if "training.kubeflow.org/job-role" in pod["metadata"]["labels"]]
    assert leaders == [name.removeprefix("mnist-") for name in found]


def test_only_the_training_container_is_told_of_its_peers() -> None:
    side, ours = made(with_containers({"name": "side", "image": "s"}, OURS))["spec"]["containers"]

    assert "env" not in side
    assert ["TF_CONFIG"] == [entry["name"] for entry in ours["env"]]


def test_what_we_tell_comes_after_what_the_user_set_and_so_wins() -> None:
    """B-39."""
    mine = {"name": "TF_CONFIG", "value": "mine"}
    env = made(with_containers({**OURS, "env": [mine]}))["spec"]["containers"][0]["env"]

    assert [mine, "TF_CONFIG"] == [env[0], env[1]["name"]]


def test_a_termination_message_policy_of_the_user_is_kept() -> None:
    pod = made(with_containers({**OURS, "terminationMessagePolicy": "File"}))

    assert "File" == pod["spec"]["containers"][0]["terminationMessagePolicy"]


def test_init_containers_leave_their_last_words_too() -> None:
    template = {"spec": {"containers": [OURS], "initContainers": [{"name": "fetch", "image": "i"}]}}

    init = made(with_template(template))["spec"]["initContainers"]

    assert [{"name": "fetch", "image": "i", "terminationMessagePolicy": "FallbackToLogsOnError"}] == init


def test_fields_we_do_not_know_reach_the_pod() -> None:
    pod = made(with_template({"spec": {"containers": [{**OURS, "future": 1}], "resourceClaims": [{"name": "gpu"}]}}))

    assert ([{"name": "gpu"}], 1) == (pod["spec"]["resourceClaims"], pod["spec"]["containers"][0]["future"])


def test_the_template_itself_is_not_changed() -> None:
    thing = tfjob()
    before = str(thing)
    made(thing)

    assert before == str(thing)


@pytest.mark.parametrize(("ports", "expected"), [
    pytest.param([{"name": "http", "containerPort": 8080}],
                 [{"name": "http", "port": 8080}, {"name": "tfjob-port", "port": 2222}], id="the user's, then ours"),
    pytest.param([{"name": "tfjob-port", "containerPort": 3333}], [{"name": "tfjob-port", "port": 3333}],
                 id="the user's number under our name"),
    pytest.param([{"containerPort": 8080}, {"containerPort": 8081}],
                 [{"name": "port-8080", "port": 8080}, {"name": "port-8081", "port": 8081},
                  {"name": "tfjob-port", "port": 2222}],
                 id="ports without a name get one: a service with several ports needs it (B-30)"),
    pytest.param([{"name": "dns", "containerPort": 53, "protocol": "UDP"}],
                 [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "tfjob-port", "port": 2222}],
                 id="another protocol is kept"),
    pytest.param([{"name": "a", "containerPort": 2222}, {"name": "tfjob-port", "containerPort": 2222}],
                 [{"name": "a", "port": 2222}], id="a number is there once"),
])
def test_ports_of_the_service(ports: list[Object], expected: list[Object]) -> None:
    assert expected == service(with_containers({**OURS, "ports": ports}))["spec"]["ports"]
