"""Every default."""

from typing import Any

import pytest

from trainmaster.api import codec
from trainmaster.api.defaults import complete
from trainmaster.api.kubeflow_v1 import TF_JOB, JobSpec
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
