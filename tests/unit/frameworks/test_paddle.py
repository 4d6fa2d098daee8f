"""PaddleJob: who is told what, byte for byte, and when it has succeeded."""

import pytest
from tests.unit.engine.stories import job_of
from tests.unit.frameworks.groups import job, read_job, told, words

from trainmaster.api.meta import Object

OWN_IP = {"name": "POD_IP_DUMMY", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def values(*pairs: tuple[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in pairs]


def test_workers_that_are_all_alike() -> None:
    """Worked example A.5."""
    thing = job_of("PaddleJob", roles={"Worker": (2, "Never")})
    thing["metadata"]["name"] = "p"
    container = thing["spec"]["paddleReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["ports"] = [{"name": "master", "containerPort": 37777}]
    made = read_job(thing)
    common = values(("PYTHONUNBUFFERED", "1"), ("PADDLE_JOB_ID", "p"), ("PADDLE_NNODES", "2"))

    assert [*common, OWN_IP, *values(("PADDLE_MASTER", "$(POD_IP_DUMMY):37777"))] == told(made, "Worker", 0)
    assert [*common, *values(("PADDLE_MASTER", "p-worker-0:37777"))] == told(made, "Worker", 1)


@pytest.mark.parametrize(("role", "index", "expected"), [
    pytest.param("Master", 0, [OWN_IP, *values(("PADDLE_MASTER", "$(POD_IP_DUMMY):36543"), ("PADDLE_SERVER_NUM", "1"))],
                 id="the first server knows its own address"),
    pytest.param("Master", 1, values(("PADDLE_MASTER", "m-master-0:36543"), ("PADDLE_SERVER_NUM", "1")),
                 id="another server asks the first"),
    pytest.param("Worker", 0, values(("PADDLE_MASTER", "m-master-0:36543"), ("PADDLE_TRAINER_NUM", "1")),
                 id="so does a trainer"),
])
def test_servers_and_trainers(role: str, index: int, expected: list[Object]) -> None:
    common = values(("PYTHONUNBUFFERED", "1"), ("PADDLE_JOB_ID", "m"), ("PADDLE_NNODES", "4"))

    assert [*common, *expected] == told(job("PaddleJob", {"Master": 2, "Worker": 2}), role, index)


@pytest.mark.parametrize(("roles", "states", "expected"), [
    pytest.param({"Worker": 2}, {"Worker": {"active": 1}}, ("Running", "PaddleJob ns1/m is running."), id="one runs"),
    pytest.param({"Worker": 2}, {"Worker": {"succeeded": 1}}, None, id="one of two is done"),
    pytest.param({"Worker": 2}, {"Worker": {"succeeded": 2}}, ("Succeeded", "PaddleJob ns1/m successfully completed."),
                 id="both are done"),
    pytest.param({"Master": 1, "Worker": 2}, {"Master": {"succeeded": 1}, "Worker": {"failed": 1}},
                 ("Succeeded", "PaddleJob m is successfully completed."), id="B-11: server done as a trainer fails"),
    pytest.param({"Worker": 2}, {"Worker": {"failed": 1, "active": 1}},
                 ("Failed", "PaddleJob m is failed because 1 Worker replica(s) failed."), id="one failed"),
])
def test_what_the_states_mean(roles: dict[str, int], states: Object, expected: tuple[str, str] | None) -> None:
    assert expected == words(job("PaddleJob", roles), states)
