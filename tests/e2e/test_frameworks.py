"""Every framework really trains: replicas in pods of their own exchange what they learn, and end with equal parameters.

Slow, because the frameworks are: nothing cheaper shows that they find each other and agree. Two pods as one user and
four as the other are the slice; both as both with FULL=1.
"""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.conftest import PEOPLE
from tests.e2e.person import Person

from trainmaster.api.meta import Object

pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("kubectl")]

PATIENCE = 600       # seconds, of which a first download may take most


@dataclass(frozen=True)
class Case:
    """A job, and how many of its pods end with a model."""

    kind: str
    container: str
    image: str
    roles: dict[str, int]
    learned: int
    command: list[str] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    job: dict[str, Any] = field(default_factory=dict)     # what else its spec says
    shared: str = ""                                     # where all replicas see one directory

    def manifest(self, name: str, directory: Path) -> Object:
        container: Object = {"name": self.container, "image": self.image}
        container |= {"command": self.command} if self.command else {}
        container |= {"args": self.args} if self.args else {}
        spec: Object = {"containers": [container]}
        if self.shared:
            container["volumeMounts"] = [{"name": "shared", "mountPath": self.shared}]
            spec["volumes"] = [{"name": "shared", "hostPath": {"path": str(directory), "type": "DirectoryOrCreate"}}]
        prefix = {"XGBoostJob": "xgb", "MXJob": "mx", "TFJob": "tf"}.get(self.kind, self.container)
        replicas = {
            role: {"replicas": count, "restartPolicy": "Never", "template": {"spec": spec}}
            for role, count in self.roles.items()
        }
        return {"apiVersion": "kubeflow.org/v1", "kind": self.kind, "metadata": {"name": name},
                "spec": {f"{prefix}ReplicaSpecs": replicas, **self.job}}


def ddp(workers: int) -> Case:
    return Case("PyTorchJob", "pytorch", "kubeflow/pytorch-dist-mnist:latest", {"Master": 1, "Worker": workers},
                1 + workers, args=["--epochs=3"])


def elastic(workers: int) -> Case:
    policy = {"rdzvBackend": "c10d", "minReplicas": workers, "maxReplicas": workers, "maxRestarts": 3}
    return Case("PyTorchJob", "pytorch", "kubeflow/pytorch-elastic-example-imagenet", {"Worker": workers}, workers,
                command=["python", "-m", "torch.distributed.run", "/workspace/examples/imagenet.py"],
                args=["--epochs=3"], job={"elasticPolicy": policy, "nprocPerNode": "1"})


def boosted(image: str, workers: int) -> Case:
    return Case("XGBoostJob", "xgboost", image, {"Master": 1, "Worker": workers}, 1 + workers)


def jax(workers: int) -> Case:
    return Case("JAXJob", "jax", "kubeflow/jaxjob-simple", {"Worker": workers}, workers)


def paddle(workers: int) -> Case:
    command = ["python", "-m", "paddle.distributed.launch", "--log_dir=/tmp/log", "/var/paddle/digits.py"]
    return Case("PaddleJob", "paddle", "paddlepaddle/paddle:3.3.1", {"Worker": workers}, workers, command=command)


def mxnet(workers: int) -> Case:
    roles = {"Scheduler": 1, "Server": 1, "Worker": workers}
    return Case("MXJob", "mxnet", "mxjob/mxnet:cpu", roles, workers, job={"jobMode": "MXTrain"})


def mirrored(roles: dict[str, int]) -> Case:
    """With an evaluator, which reads what the chief has kept."""
    shared = "/models" if "Evaluator" in roles else ""
    return Case("TFJob", "tensorflow", "tensorflow/tensorflow:2.11.0", roles, sum(roles.values()),
                command=["python", "/dist_mnist.py", *([shared] if shared else [])], shared=shared)


XGBOOST, LIGHTGBM = "kubeflow/xgboost-dist-iris:latest", "kubeflow/lightgbm-dist-py-test:1.0"
TWO = {
    "pytorch-ddp": ddp(1), "pytorch-elastic": elastic(2),
    "xgboost": boosted(XGBOOST, 1), "lightgbm": boosted(LIGHTGBM, 1),
    "jax": jax(2), "paddle": paddle(2), "mxnet": mxnet(1), "tensorflow-multiworker": mirrored({"Worker": 2}),
}
FOUR = {
    "pytorch-ddp": ddp(3), "pytorch-elastic": elastic(4),
    "xgboost": boosted(XGBOOST, 3), "lightgbm": boosted(LIGHTGBM, 3),
    "jax": jax(4), "paddle": paddle(4), "mxnet": mxnet(2),
    "tensorflow-multiworker": mirrored({"Chief": 1, "Worker": 2, "Evaluator": 1}),
}


SIZES = {"two": TWO, "four": FOUR}


def slow(framework: str, size: str, who: str) -> list[pytest.MarkDecorator]:
    """In the slice root has four pods and the ordinary user two; four torchruns load PyTorch eight times."""
    chosen = size == ("four" if who == "root" else "two") and (framework, who) != ("pytorch-elastic", "root")
    return [] if chosen else [pytest.mark.full]


@pytest.mark.parametrize(
    ("framework", "size", "trainer"),
    [pytest.param(framework, size, who, marks=slow(framework, size, who), id=f"{framework} {size} as {who}")
     for who in PEOPLE for size in SIZES for framework in SIZES[size]],
    indirect=["trainer"],
)
def test_replicas_end_with_equal_parameters(framework: str, size: str, trainer: Person) -> None:
    trained(trainer, f"{framework}-{size}", SIZES[size][framework])


@pytest.mark.parametrize(
    "trainer", [pytest.param("root", marks=pytest.mark.full), "ordinary user"], indirect=True
)
def test_tensors_are_sent_and_come_back(trainer: Person) -> None:
    case = Case("PyTorchJob", "pytorch", "kubeflow/pytorch-dist-sendrecv-test:latest", {"Master": 1, "Worker": 3}, 0)

    said = trained(trainer, "sendrecv", case)

    assert 4 == said.count("all as it should be")


def trained(person: Person, name: str, case: Case) -> str:
    """Run the job to its end; gives what its pods said."""
    began = time.monotonic()
    person.kubectl("create", "-f", "-", text=yaml.safe_dump(case.manifest(name, person.home / name)))
    chosen = f"--selector=training.kubeflow.org/job-name={name}"
    kind = case.kind.lower()
    try:
        person.kubectl("wait", "--for=condition=Succeeded", f"--timeout={PATIENCE}s", f"{kind}/{name}",
                       timeout=PATIENCE + 20)
        person.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=300s", "pods", chosen,
                       timeout=320)
    except AssertionError as error:
        error.add_note(person.kubectl("get", "pods", chosen, "-o", "wide"))
        error.add_note(person.kubectl("logs", "--prefix", "--tail=20", "--ignore-errors", chosen, "-c", case.container))
        error.add_note(person.kubectl("get", "events"))
        raise
    said = person.kubectl("logs", "--prefix", "--tail=-1", "--max-log-requests=10", "-c", case.container, chosen)
    print(f"{name} as {person.name}: {time.monotonic() - began:.1f} s")
    known = re.findall(r"parameters (\w+)", said)
    assert case.learned == len(known), said
    assert len(set(known)) <= 1, said
    for first, last in re.findall(r"loss ([\d.]+) -> ([\d.]+)", said):
        assert float(last) < float(first) * 0.9, said
    person.kubectl("delete", kind, name)
    return said
