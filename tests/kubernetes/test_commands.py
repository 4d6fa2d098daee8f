"""The commands on a real kube-apiserver: what they send is understood, and what comes back is shown as meant."""

import json
import random
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.kubernetes.control_plane import ControlPlane

from trainmaster import Client
from trainmaster.api.core import CONFIG_MAPS, NAMESPACES, PODS
from trainmaster.api.schema import definitions
from trainmaster.cli.main import cli
from trainmaster.kube.blocking import done
from trainmaster.sdk.doubts import as_pod, templates
from trainmaster.sdk.errors import ManifestError

pytestmark = pytest.mark.kubernetes
JOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: tensorflow
            image: x
"""


def test_a_job_is_applied_listed_changed_and_deleted(control_plane: ControlPlane, tmp_path: Path) -> None:
    """One story on one server: without controllers, so that nobody but us changes anything."""
    environment = {"HOME": str(tmp_path), "TRAINMASTER_HOME": str(tmp_path), "KUBECONFIG": ""}
    config, namespace = str(control_plane.kubeconfig()), "commands"

    def run(*words: str, text: str = "") -> Result:
        given = [*words, "--kubeconfig", config, "-n", namespace]
        return CliRunner().invoke(cli, given, env=environment, input=text)

    def says(*words: str, text: str = "") -> str:
        shown = run(*words, text=text)
        assert 0 == shown.exit_code, shown.output
        return shown.stdout

    with Client(config) as client:
        done(client.session.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace",
                                                       "metadata": {"name": namespace}}))
    says("apply", "-f", "-", text=yaml.safe_dump_all(definitions()))
    says("get", "crds")

    for _ in range(100):      # definitions are served a moment after they are made
        shown = run("apply", "-f", "-", text=JOB)
        if shown.exit_code == 0:
            break
    assert "tfjob.kubeflow.org/mnist created\n" == shown.stdout, shown.output
    assert "tfjob.kubeflow.org/mnist unchanged\n" == says("apply", "-f", "-", text=JOB)
    assert re.search(r"TFJob +mnist +Waiting +0/2", says("get", "jobs"))
    assert ["NAME", "STATE", "AGE"] == says("get", "tfjobs").splitlines()[0].split()
    assert "TFJob" == json.loads(says("get", "tfjob/mnist", "-o", "json"))["kind"]
    assert "tfjob.kubeflow.org/mnist scaled: Worker=3\n" == says("scale", "mnist", "--replicas", "worker=3")
    refused = run("apply", "-f", "-", text=JOB)
    assert (2, True) == (refused.exit_code, "--force-conflicts" in refused.output)
    assert "tfjob.kubeflow.org/mnist configured\n" == says("apply", "-f", "-", "--force-conflicts", text=JOB)
    assert "tfjob.kubeflow.org/mnist suspended\n" == says("suspend", "mnist")
    assert "State" in says("describe", "mnist")
    late = run("wait", "mnist", "--timeout", "1s")
    assert (1, True) == (late.exit_code, "after 1 s" in late.output)
    wrong = run("apply", "-f", "-", text=JOB.replace("image: x", "image: x\n            comand: [a]"))
    assert (2, True) == (wrong.exit_code, "Did you mean 'command'?" in wrong.output), wrong.output
    assert "tfjob.kubeflow.org/mnist deleted\n" == says("delete", "mnist", "--no-wait")
    sends_a_script(config, namespace, tmp_path)
    assert 1 == run("top").exit_code


def sends_a_script(config: str, namespace: str, folder: Path) -> None:
    """Code in ConfigMaps that go with the job, and pods that a real server would take as they are."""
    (folder / "train.py").write_text("print('here')\n" + f"# {random.Random(1).randbytes(1 << 20).hex()}\n")
    with Client(config, namespace=namespace) as client:
        with pytest.raises(ManifestError, match="image: is needed on a cluster that is not the embedded one"):
            client.submit(folder / "train.py", workers=2)
        job = client.submit(folder / "train.py", workers=2, image="python:3.12", framework="tensorflow")
        kube = client.session.client
        parts = done(kube.list(CONFIG_MAPS, namespace, labels="trainmaster.dev/job=train")).items

        assert 2 <= len(parts)
        assert {job.uid} == {part["metadata"]["ownerReferences"][0]["uid"] for part in parts}
        (_, template), = templates(job.object)
        made = done(kube.request("POST", PODS.path(namespace), query=[("dryRun", "All"), ("fieldValidation", "Strict")],
                                 body=as_pod(template)))
        assert "python:3.12" == made["spec"]["containers"][0]["image"]
