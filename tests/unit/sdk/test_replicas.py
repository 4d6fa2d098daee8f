"""A pod in the words that a person reads."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.sdk.replicas import attempts_of, exit_in_words, replica_of


def pod(phase: str, *states: Object, deleting: bool = False, **status: Any) -> Object:
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "3"}
    about: Object = {"name": "job-worker-3", "uid": "u", "labels": labels}
    if deleting:
        about["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    containers = [{"name": f"c{i}", "restartCount": i, "state": state} for i, state in enumerate(states)]
    return {"metadata": about, "status": {"phase": phase, "containerStatuses": containers, **status}}


def again(seen: Object, **end: Any) -> Object:
    """The same, in a life after one that ended so."""
    states = [{**each, "lastState": {"terminated": end}} for each in seen["status"]["containerStatuses"]]
    return {**seen, "spec": {"containers": [{"resources": {"limits": {"memory": "2Gi"}}}]},
            "status": {**seen["status"], "containerStatuses": states}}


BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff",
                        "message": "back-off 1m20s restarting failed container=c0 pod=job-worker-3_default(u)"}}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}]


@pytest.mark.parametrize(
    ("seen", "state", "why", "code"),
    [
        pytest.param(pod("Running", RUNNING), "Running", "", None, id="it runs"),
        pytest.param(pod("Pending"), "Pending", "", None, id="it waits"),
        pytest.param(pod("Pending", conditions=UNSCHEDULED), "Pending", UNSCHEDULED[0]["message"], None,
                     id="it waits for room, and says how much"),
        pytest.param(pod("Pending", {"waiting": {"reason": "ErrImagePull", "message": "no"}}), "ErrImagePull", "no",
                     None, id="a waiting container says why"),
        pytest.param(again(pod("Running", BACK_OFF), exitCode=137, reason="OOMKilled"), "CrashLoopBackOff",
                     "out of memory: its limit is 2Gi; is started again after 1m20s", None,
                     id="it ends again and again: how, and when it is next tried"),
        pytest.param(again(pod("Running", RUNNING), exitCode=1), "Running", "before: exit code 1", None,
                     id="it runs again"),
        pytest.param(pod("Succeeded", {"terminated": {"exitCode": 0}}), "Completed", "", 0, id="it is done"),
        pytest.param(pod("Failed", {"terminated": {"exitCode": 1}}), "Error", "exit code 1", 1, id="it failed"),
        pytest.param(pod("Failed", {"terminated": {"exitCode": 0}}, {"terminated": {"exitCode": 3}}), "Error",
                     "exit code 3", 3, id="the code that is not zero counts"),
        pytest.param(pod("Failed", reason="Evicted", message="low on memory"), "Evicted", "low on memory", 1,
                     id="it was evicted"),
        pytest.param(pod("Failed", {"terminated": {"exitCode": 143}}, reason="Evicted", message="too much "), "Evicted",
                     "too much", 143, id="it was evicted while it ran"),
        pytest.param({**pod("Failed", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
                      "spec": {"containers": [{"resources": {"limits": {"memory": "2Gi"}}}]}},
                     "OOMKilled", "out of memory: its limit is 2Gi", 137, id="it used more memory than it may"),
        pytest.param(pod("Failed", {"terminated": {"exitCode": 143}}, deleting=True), "Stopped", "", 143,
                     id="it was told to end, and did"),
        pytest.param(pod("Failed", {"terminated": {"exitCode": 1}}, deleting=True), "Error", "exit code 1", 1,
                     id="it failed while it was told to end"),
        pytest.param(pod("Running", RUNNING, deleting=True), "Terminating", "", None, id="it is on its way out"),
    ],
)
def test_replica(seen: Object, state: str, why: str, code: int | None) -> None:
    replica = replica_of(seen)

    assert ("worker-3", state, why, code) == (replica.name, replica.state, replica.why, replica.exit_code)


@pytest.mark.parametrize(
    ("code", "expected"),
    [(0, "0"), (1, "1"), (128, "128"), (137, "137 (killed by SIGKILL, often for lack of memory)"),
     (143, "143 (killed by SIGTERM)"), (255, "255")],
)
def test_exit_codes_in_words(code: int, expected: str) -> None:
    assert expected == exit_in_words(code)


def test_only_lives_that_have_begun_can_be_read() -> None:
    seen = pod("Running", RUNNING, {"waiting": {"reason": "ContainerCreating"}}, {"terminated": {"exitCode": 0}})

    assert [("c0", 0), ("c2", 2)] == [(a.container, a.number) for a in attempts_of(seen)]
