"""The newest kubectl, unmodified, against a real cluster with our operator and against the embedded one.

What a person types in the first hour must work and must read the same on both.
"""

import json
import re
import subprocess
import time

import pytest
import yaml
from tests.kubernetes.clusters import PATIENCE, Kubectl

pytestmark = pytest.mark.kubernetes

TEMPLATE = {"spec": {"containers": [{"name": "tensorflow", "image": "example.com/mnist:1"}]}}


def job(name: str) -> str:
    document = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {
            "tfReplicaSpecs": {
                "PS": {"replicas": 1, "restartPolicy": "Never", "template": TEMPLATE},
                "Worker": {"replicas": 2, "restartPolicy": "Never", "template": TEMPLATE},
            }
        },
    }
    return yaml.safe_dump(document)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for the objects of this test."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_").lower())[:40].strip("-")


def test_create_get_and_delete(kubectl: Kubectl, name: str) -> None:
    assert kubectl.output("create", "-f", "-", stdin=job(name)) == f"tfjob.kubeflow.org/{name} created\n"
    kubectl.output("wait", "--for=condition=Running", f"tfjob/{name}", "--timeout=100s")

    head, line = kubectl.output("get", "tfjob", name).splitlines()
    assert head.split() == ["NAME", "STATE", "AGE"]
    assert re.fullmatch(rf"{name}\s+Running\s+\d+s", line)
    assert kubectl.output("get", "tfjobs", "-o", "name").splitlines().count(f"tfjob.kubeflow.org/{name}") == 1
    pods = kubectl.output("get", "pods", "-l", f"training.kubeflow.org/job-name={name}", "-o", "name").split()
    assert pods == [f"pod/{name}-ps-0", f"pod/{name}-worker-0", f"pod/{name}-worker-1"]

    assert "deleted" in kubectl.output("delete", "tfjob", name, "--timeout=100s")
    gone = kubectl("get", "tfjob", name)
    assert gone.returncode == 1
    assert gone.stderr == f'Error from server (NotFound): tfjobs.kubeflow.org "{name}" not found\n'


def test_get_watch_follows(kubectl: Kubectl, name: str) -> None:
    kubectl.output("create", "-f", "-", stdin=job(name))
    kubectl.output("wait", "--for=condition=Running", f"tfjob/{name}", "--timeout=100s")
    watch = subprocess.Popen(
        kubectl.command("get", "tfjob", name, "-w", "-o", "jsonpath={.metadata.labels.step}{'\\n'}"),
        env=kubectl.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watch.stdout is not None
    try:
        shown = watch.stdout.readline()
        assert shown == "\n"
        for step in ("one", "two"):
            kubectl.output("label", "--overwrite", "tfjob", name, f"step={step}")
            before = shown
            while shown == before:  # a job that runs is still told of replicas that begin
                shown = watch.stdout.readline()
            assert shown == f"{step}\n"
    finally:
        watch.terminate()
        watch.communicate()
    kubectl.output("delete", "tfjob", name)


def test_describe_shows_the_job_and_what_happened(kubectl: Kubectl, name: str) -> None:
    kubectl.output("create", "-f", "-", stdin=job(name))
    kubectl.output("wait", "--for=condition=Running", f"tfjob/{name}", "--timeout=100s")

    # Events are written beside the work: a job may run before all that led there is told.
    ends, described = time.monotonic() + PATIENCE, ""
    while f"Created pod: {name}-worker-1" not in described and time.monotonic() < ends:
        described = kubectl.output("describe", "tfjob", name)

    for expected in (f"Name:         {name}", "Kind:         TFJob", "Replicas:        2", "Tf Replica Specs:"):
        assert expected in described
    events = described.partition("Events:")[2]
    assert "SuccessfulCreatePod" in events
    assert f"Created pod: {name}-worker-1" in events
    kubectl.output("delete", "tfjob", name)


def test_apply_creates_then_changes_then_leaves_alone(kubectl: Kubectl, name: str) -> None:
    document = yaml.safe_dump(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1", "b": "2"}}
    )
    said = [
        kubectl.output("apply", "-f", "-", stdin=document),
        kubectl.output("apply", "-f", "-", stdin=document),
        kubectl.output("apply", "-f", "-", stdin=document.replace("  b: '2'\n", "  c: '3'\n")),
    ]

    assert [line.split()[-1] for line in said] == ["created", "unchanged", "configured"]
    assert kubectl.json("get", "configmap", name)["data"] == {"a": "1", "c": "3"}
    kubectl.output("delete", "configmap", name)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["api-resources", "-o", "name"], r"^tfjobs\.kubeflow\.org$", id="api-resources lists our kinds"),
        pytest.param(["api-resources"], r"^pods\s+po\s+v1\s+true\s+Pod$", id="api-resources lists pods"),
        pytest.param(["api-versions"], r"^kubeflow\.org/v1$", id="api-versions lists our group"),
        pytest.param(["explain", "tfjob.spec"], r"^  tfReplicaSpecs\t<", id="explain knows our fields"),
        pytest.param(["explain", "pods.metadata"], r"^  ownerReferences\t<", id="explain knows built-in fields"),
        pytest.param(["version"], r"^Server Version: v\d+\.\d+\.\d+", id="version asks the server"),
        pytest.param(["get", "nodes"], r"^fake\s+Ready\s+<none>\s+\w+", id="get nodes"),
        pytest.param(["get", "namespaces"], r"^training\s+Active\s+\w+$", id="get namespaces"),
        pytest.param(["cluster-info"], r"control plane.* is running at", id="cluster-info"),
        pytest.param(["get", "--raw", "/healthz"], r"^ok$", id="raw paths"),
        pytest.param(["auth", "can-i", "create", "tfjobs"], r"^yes$", id="auth can-i"),
    ],
)
def test_what_can_be_asked(kubectl: Kubectl, arguments: list[str], expected: str) -> None:
    assert re.search(expected, kubectl.output(*arguments), re.MULTILINE)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"replicas": "two"}, "spec.tfReplicaSpecs.Worker.replicas", id="a word where a number belongs"),
        pytest.param({"template": {"spec": {}}}, "Worker.template.spec.containers: Required value", id="no containers"),
    ],
)
def test_a_job_that_cannot_be_is_refused_by_field(
    kubectl: Kubectl, name: str, change: dict[str, object], expected: str
) -> None:
    document = yaml.safe_load(job(name))
    document["spec"]["tfReplicaSpecs"]["Worker"].update(change)

    refused = kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(document))

    assert refused.returncode == 1
    assert f'The TFJob "{name}" is invalid' in refused.stderr
    assert expected in refused.stderr
