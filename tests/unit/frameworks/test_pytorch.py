"""PyTorchJob: who is told what, byte for byte, and when it has succeeded."""

from typing import Any

import pytest
from tests.unit.frameworks.groups import job, member, pairs, told, words

from trainmaster.api.core import AUTOSCALERS
from trainmaster.api.meta import Object

BOTH = {"Master": 1, "Worker": 2}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


@pytest.mark.parametrize(("role", "index", "rank"), [("Master", 0, 0), ("Worker", 0, 1), ("Worker", 1, 2)])
def test_everybody_knows_the_master_and_its_own_rank(role: str, index: int, rank: int) -> None:
    """Worked example A.1."""
    assert (
        "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 MASTER_ADDR=m-master-0 PET_MASTER_ADDR=m-master-0 "
        f"WORLD_SIZE=6 RANK={rank} PET_NODE_RANK={rank} PET_NPROC_PER_NODE=2 PET_NNODES=3"
    ) == pairs(job("PyTorchJob", BOTH, nprocPerNode="2"), role, index)


@pytest.mark.parametrize(("spec", "size", "processes"), [
    pytest.param({}, 3, "auto", id="as many processes as torchrun likes, which do not multiply (B-54)"),
    pytest.param({"nprocPerNode": "gpu"}, 3, "gpu", id="one for each device: neither"),
    pytest.param({"nprocPerNode": "4"}, 12, "4", id="a number multiplies"),
])
def test_the_world(spec: Object, size: int, processes: str) -> None:
    assert f" WORLD_SIZE={size} " in (found := pairs(job("PyTorchJob", BOTH, **spec), "Master"))
    assert f" PET_NPROC_PER_NODE={processes} " in found


def test_workers_alone_are_told_whom_to_meet() -> None:
    """B-55: upstream tells them nothing of it."""
    assert (
        "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=2 "
        "PET_MASTER_ADDR=m-worker-0 PET_MASTER_PORT=23456 PET_NODE_RANK=1"
    ) == pairs(job("PyTorchJob", {"Worker": 2}), "Worker", 1)


def test_what_workers_alone_were_told_by_their_user_stays() -> None:
    made = job("PyTorchJob", {"Worker": 2})
    made.roles[0].containers[0]["env"] = [{"name": "PET_MASTER_ADDR", "value": "elsewhere"}]

    assert ["PET_MASTER_PORT", "PET_NODE_RANK"] == [entry["name"] for entry in told(made, "Worker")][-2:]


ELASTIC: list[Any] = [
    pytest.param({"minReplicas": 1, "maxReplicas": 3, "maxRestarts": 100}, {"Worker": 2},
                 "PET_RDZV_ENDPOINT=m-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=1:3 PET_MAX_RESTARTS=100",
                 id="worked example A.2"),
    pytest.param({"rdzvHost": "etcd", "rdzvPort": 2379, "rdzvBackend": "etcd-v2", "rdzvId": "x",
                  "rdzvConf": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]}, {"Worker": 2},
                 "PET_RDZV_ENDPOINT=etcd:2379 PET_RDZV_BACKEND=etcd-v2 PET_NNODES=2:2 PET_RDZV_ID=x "
                 "PET_RDZV_CONF=a=1,b=2", id="a rendezvous elsewhere"),
    pytest.param({"rdzvConf": []}, {"Worker": 2},
                 "PET_RDZV_ENDPOINT=m-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=2:2",
                 id="B-15: an empty list of settings is none"),
    pytest.param({"standalone": True}, {"Worker": 2},
                 "PET_RDZV_ENDPOINT=m-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=2:2 PET_STANDALONE=1",
                 id="B-35: standalone is a value that torchrun can read"),
    pytest.param({}, BOTH, "PET_RDZV_ENDPOINT=m-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=3:3",
                 id="B-36: bounds that nobody gave count the master too"),
    pytest.param({"minReplicas": 2}, BOTH, "PET_RDZV_ENDPOINT=m-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=2:2",
                 id="B-36: bounds that somebody gave are kept"),
]


