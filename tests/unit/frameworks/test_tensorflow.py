"""TF_CONFIG byte for byte, and when a TFJob has succeeded."""

from typing import Any

import pytest
from tests.unit.engine.stories import tfjob

from trainmaster.api.meta import Object
from trainmaster.frameworks.framework import Failed, Member, Outcome, Running, Site, Succeeded, Tally, TrainingJob
from trainmaster.frameworks.registry import read
from trainmaster.frameworks.tensorflow import TENSORFLOW, environment, outcome


def job(roles: dict[str, int], domain: str = "", **spec: Any) -> TrainingJob:
    thing = tfjob(roles={role: (count, "Never") for role, count in roles.items()}, **spec)
    thing["metadata"] |= {"name": "m", "namespace": "ns1"}
    return read(thing, TENSORFLOW, Site(cluster_domain=domain))


def config(made: TrainingJob, role: str, index: int) -> str | None:
    found = made.group.role(role)
    assert found is not None
    told = environment(made.group, Member(found, index))
    assert [entry["name"] for entry in told] in ([], ["TF_CONFIG"])
    return str(told[0]["value"]) if told else None


@pytest.mark.parametrize(("roles", "told"), [
    pytest.param({"Worker": 1}, False, id="one worker is alone"),
    pytest.param({"PS": 1}, False, id="so is one parameter server"),
    pytest.param({"Worker": 1, "PS": 1}, True, id="two of different roles are not"),
    pytest.param({"Chief": 1, "Worker": 1}, True, id="nor chief and worker"),
    pytest.param({"Worker": 2}, True, id="nor two workers"),
    pytest.param({"Worker": 1, "PS": 0}, False, id="a role without replicas is nobody"),
])
def test_who_is_told(roles: dict[str, int], told: bool) -> None:
    made = job(roles)

    assert told == (config(made, next(iter(roles)), 0) is not None)


def test_every_role_is_listed_in_alphabetical_order() -> None:
    """Worked example A.3."""
    assert (
        '{"cluster":{"evaluator":["m-evaluator-0.ns1.svc:2222"],"ps":["m-ps-0.ns1.svc:2222"],'
        '"worker":["m-worker-0.ns1.svc:2222","m-worker-1.ns1.svc:2222"]},'
        '"task":{"type":"worker","index":1},"environment":"cloud"}'
    ) == config(job({"PS": 1, "Worker": 2, "Evaluator": 1}), "Worker", 1)


@pytest.mark.parametrize("role", ["Chief", "Master"])
def test_the_role_keeps_the_users_word(role: str) -> None:
    word = role.lower()
    assert (
        f'{{"cluster":{{"{word}":["m-{word}-0.ns1.svc:2222"],"worker":["m-worker-0.ns1.svc:2222"]}},'
        f'"task":{{"type":"{word}","index":0}},"environment":"cloud"}}'
    ) == config(job({role: 1, "Worker": 1}), role, 0)


def test_a_cluster_domain_is_appended() -> None:
    assert (
        '{"cluster":{"ps":["m-ps-0.ns1.svc.example.org:2222"],"worker":["m-worker-0.ns1.svc.example.org:2222"]},'
        '"task":{"type":"ps","index":0},"environment":"cloud"}'
    ) == config(job({"PS": 1, "Worker": 1}, "example.org"), "PS", 0)


def test_each_role_has_its_own_port() -> None:
    made = job({"PS": 1, "Worker": 1})
    ps = made.group.role("PS")
    assert ps is not None
    ps.containers[0]["ports"][0]["containerPort"] = 3333

    assert '"ps":["m-ps-0.ns1.svc:3333"],"worker":["m-worker-0.ns1.svc:2222"]' in (config(made, "PS", 0) or "")


@pytest.mark.parametrize(("roles", "role", "index", "expected"), [
    pytest.param({"PS": 2, "Worker": 2}, "Worker", 1,
                 '{"cluster":{"worker":{"1":"m-worker-1.ns1.svc:2222"},'
                 '"ps":["m-ps-0.ns1.svc:2222","m-ps-1.ns1.svc:2222"]},"task":{"type":"worker","index":1}}',
                 id="a worker knows itself and the parameter servers"),
    pytest.param({"PS": 2, "Worker": 2}, "PS", 1,
                 '{"cluster":{"worker":{},"ps":["m-ps-1.ns1.svc:2222"]},"task":{"type":"ps","index":1}}',
                 id="a parameter server knows itself"),
    pytest.param({"Worker": 2}, "Worker", 0,
                 '{"cluster":{"worker":{"0":"m-worker-0.ns1.svc:2222"},"ps":null},"task":{"type":"worker","index":0}}',
                 id="without parameter servers there is null"),
    pytest.param({"Chief": 1, "Worker": 1}, "Chief", 0,
                 '{"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}}', id="others know nobody"),
])
def test_the_sparse_form(roles: dict[str, int], role: str, index: int, expected: str) -> None:
    assert expected == config(job(roles, enableDynamicWorker=True), role, index)


