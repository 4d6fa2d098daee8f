"""Builders: a row says only what differs."""

from trainmaster.api.meta import controller_of, name_of, uid_of
from trainmaster.testing.builders import job, node, pod


def test_a_pod_of_a_job_that_failed() -> None:
    owner = job("mnist", uid="u1")
    made = pod("mnist-worker-0", owner=owner, exit_code=3, node="n", restarts=2)

    assert ("PyTorchJob", "u1") == ((controller_of(made) or {})["kind"], (controller_of(made) or {})["uid"])
    assert "Failed" == made["status"]["phase"]
    assert 3 == made["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    assert "n" == made["spec"]["nodeName"]


def test_a_plain_pod_has_no_status_and_no_empty_metadata() -> None:
    made = pod()

    assert {"name": "pod", "namespace": "default"} == made["metadata"]
    assert "status" not in made
    assert "" == uid_of(made)


def test_a_node_with_gpus() -> None:
    made = node("n", cpu=4, resources={"nvidia.com/gpu": "2"})

    assert {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"} == made["status"]["allocatable"]
    assert "n" == name_of(made)


def test_each_role_of_a_job_has_its_own_template() -> None:
    made = job(kind="TFJob", replicas={"PS": 1, "Worker": 2}, restart="OnFailure", run_policy={"backoffLimit": 3})
    specs = made["spec"]["tfReplicaSpecs"]

    assert {"PS": 1, "Worker": 2} == {role: spec["replicas"] for role, spec in specs.items()}
    assert specs["PS"]["template"] is not specs["Worker"]["template"]
    assert "tensorflow" == specs["PS"]["template"]["spec"]["containers"][0]["name"]
    assert {"backoffLimit": 3} == made["spec"]["runPolicy"]
