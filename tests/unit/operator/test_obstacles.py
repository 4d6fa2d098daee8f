"""What keeps the operator from watching, and what to do about it: for everything that happens to people."""

import pytest
from tests.unit.operator.stage import stage

from trainmaster.api.core import AUTOSCALERS, PODS
from trainmaster.api.groups import VOLCANO_GROUPS
from trainmaster.api.kubeflow_v1 import TF_JOB
from trainmaster.api.meta import Resource
from trainmaster.kube.errors import KubeError, Unreachable, from_status
from trainmaster.operator.config import Settings
from trainmaster.operator.obstacles import obstacle
from trainmaster.testing.faults import Answer, on

JOBS = TF_JOB.resource


def answered(code: int, message: str = "no") -> KubeError:
    return from_status(code, {"message": message})


@pytest.mark.parametrize(("resource", "error", "says", "do"), [
    pytest.param(JOBS, answered(404), "the cluster has no TFJob of kubeflow.org/v1", "trainmaster crds | kubectl apply",
                 id="nobody installed the definitions"),
    pytest.param(VOLCANO_GROUPS, answered(404), "no PodGroup of scheduling.volcano.sh/v1beta1",
                 "--gang-scheduler-name", id="nobody installed the gang scheduler"),
    pytest.param(AUTOSCALERS, answered(404), "no HorizontalPodAutoscaler", "only elastic PyTorchJobs",
                 id="a cluster without autoscalers"),
    pytest.param(PODS, answered(403, "pods is forbidden"), "pods is forbidden", "deploy/operator/rbac.yaml",
                 id="an account without rights"),
    pytest.param(PODS, answered(401, "Unauthorized"), "does not know us", "the user in the kubeconfig",
                 id="a token that is not accepted"),
    pytest.param(PODS, answered(500, "etcd is away"), "etcd is away", "nothing yet", id="a server in trouble"),
    pytest.param(PODS, Unreachable("Connection refused"), "Connection refused", "the API server is up",
                 id="nobody there"),
])
def test_an_obstacle_is_told_with_its_remedy(resource: Resource, error: KubeError, says: str, do: str) -> None:
    what, remedy = obstacle(resource, error)

    assert says in what
    assert do in remedy


async def test_it_is_told_once_and_the_operator_begins_when_it_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with stage(Settings(kinds=("TFJob",))) as it:
        it.begin(plan=on("GET", "/tfjobs", *[Answer(404, "NotFound")] * 3))
        await it.clock.advance(60)
        await it.settle()

    told = [record.message for record in caplog.records if record.name == "trainmaster.operator"]
    assert ["cannot watch, trying again: the cluster has no TFJob of kubeflow.org/v1", "operator runs"] == told
