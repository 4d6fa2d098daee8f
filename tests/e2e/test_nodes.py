"""A machine that is split into two nodes, from `up` to `down`."""

import json

import pytest
from tests.e2e.person import Person, eventually

JOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: spread}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 4
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: 1
          topologySpreadConstraints:
          - maxSkew: 1
            topologyKey: kubernetes.io/hostname
            whenUnsatisfiable: ScheduleAnyway
            labelSelector: {matchLabels: {training.kubeflow.org/job-name: spread}}
          containers:
          - name: pytorch
            image: any
            command: [sh, -c, "echo on $NODE; exec sleep 1000"]
            env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
"""


@pytest.mark.usefixtures("kubectl")
def test_two_nodes_on_one_machine(person: Person) -> None:
    """Slow: what two nodes share is namespaces, network and a process that dies, and nothing cheaper has these."""

    def says(*words: str, text: str = "") -> str:
        done = person.trainmaster(*words, text=text)
        assert 0 == done.returncode, f"{words}\n{done.stdout}{done.stderr}"
        return done.stdout

    def asked(*words: str) -> str:
        return person.kubectl("--kubeconfig", str(person.state / "kubeconfig"), *words)

    def pods() -> dict[str, tuple[str, str]]:
        """Node and UID of each replica that is there to stay."""
        found = json.loads(asked("get", "pods", "-o", "json"))["items"]
        return {pod["metadata"]["name"]: (pod["spec"].get("nodeName", ""), pod["metadata"]["uid"]) for pod in found
                if "deletionTimestamp" not in pod["metadata"]}

    says("up", "--nodes", "2", "--cpus", "8", "--resource", "nvidia.com/gpu=3")
    first, second = json.loads(says("status", "-o", "json"))["node"]["names"]
    offers = [json.loads(asked("get", "node", name, "-o", "json"))["status"]["allocatable"] for name in (first, second)]
    assert [("4", "2"), ("4", "1")] == [(one["cpu"], one["nvidia.com/gpu"]) for one in offers]

    says("apply", "-f", "-", text=JOB)
    says("wait", "spread", "--for", "Running", "--timeout", "110s")
    asked("wait", "pod", "--all", "--for=condition=Ready", "--timeout=110s")
    before = pods()
    assert [first, first, second, second] == sorted(node for node, _ in before.values())
    told = {f"[{name.removeprefix('spread-')}] on {node}" for name, (node, _) in before.items()}
    assert told == eventually(lambda: set(says("logs", "spread").splitlines()), lambda said: said == told)
    for name in before:
        assert f"{name}\n" == asked("exec", name, "--", "hostname")
    assert {first, second} == {line.split()[0] for line in asked("top", "nodes", "--no-headers").splitlines()}

    other = str(person.state / "pki" / "node-2.kubeconfig")
    mine = next(name for name, (node, _) in before.items() if node == first)
    refused = person.run("kubectl", "--kubeconfig", other, "delete", "pod", mine, "--wait=false")
    assert f"no relationship found between node '{second}' and this object" in refused.stderr

    person.kill("node")
    person.kill("control-plane")
    again = person.trainmaster("up")
    assert "has again what it was started with: --cpus 8 --resource nvidia.com/gpu=3 --nodes 2\n" in again.stderr
    assert offers == [json.loads(asked("get", "node", name, "-o", "json"))["status"]["allocatable"]
                      for name in (first, second)]
    assert before == pods()
    assert 4 == len(says("logs", "spread").splitlines())

    asked("drain", second, "--force", "--timeout=110s")
    replicas = [f"pod/{name}" for name in before]      # those that were driven away are made anew, under their names
    asked("wait", *replicas, "--for=create", "--timeout=110s")
    asked("wait", *replicas, "--for=condition=Ready", "--timeout=110s")
    assert dict.fromkeys(before, first) == {name: node for name, (node, _) in pods().items()}

    says("down")
    assert not (person.state / "run").exists()
    says("up")
    assert f"node/{first}\n" == asked("get", "nodes", "-o", "name")
    says("down")