def judged(roles: dict[str, int], states: Object, **spec: Any) -> Outcome:
    made = job(roles, **spec)
    return outcome(made.group, {role.name: Tally(role, **states.get(role.name, {})) for role in made.roles})


@pytest.mark.parametrize(("roles", "states", "spec", "expected"), [
    pytest.param({"Worker": 2}, {}, {}, None, id="nobody runs: nothing to say"),
    pytest.param({"Worker": 2}, {"Worker": {"active": 1}}, {}, Running, id="a worker runs"),
    pytest.param({"PS": 1, "Worker": 1}, {"PS": {"active": 1}}, {}, None, id="only a parameter server runs"),
    pytest.param({"Chief": 1, "Worker": 1}, {"Worker": {"active": 1}}, {}, None, id="a worker runs, but no chief"),
    pytest.param({"Chief": 1, "Worker": 1}, {"Chief": {"active": 1}}, {}, Running, id="the chief runs"),
    pytest.param({"Worker": 2}, {"Worker": {"active": 1, "succeeded": 1, "first_done": True}}, {}, Succeeded,
                 id="worker 0 is done"),
    pytest.param({"Worker": 2}, {"Worker": {"active": 1, "succeeded": 1}}, {}, Running, id="worker 1 is done"),
    pytest.param({"Worker": 2}, {"Worker": {"active": 1, "succeeded": 1, "first_done": True}},
                 {"successPolicy": "AllWorkers"}, Running, id="worker 0 is done, but all are wanted"),
    pytest.param({"Worker": 2}, {"Worker": {"succeeded": 2}}, {"successPolicy": "AllWorkers"}, Succeeded,
                 id="all are done"),
    pytest.param({"Master": 1, "Worker": 1}, {"Worker": {"succeeded": 1, "first_done": True}}, {}, None,
                 id="with a master, worker 0 decides nothing"),
    pytest.param({"Master": 1, "Worker": 1}, {"Master": {"succeeded": 1}}, {}, Succeeded, id="the master is done"),
    pytest.param({"Worker": 2}, {"Worker": {"active": 1, "failed": 1}}, {}, Failed, id="a worker failed"),
    pytest.param({"Worker": 2}, {"Worker": {"active": 1, "failed": 1}}, {"enableDynamicWorker": True}, Running,
                 id="a dynamic worker failed"),
    pytest.param({"PS": 1, "Worker": 1}, {"PS": {"failed": 1}}, {"enableDynamicWorker": True}, Failed,
                 id="a parameter server failed beside dynamic workers"),
    pytest.param({"Chief": 1, "Worker": 2}, {"Chief": {"succeeded": 1}, "Worker": {"failed": 1}}, {}, Succeeded,
                 id="the chief is done as a worker fails"),
    pytest.param({"PS": 1, "Worker": 1}, {"PS": {"failed": 1}, "Worker": {"succeeded": 1, "first_done": True}}, {},
                 Failed, id="a parameter server fails as worker 0 is done"),
    pytest.param({"PS": 2}, {"PS": {"succeeded": 2}}, {}, None, id="parameter servers alone never succeed"),
    pytest.param({"Worker": 0, "PS": 1}, {"PS": {"active": 1}}, {}, None, id="nobody is nobody's success (B-01)"),
])
def test_what_the_states_mean(roles: dict[str, int], states: Object, spec: Object, expected: type | None) -> None:
    result = judged(roles, states, **spec)

    assert expected is (None if result is None else type(result))


@pytest.mark.parametrize(("states", "message"), [
    pytest.param({"active": 1}, "TFJob ns1/m is running.", id="running"),
    pytest.param({"succeeded": 2}, "TFJob ns1/m successfully completed.", id="succeeded"),
    pytest.param({"failed": 2}, "TFJob ns1/m has failed because 2 Worker replica(s) failed.", id="failed"),
])
def test_the_words(states: Object, message: str) -> None:
    result = judged({"Worker": 2}, {"Worker": states})

    assert result is not None
    assert message == result.message
