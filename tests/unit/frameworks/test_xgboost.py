"""XGBoostJob: who is told what, byte for byte, and when it has succeeded."""

import pytest
from tests.unit.engine.stories import job_of
from tests.unit.frameworks.groups import job, pairs, read_job, words

from trainmaster.api.meta import Object

BOTH = {"Master": 1, "Worker": 2}


def test_everybody_knows_everybody() -> None:
    """Worked example A.4."""
    thing = job_of("XGBoostJob", roles={"Master": (1, "Never"), "Worker": (2, "Never")})
    thing["metadata"]["name"] = "x"
    for spec in thing["spec"]["xgbReplicaSpecs"].values():
        spec["template"]["spec"]["containers"][0]["ports"] = [{"name": "xgboostjob-port", "containerPort": 9991}]

    assert (
        "MASTER_PORT=9991 MASTER_ADDR=x-master-0 WORLD_SIZE=3 RANK=2 PYTHONUNBUFFERED=1 "
        "WORKER_PORT=9991 WORKER_ADDRS=x-worker-0,x-worker-1"
    ) == pairs(read_job(thing), "Worker", 1)


def test_a_master_alone_has_no_workers() -> None:
    assert (
        "MASTER_PORT=9999 MASTER_ADDR=m-master-0 WORLD_SIZE=1 RANK=0 PYTHONUNBUFFERED=1"
    ) == pairs(job("XGBoostJob", {"Master": 1}), "Master")


@pytest.mark.parametrize(("states", "expected"), [
    pytest.param({"Worker": {"active": 2}}, None, id="only workers run"),
    pytest.param({"Master": {"active": 1}}, ("Running", "XGBoostJob m is running."), id="the master runs"),
    pytest.param({"Master": {"succeeded": 1}, "Worker": {"failed": 1}},
                 ("Succeeded", "XGBoostJob m is successfully completed."), id="B-11: master done as a worker fails"),
    pytest.param({"Master": {"active": 1}, "Worker": {"failed": 2}},
                 ("Failed", "XGBoostJob m is failed because 2 Worker replica(s) failed."), id="workers failed"),
])
def test_what_the_states_mean(states: Object, expected: tuple[str, str] | None) -> None:
    assert expected == words(job("XGBoostJob", BOTH), states)
