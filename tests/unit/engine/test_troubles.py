"""What is wrong with pods that have not ended, told on the job."""

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World

from trainmaster.api.meta import Object
from trainmaster.engine import troubles
from trainmaster.engine.actions import Event, warning

PULL = {"name": "tensorflow", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling"}}}
CRASHED = {"name": "tensorflow", "state": {"terminated": {"exitCode": 1, "reason": "Error", "message": "boom"}}}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes fit",
                 "lastTransitionTime": "2030-01-01T12:00:01Z"}
OLDER = {"type": "Initialized", "status": "True", "lastTransitionTime": "2030-01-01T12:00:00Z"}
NEWER = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T12:00:02Z"}


def told(status: Object, *, deleting: bool = False) -> list[Event]:
    it = World(tfjob(roles={"Worker": (1, "OnFailure")}))
    it.settle()
    pod = it.pods["mnist-worker-0"]
    pod["status"] = status
    if deleting:
        pod["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"
    return troubles.of(it.seen)


@pytest.mark.parametrize(("status", "reason", "message"), [
    pytest.param({"phase": "Pending", "containerStatuses": [PULL]}, "ImagePullBackOff",
                 "Error pod mnist-worker-0 container tensorflow waiting message: Back-off pulling",
                 id="a container that cannot start"),
    pytest.param({"phase": "Running", "containerStatuses": [CRASHED]}, "Error",
                 "Error pod mnist-worker-0 container tensorflow exitCode: 1 terminated message: boom",
                 id="a container that died"),
    pytest.param({"phase": "Pending", "initContainerStatuses": [PULL]}, "ImagePullBackOff",
                 "Error pod mnist-worker-0 container tensorflow waiting message: Back-off pulling",
                 id="an init container, if there are no others to look at"),
    pytest.param({"phase": "Pending", "conditions": [UNSCHEDULABLE, OLDER]}, "Unschedulable",
                 "Error pod mnist-worker-0 condition message: 0/1 nodes fit", id="B-48: nobody schedules it"),
])
def test_what_is_told(status: Object, reason: str, message: str) -> None:
    assert [warning(reason, message, "pod-uid-2")] == told(status)


@pytest.mark.parametrize("status", [
    pytest.param({}, id="nothing known yet"),
    pytest.param({"phase": "Pending", "conditions": [UNSCHEDULABLE, NEWER]}, id="the newest condition is fine"),
    pytest.param({"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "New"}}}]},
                 id="it waits without a complaint"),
    pytest.param({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]},
                 id="a container ended well"),
    pytest.param({"phase": "Failed", "containerStatuses": [CRASHED]}, id="the pod has ended: that is told elsewhere"),
])
def test_what_is_not_told(status: Object) -> None:
    assert [] == told(status)


def test_nothing_is_told_about_a_pod_that_is_being_deleted() -> None:
    assert [] == told({"phase": "Pending", "containerStatuses": [PULL]}, deleting=True)