@pytest.mark.parametrize(("policy", "roles", "expected"), ELASTIC)
def test_elastic_workers(policy: Object, roles: dict[str, int], expected: str) -> None:
    found = pairs(job("PyTorchJob", roles, elasticPolicy=policy), "Worker")

    assert found.endswith(f" PET_NPROC_PER_NODE=auto {expected}")


def test_the_old_way_to_say_how_many_processes() -> None:
    made = job("PyTorchJob", {"Worker": 1}, elasticPolicy={"nProcPerNode": 2, "maxRestarts": 3})

    assert ("PYTHONUNBUFFERED=1 PET_RDZV_ENDPOINT=m-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=1:1 "
            "PET_MAX_RESTARTS=3 PET_NPROC_PER_NODE=2") == pairs(made, "Worker")


@pytest.mark.parametrize(("roles", "role", "waits"), [
    pytest.param({"Worker": 2}, "Worker", False, id="workers alone wait for nobody"),
    pytest.param(BOTH, "Worker", True, id="a worker waits for its master"),
    pytest.param(BOTH, "Master", False, id="the master waits for nobody"),
])
def test_who_waits_in_an_init_container(roles: dict[str, int], role: str, waits: bool) -> None:
    made = job("PyTorchJob", roles)
    found = made.framework.init_containers(made.group, member(made, role, 0))

    assert (["init-pytorch"] if waits else []) == [container["name"] for container in found]


@pytest.mark.parametrize(("spec", "expected"), [
    pytest.param({}, [], id="not elastic: no autoscaler"),
    pytest.param({"elasticPolicy": {"minReplicas": 1}}, [], id="nothing to go by: none"),
    pytest.param({"elasticPolicy": {"minReplicas": 1, "maxReplicas": 3, "metrics": [CPU]}}, [(AUTOSCALERS, {
        "scaleTargetRef": {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "m"},
        "minReplicas": 1, "maxReplicas": 3, "metrics": [CPU],
    })], id="metrics: one on the scale subresource"),
])
def test_the_autoscaler(spec: Object, expected: list[Any]) -> None:
    made = job("PyTorchJob", {"Worker": 2}, **spec)

    assert expected == [(found.resource, found.spec) for found in made.framework.companions(made.group)]


@pytest.mark.parametrize(("roles", "states", "spec", "expected"), [
    pytest.param(BOTH, {"Worker": {"active": 2}}, {}, None, id="workers run, but no master"),
    pytest.param(BOTH, {"Master": {"active": 1}}, {}, ("Running", "PyTorchJob m is running."), id="the master runs"),
    pytest.param(BOTH, {"Master": {"succeeded": 1}, "Worker": {"active": 2}}, {},
                 ("Succeeded", "PyTorchJob m is successfully completed."), id="the master is done"),
    pytest.param(BOTH, {"Master": {"succeeded": 1}, "Worker": {"failed": 1}}, {},
                 ("Succeeded", "PyTorchJob m is successfully completed."), id="B-11: as a worker fails: success"),
    pytest.param(BOTH, {"Master": {"active": 1}, "Worker": {"failed": 1, "active": 1}}, {},
                 ("Failed", "PyTorchJob m is failed because 1 Worker replica(s) failed."), id="a worker failed"),
    pytest.param({"Worker": 2}, {"Worker": {"active": 1, "succeeded": 1}}, {},
                 ("Running", "PyTorchJob ns1/m is running."), id="one of two workers is done"),
    pytest.param({"Worker": 2}, {"Worker": {"succeeded": 2}}, {},
                 ("Succeeded", "PyTorchJob ns1/m successfully completed."), id="both workers are done"),
    pytest.param({"Worker": 2}, {"Worker": {"active": 1, "succeeded": 1}}, {"elasticPolicy": {}},
                 ("Succeeded", "PyTorchJob ns1/m successfully completed."), id="one elastic worker is enough"),
    pytest.param(BOTH, {"Master": {"active": 1}, "Worker": {"succeeded": 1}}, {"elasticPolicy": {}},
                 ("Running", "PyTorchJob m is running."), id="but not beside a master"),
])
def test_what_the_states_mean(
    roles: dict[str, int], states: Object, spec: Object, expected: tuple[str, str] | None
) -> None:
    assert expected == words(job("PyTorchJob", roles, **spec), states)
