"""What the engine reads of a job's children, and whose they are."""

from copy import deepcopy

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World

from trainmaster.api.meta import Object
from trainmaster.engine.observed import observe, read_pod


def child() -> Object:
    world = World(tfjob())
    world.settle()
    return deepcopy(world.pods["mnist-worker-1"])


def seen(pod: Object) -> list[tuple[str, int]]:
    return list(observe(World(tfjob()).job, [read_pod(pod, "tensorflow")], []).pods)


def test_a_pod_that_the_job_controls_is_its_own() -> None:
    assert [("worker", 1)] == seen(child())


@pytest.mark.parametrize("owners", [
    pytest.param([], id="nobody's: never adopted (B-38)"),
    pytest.param([{"uid": "job-0", "name": "mnist", "kind": "TFJob", "controller": True}],
                 id="that of a job of the same name that is gone"),
    pytest.param([{"uid": "job-1", "name": "mnist", "kind": "TFJob"}], id="ours, but somebody else controls it"),
])
def test_other_pods_are_not(owners: list[Object]) -> None:
    pod = child()
    pod["metadata"]["ownerReferences"] = owners

    assert [] == seen(pod)


@pytest.mark.parametrize(("key", "value"), [
    pytest.param("training.kubeflow.org/replica-index", "0", id="another index"),
    pytest.param("training.kubeflow.org/replica-index", "x", id="no index"),
    pytest.param("training.kubeflow.org/replica-type", "ps", id="another role"),
])
def test_a_pod_whose_labels_somebody_changed_is_left_alone(key: str, value: str) -> None:
    pod = child()
    pod["metadata"]["labels"][key] = value

    assert [] == seen(pod)


@pytest.mark.parametrize(("status", "code", "reason", "words"), [
    pytest.param({}, None, "", "", id="no status yet"),
    pytest.param({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, None, "Evicted", "low on memory",
                 id="evicted: the pod's own reason"),
    pytest.param({"phase": "Failed", "reason": "Evicted", "message": "too much", "containerStatuses": [
        {"name": "tensorflow", "state": {"terminated": {"exitCode": 143, "reason": "Error", "message": "bye"}}},
    ]}, 143, "Evicted", "too much", id="evicted while it ran: the node's words, not how the container took it"),
    pytest.param({"phase": "Failed", "containerStatuses": [
        {"name": "side", "state": {"terminated": {"exitCode": 7, "reason": "Error"}}},
        {"name": "tensorflow", "state": {"terminated": {"exitCode": 3, "reason": "Error", "message": "bye"}}},
    ]}, 3, "Error", "bye", id="the training container's code, not the sidecar's"),
    pytest.param({"phase": "Failed", "containerStatuses": [
        {"name": "side", "state": {"terminated": {"exitCode": 7, "reason": "Error", "message": "side"}}},
        {"name": "tensorflow", "state": {"waiting": {}}},
    ]}, None, "Error", "side", id="a sidecar alone: its words, but no code"),
    pytest.param({"phase": "Failed", "initContainerStatuses": [
        {"name": "fetch", "state": {"terminated": {"exitCode": 1, "reason": "Error", "message": "404"}}},
    ], "containerStatuses": [{"name": "tensorflow", "state": {"waiting": {"reason": "PodInitializing"}}}]},
        None, "Error", "404", id="an init container: its words, but no code"),
    pytest.param({"phase": "Running", "containerStatuses": [
        {"name": "tensorflow", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}},
    ]}, None, "", "", id="restarted in place: what was before is over"),
])
def test_how_it_ended(status: Object, code: int | None, reason: str, words: str) -> None:
    pod = read_pod({**child(), "status": status}, "tensorflow")

    assert (code, reason, words) == (pod.exit_code, pod.reason, pod.last_words)


def test_restarts_of_all_containers_are_added_up() -> None:
    status = {"initContainerStatuses": [{"name": "i", "restartCount": 1}],
              "containerStatuses": [{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 3}]}

    assert 6 == read_pod({**child(), "status": status}, "tensorflow").restarts


def test_a_moment_that_makes_no_sense_does_not_stop_the_job() -> None:
    assert read_pod({**child(), "status": {"startTime": "yesterday"}}, "tensorflow").started is None
