"""A real API server for the commands: started once, a namespace for each test, the test plays operator and node."""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainmaster import Client
from trainmaster.api.core import NAMESPACES, PODS
from trainmaster.api.meta import Object, Resource
from trainmaster.cli.main import cli
from trainmaster.kube.blocking import done

TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")
NUMBERS = itertools.count()
JOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: mnist
spec:
  tfReplicaSpecs:
    PS:
      replicas: 1
      template: &pod
        spec:
          containers:
          - name: tensorflow
            image: x
    Worker:
      replicas: 2
      template: *pod
"""


@dataclass(frozen=True)
class Shell:
    """Somebody who types commands on a machine whose embedded cluster is up."""

    home: Path
    namespace: str
    client: Client
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str, text: str = "") -> Result:
        """In the test's namespace, and in this process: starting one takes longer than the command."""
        at = words.index("--") if "--" in words else len(words)
        given = [*words[:at], "-n", self.namespace, *words[at:]]
        return CliRunner().invoke(cli, given, env=self.environment, input=text)

    def says(self, *words: str, text: str = "") -> str:
        """What it prints, if it succeeds."""
        done_ = self.run(*words, text=text)
        assert 0 == done_.exit_code, done_.output
        return done_.stdout

    def file(self, text: str = JOB, name: str = "job.yaml") -> str:
        path = self.home / f"{self.namespace}-{name}"
        path.write_text(text)
        return str(path)

    def condition(self, state: str, **status: object) -> None:
        said = {"type": state, "status": "True", "reason": f"TFJob{state}", "message": f"it is {state}"}
        done(self.client.session.client.patch(
            TFJOBS, "mnist", self.namespace, {"status": {"conditions": [said], **status}}, subresource="status"))

    def pod(self, role: str, index: int) -> Object:
        labels = {"training.kubeflow.org/job-name": "mnist", "training.kubeflow.org/replica-type": role,
                  "training.kubeflow.org/replica-index": str(index)}
        return done(self.client.session.client.create(PODS, {
            "metadata": {"name": f"mnist-{role}-{index}", "namespace": self.namespace, "labels": labels},
            "spec": {"containers": [{"name": "tensorflow", "image": "x"}]}}))


@pytest.fixture(scope="session")
def embedded_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a cluster that is up: the API server with its controllers, no node."""
    home = tmp_path_factory.mktemp("home")
    command = [sys.executable, "-m", "trainmaster.cli.main"]
    environment = {"HOME": str(home), "TRAINMASTER_HOME": str(home / "cluster"), "PATH": "/usr/bin:/bin"}
    subprocess.run([*command, "up", "--only", "apiserver"], env=environment, check=True, capture_output=True)
    yield home
    subprocess.run([*command, "down"], env=environment, check=True, capture_output=True)


@pytest.fixture
def shell(embedded_home: Path) -> Iterator[Shell]:
    name = f"space-{next(NUMBERS)}"
    environment = {"HOME": str(embedded_home), "TRAINMASTER_HOME": str(embedded_home / "cluster"), "KUBECONFIG": ""}
    with Client(embedded_home / "cluster" / "kubeconfig", namespace=name) as client:
        done(client.session.client.create(NAMESPACES, {"metadata": {"name": name}}))
        yield Shell(embedded_home, name, client, environment)
