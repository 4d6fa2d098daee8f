"""What is wrong with the replicas of jobs that should run, as a list of jobs says it."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.sdk.troubles import told

PAUSE = "back-off 20s restarting failed container=x pod=y"
AGAIN: dict[str, Any] = {"restarts": 2,
                         "waiting": {"reason": "CrashLoopBackOff", "message": PAUSE}, "last": {"exitCode": 3}}
NO_IMAGE: dict[str, Any] = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
RUNS_AGAIN: dict[str, Any] = {"restarts": 1, "running": {}, "last": {"exitCode": 137, "reason": "OOMKilled"}}


def pod(index: int, restarts: int = 0, last: Object | None = None, phase: str = "Running", **state: Any) -> Object:
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index)}
    status = {"name": "x", "restartCount": restarts, "state": state, "lastState": {"terminated": last} if last else {}}
    return {"metadata": {"name": f"a-worker-{index}", "labels": labels},
            "status": {"phase": phase, "containerStatuses": [status]}}


@pytest.mark.parametrize(("pods", "sentence"), [
    pytest.param([], "", id="no replicas, no trouble"),
    pytest.param([pod(0, running={}), pod(1, running={})], "", id="all run"),
    pytest.param([pod(0, waiting={"reason": "ContainerCreating"}, phase="Pending")], "", id="about to start"),
    pytest.param([pod(1, **AGAIN), pod(0, **AGAIN)], "worker-0, worker-1: exit code 3; is started again after 20s",
                 id="those that end each time after the start are told together"),
    pytest.param([pod(index, **AGAIN) for index in range(9)],
                 "worker-0, worker-1, worker-2 and 6 more: exit code 3; is started again after 20s",
                 id="of many, some are named"),
    pytest.param([pod(0, **NO_IMAGE), pod(1, **AGAIN), pod(2, **AGAIN)],
                 "worker-1, worker-2: exit code 3; is started again after 20s (and 1 more in trouble)",
                 id="what most have in common is told"),
    pytest.param([pod(0, running={}), pod(1, **RUNS_AGAIN)],
                 "worker-1: started again once, last after: out of memory", id="one that runs again"),
    pytest.param([pod(0, **NO_IMAGE)], "worker-0: no such image", id="one that cannot start"),
])
def test_told(pods: list[Object], sentence: str) -> None:
    assert sentence == told(pods)
