"""PodDisruptionBudgets: how many pods may go."""

from datetime import UTC, datetime

import pytest
from tests.unit.cluster.controllers.workloads.scene import scene, workload

from trainmaster.api.meta import Object
from trainmaster.cluster.controllers.workloads.budgets import BUDGETS, status
from trainmaster.cluster.controllers.workloads.replica_sets import REPLICA_SETS

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(*, ready: bool = True, phase: str = "Running", going: bool = False) -> Object:
    about = {"deletionTimestamp": "2026-01-01T12:00:00Z"} if going else {}
    truth = "True" if ready else "False"
    return {"metadata": about, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": truth}]}}


@pytest.mark.parametrize(("spec", "pods", "expected"), [
    pytest.param({"minAvailable": 2}, [pod(), pod(), pod()], (3, 2, 1), id="one more than must stay"),
    pytest.param({"minAvailable": 2}, [pod(), pod(), pod(ready=False)], (3, 2, 0), id="one is not ready"),
    pytest.param({"maxUnavailable": 1}, [pod(), pod(), pod(going=True)], (3, 2, 0), id="one is going already"),
    pytest.param({"minAvailable": "50%"}, [pod(), pod(), pod()], (3, 2, 1), id="a share is rounded up"),
    pytest.param({"maxUnavailable": 1}, [pod(), pod(phase="Succeeded")], (1, 0, 1), id="one has ended"),
    pytest.param({"minAvailable": 1}, [], (0, 1, 0), id="there are none"),
])
def test_pods_that_may_go(spec: Object, pods: list[Object], expected: tuple[int, int, int]) -> None:
    found = status({"spec": spec}, pods, NOON)

    assert expected == (found["expectedPods"], found["desiredHealthy"], found["disruptionsAllowed"])
    assert ("True" if expected[2] else "False") == found["conditions"][0]["status"]


async def test_a_budget_follows_its_pods() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(REPLICA_SETS, workload("ReplicaSet", replicas=3))
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                  "metadata": {"name": "b", "namespace": "default"},
                  "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}}
        await it.client.create(BUDGETS, budget)
        await it.settle()
        before = (await it.client.get(BUDGETS, "b", "default"))["status"]["disruptionsAllowed"]
        await it.run(1)
        found = (await it.client.get(BUDGETS, "b", "default"))["status"]

        assert (0, 1, 3) == (before, found["disruptionsAllowed"], found["currentHealthy"])
