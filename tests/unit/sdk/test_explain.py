"""What people are told about a job, from what the cluster knows of it."""

from typing import Any

import pytest

from trainmaster.api.groups import WHY
from trainmaster.api.meta import Object
from trainmaster.sdk.ends import remedy
from trainmaster.sdk.explain import explained

GROUP: Object = {"metadata": {"name": "mnist", "annotations": {
    WHY: '{"why":"2 of 4 members fit: 2 nvidia.com/gpu short","code":"NoNodeFits"}'}}}


def job(*conditions: tuple[str, str], **status: Any) -> Object:
    listed = [{"type": type_, "status": "True", "reason": "x", "message": message} for type_, message in conditions]
    meta = {"name": "mnist", "namespace": "default"}
    return {"metadata": meta, "spec": {}, "status": {"conditions": listed, **status}}


def pod(index: int, phase: str = "Running", **status: Any) -> Object:
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index)}
    if phase == "Running":
        status["containerStatuses"] = [{"name": "t", "ready": True, "restartCount": 0, "state": {"running": {}}}]
    return {"metadata": {"name": f"mnist-worker-{index}", "uid": f"u{index}", "labels": labels}, "spec": {},
            "status": {"phase": phase, **status}}


def unscheduled(index: int) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu."}
    return pod(index, "Pending", conditions=[condition])


@pytest.mark.parametrize(
    ("thing", "pods", "group", "state", "why"),
    [
        pytest.param(job(("Created", "made")), [], GROUP, "Waiting", "2 of 4 members fit: 2 nvidia.com/gpu short",
                     id="a gang that does not fit waits with the scheduler's reason"),
        pytest.param(job(("Created", "made")), [], None, "Waiting", "no replica has been made yet", id="nothing yet"),
        pytest.param(job(("Created", "made")), [unscheduled(0)], None, "Waiting", "its replica does not run yet",
                     id="pods that wait"),
        pytest.param(job(("Running", "runs")), [pod(0), unscheduled(1)], None, "Running", "1 of 2 replicas run",
                     id="some run"),
        pytest.param(job(("Suspended", "paused")), [], None, "Suspended", "paused", id="a paused job"),
        pytest.param(job(("Succeeded", "done")), [], None, "Succeeded", "done", id="a job that succeeded"),
        pytest.param(job(("Failed", "has failed because 1 Worker")), [], GROUP, "Failed", "has failed because 1 Worker",
                     id="a job that failed, whatever its group says"),
    ],
)
def test_states(thing: Object, pods: list[Object], group: Object | None, state: str, why: str) -> None:
    found = explained("TFJob", thing, pods, group)

    assert (state, why) == (found.state, found.why)


def test_what_waits_is_told_once_for_all_that_wait_for_it() -> None:
    found = explained("TFJob", job(("Created", "made")), [unscheduled(index) for index in range(6)], None)

    (told,) = found.more
    assert "worker-0, worker-1, worker-2, worker-3 and 2 more: 0/1 nodes are available: 1 Insufficient cpu." == told


def test_a_pod_that_cannot_start_waits_for_what_the_node_complains_of() -> None:
    missing = 'MountVolume.SetUp failed for volume "code" : configmap "x" not found'
    said = {"u0": missing, "u1": "what is over"}
    found = explained("TFJob", job(("Created", "made")), [pod(0, "Pending"), pod(1)], None, said)

    assert (f"worker-0: {missing}",) == found.more


def test_a_replica_that_ends_again_and_again_is_told_with_its_end_and_the_remedy() -> None:
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container=t pod=p"}
    last = {"exitCode": 137, "reason": "OOMKilled", "message": "loading\n"}
    failing = pod(0, "Running")
    failing["status"]["containerStatuses"] = [{
        "name": "t", "restartCount": 3, "state": {"waiting": waiting}, "lastState": {"terminated": last}}]
    found = explained("TFJob", job(("Running", "runs")), [failing], None)

    assert ("Restarting", "worker-0 ends each time after the start") == (found.state, found.why)
    assert ("worker-0 was started again 3 times, last after: out of memory", "its last words:", "  loading",
            remedy("", "OOMKilled"), "worker-0: out of memory; is started again after 40s") == found.more


def test_the_first_failure_and_what_followed() -> None:
    ended = [
        {"pod": "mnist-worker-1", "uid": "a", "exitCode": 137, "says": "exit code 137, killed by SIGKILL",
         "reason": "OOMKilled", "node": "vm", "finishedAt": "2026-01-01T00:00:10Z", "lastWords": "step 1\nstep 2"},
        {"pod": "mnist-worker-0", "uid": "b", "exitCode": 1, "reason": "Error",
         "finishedAt": "2026-01-01T00:00:13Z"},
    ]
    found = explained("TFJob", job(("Failed", "failed"), postMortem={"ended": ended}), [], None)

    assert (
        "mnist-worker-1 failed first: exit code 137, killed by SIGKILL, OOMKilled, on node vm",
        "its last words:", "  step 1", "  step 2", remedy("", "OOMKilled"),
        "mnist-worker-0 failed 3 s later: exit code 1; perhaps a consequence",
    ) == found.more
