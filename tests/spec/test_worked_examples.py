"""The worked examples of the specification, from the job that a user writes to every pod and service."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.engine.stories import job_of
from tests.unit.engine.world import World

from trainmaster.api.kubeflow_v1 import kind_named
from trainmaster.api.meta import Object, labels_of

EXAMPLES: list[Object] = yaml.safe_load(Path(__file__).with_name("worked-examples.yaml").read_text())


def played(example: Object) -> World:
    known = kind_named(example["kind"])
    assert known is not None
    roles = {role: (count, "Never") for role, count in example["roles"].items()}
    thing = job_of(example["kind"], roles=roles, **example.get("spec", {}))
    thing["metadata"] |= {"name": example["job"], "namespace": "ns1"}
    for spec in thing["spec"][known.replica_field].values():
        if example["port"] != known.port:
            port = {"name": known.port_name, "containerPort": example["port"]}
            spec["template"]["spec"]["containers"][0]["ports"] = [port]
    world = World(thing)
    world.settle()
    return world


def told(pod: Object) -> str:
    return " ".join(f"{entry['name']}={entry.get('value') or entry['valueFrom']['fieldRef']['fieldPath']}"
                    for entry in pod["spec"]["containers"][0].get("env") or ())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example['name']}: {example['kind']}")
def test_every_pod_is_as_written(example: Object) -> None:
    world = played(example)

    assert example["pods"] == {
        name: {
            "env": told(pod),
            "leads": labels_of(pod).get("training.kubeflow.org/job-role") == "master",
            "waits": bool(pod["spec"].get("initContainers")),
        } for name, pod in world.pods.items()
    }
    assert example.get("beside", []) == [resource.kind for resource, _ in world.beside]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example['name']}: {example['kind']}")
def test_every_pod_has_a_service_with_its_port(example: Object) -> None:
    world = played(example)

    assert sorted(example["pods"]) == sorted(world.services)
    assert {example["port"]} == {port["port"] for found in world.services.values() for port in found["spec"]["ports"]}


def test_a6_the_status_of_a_pytorchjob_that_succeeded() -> None:
    world = World(job_of("PyTorchJob", roles={"Master": (1, "OnFailure"), "Worker": (2, "OnFailure")}))
    world.settle()
    world.run()
    world.settle()
    world.succeed("*-master-0")
    world.settle()
    status = world.thing["status"]
    selector = ("training.kubeflow.org/job-name=mnist,training.kubeflow.org/operator-name=pytorchjob-controller,"
                "training.kubeflow.org/replica-type=master")

    assert [
        ("Created", "True", "PyTorchJobCreated", "PyTorchJob mnist is created."),
        ("Running", "False", "PyTorchJobRunning", "PyTorchJob mnist is running."),
        ("Succeeded", "True", "PyTorchJobSucceeded", "PyTorchJob mnist is successfully completed."),
    ] == [tuple(found[key] for key in ("type", "status", "reason", "message")) for found in status["conditions"]]
    assert {"Master": {"succeeded": 1, "selector": selector}, "Worker": {"succeeded": 2}} == status["replicaStatuses"]
    assert {"completionTime", "conditions", "replicaStatuses", "startTime"} == set(status)


# A.7, one failed pod: what becomes of it and of the job. B-09: always with a completion time; B-10: for all kinds.
FAILED, COMES_BACK = ("Failed", True, True), ("Restarting", False, False)
ROWS: list[Any] = [
    pytest.param("Never", 1, FAILED, id="Never"),
    pytest.param("Never", 137, FAILED, id="Never, killed"),
    pytest.param("OnFailure", None, COMES_BACK, id="OnFailure, evicted"),
    pytest.param("Always", None, COMES_BACK, id="Always, evicted"),
    pytest.param("ExitCode", 1, FAILED, id="ExitCode 1: for good"),
    pytest.param("ExitCode", 127, FAILED, id="ExitCode 127: for good"),
    pytest.param("ExitCode", 128, COMES_BACK, id="ExitCode 128: again"),
    pytest.param("ExitCode", 255, COMES_BACK, id="ExitCode 255: again"),
    pytest.param("ExitCode", None, COMES_BACK, id="ExitCode, without a code: again (B-45)"),
]
CASTS = {"TFJob": "Worker", "PyTorchJob": "Master", "XGBoostJob": "Master", "MXJob": "Worker", "PaddleJob": "Worker",
         "JAXJob": "Worker"}


@pytest.mark.parametrize("kind", CASTS)
@pytest.mark.parametrize(("policy", "code", "expected"), ROWS)
@pytest.mark.parametrize("limit", [None, 0], ids=["no limit", "limit 0"])
def test_a7_one_failed_pod(
    kind: str, policy: str, code: int | None, expected: tuple[str, bool, bool], limit: int | None
) -> None:
    role = CASTS[kind]
    world = World(job_of(kind, roles={role: (1, policy)}, policy={} if limit is None else {"backoffLimit": limit}),
                  hold=True)
    world.settle()
    pod = f"mnist-{role.lower()}-0"
    if code is None:
        world.evict(pod)
    else:
        world.fail(pod, code=code)
    world.settle()

    kept = "deletionTimestamp" not in world.pods[pod]["metadata"]
    last = world.status.conditions[-1].type
    assert (FAILED if limit == 0 else expected) == (last, kept, world.status.completion_time is not None)
    if limit == 0:
        assert world.status.conditions[-1].message.endswith("has reached the specified backoff limit")
