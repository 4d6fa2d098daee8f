"""Every default."""

from typing import Any

import pytest

from trainmaster.api import codec
from trainmaster.api.defaults import complete, elastic_bounds
from trainmaster.api.kubeflow_v1 import KINDS, PYTORCH_JOB, TF_JOB, JobKind, JobSpec, PyTorchJobSpec
from trainmaster.api.policy import CleanPodPolicy, RestartPolicy

TRAINS = {"name": "tensorflow", "image": "a"}


def completed(specs: dict[str, Any], **fields: Any) -> JobSpec:
    return complete(codec.decode_spec({"tfReplicaSpecs": specs, **fields}, TF_JOB), TF_JOB)


def worker(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"template": {"spec": {"containers": list(containers or (TRAINS,))}}, **fields}


def ports(*containers: dict[str, Any]) -> list[Any]:
    spec = completed({"Worker": worker(*containers)})
    return [found.get("ports") for found in spec.replica_specs["Worker"].template["spec"]["containers"]]


def test_what_nobody_said() -> None:
    spec = completed({"Worker": worker()})

    assert CleanPodPolicy.NONE is spec.run_policy.clean_pod_policy
    assert (1, RestartPolicy.NEVER) == (
        spec.replica_specs["Worker"].replicas, spec.replica_specs["Worker"].restart_policy,
    )


def test_what_somebody_said_stays() -> None:
    spec = completed({"Worker": worker(replicas=3, restartPolicy="OnFailure")}, runPolicy={"cleanPodPolicy": "All"})

    assert CleanPodPolicy.ALL is spec.run_policy.clean_pod_policy
    assert (3, RestartPolicy.ON_FAILURE) == (
        spec.replica_specs["Worker"].replicas, spec.replica_specs["Worker"].restart_policy,
    )


def test_zero_replicas_are_not_one() -> None:
    assert 0 == completed({"Worker": worker(replicas=0)}).replica_specs["Worker"].replicas


@pytest.mark.parametrize(("written", "role"), [
    ("WORKER", "Worker"), ("ps", "PS"), ("pS", "PS"), ("chief", "Chief"), ("MASTER", "Master"),
    ("evaluator", "Evaluator"),
])
def test_roles_are_known_however_they_are_spelled(written: str, role: str) -> None:
    assert [role] == list(completed({written: worker()}).replica_specs)


def test_of_two_spellings_the_proper_one_counts() -> None:
    specs = completed({"worker": worker(replicas=1), "Worker": worker(replicas=2)}).replica_specs

    assert [2] == [found.replicas for found in specs.values()]


def test_roles_come_in_a_fixed_order() -> None:
    names = ["Worker", "PS", "Evaluator", "Chief"]

    assert ["Chief", "Evaluator", "PS", "Worker"] == list(completed({name: worker() for name in names}).replica_specs)


OURS = {"name": "tfjob-port", "containerPort": 2222}
HTTP = {"name": "http", "containerPort": 8080}


@pytest.mark.parametrize(("containers", "expected"), [
    pytest.param([TRAINS], [[OURS]], id="none: the default one is added"),
    pytest.param([{**TRAINS, "ports": [HTTP]}], [[HTTP, OURS]], id="another one: ours is appended"),
    pytest.param([{**TRAINS, "ports": [{**OURS, "containerPort": 3333}]}], [[{**OURS, "containerPort": 3333}]],
                 id="one of our name: its number stays"),
    pytest.param([{"name": "side"}, TRAINS], [None, [OURS]], id="only the training container gets it"),
    pytest.param([{"name": "a"}, {"name": "b"}], [[OURS], None], id="without one of that name, the first"),
])
def test_the_port(containers: list[dict[str, Any]], expected: list[Any]) -> None:
    assert expected == ports(*containers)


def test_the_given_spec_is_not_changed() -> None:
    given = codec.decode_spec({"tfReplicaSpecs": {"Worker": worker()}}, TF_JOB)
    before = repr(given)
    complete(given, TF_JOB)

    assert before == repr(given)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_kind_has_its_own(kind: JobKind) -> None:
    given = {"template": {"spec": {"containers": [{"name": kind.container, "image": "a"}]}}}
    spec = complete(codec.decode_spec({kind.replica_field: {kind.roles[-1].upper(): given}}, kind), kind)
    role = spec.replica_specs[kind.roles[-1]]
    restart = RestartPolicy.ON_FAILURE if kind.kind in ("PyTorchJob", "PaddleJob") else RestartPolicy.NEVER

    assert (1, restart) == (role.replicas, role.restart_policy)
    assert [{"name": kind.port_name, "containerPort": kind.port}] == role.template["spec"]["containers"][0]["ports"]


@pytest.mark.parametrize(("least", "most", "expected"), [
    pytest.param(None, None, (2, 2), id="none given: as many as there are"),
    pytest.param(1, None, (1, 1), id="only the least: it is both"),
    pytest.param(None, 3, (3, 3), id="only the most: it is both"),
    pytest.param(1, 3, (1, 3), id="both given: they stay"),
    pytest.param(0, 3, (0, 3), id="none is a number too"),
])
def test_elastic_bounds(least: int | None, most: int | None, expected: tuple[int, int]) -> None:
    assert expected == elastic_bounds(least, most, workers=2)


@pytest.mark.parametrize(("fields", "expected"), [
    pytest.param({}, "auto", id="nobody said"),
    pytest.param({"elasticPolicy": {}}, "auto", id="elastic, nobody said"),
    pytest.param({"nprocPerNode": "2"}, "2", id="somebody said"),
    pytest.param({"elasticPolicy": {"nProcPerNode": 2}}, None, id="somebody said it in the old way"),
])
def test_processes_in_each_pod(fields: dict[str, Any], expected: str | None) -> None:
    given = {"pytorchReplicaSpecs": {"Worker": worker()}, **fields}
    spec = complete(codec.decode_spec(given, PYTORCH_JOB), PYTORCH_JOB)

    assert isinstance(spec, PyTorchJobSpec)
    assert expected == spec.nproc_per_node
