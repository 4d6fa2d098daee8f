"""PodDisruptionBudgets: how many pods may go."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.cluster.controllers.workloads.scene import scene, workload

from trainmaster.api.budgets import BUDGETS
from trainmaster.api.core import DEPLOYMENTS, PODS, REPLICA_SETS
from trainmaster.api.meta import Object, timestamp
from trainmaster.cluster.controllers.workloads.budgets import status

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(name: str = "p", *, ready: bool = True, phase: str = "Running", going: bool = False) -> Object:
    about = {"name": name, **({"deletionTimestamp": "2026-01-01T12:00:00Z"} if going else {})}
    truth = "True" if ready else "False"
    return {"metadata": about, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": truth}]}}


@pytest.mark.parametrize(("spec", "pods", "scale", "expected"), [
    pytest.param({"minAvailable": 2}, [pod(), pod(), pod()], 0, (3, 2, 1), id="one more than must stay"),
    pytest.param({"minAvailable": 2}, [pod(), pod(), pod(ready=False)], 0, (3, 2, 0), id="one is not ready"),
    pytest.param({"maxUnavailable": 1}, [pod(), pod(), pod(going=True)], 3, (3, 2, 0), id="one is going already"),
    pytest.param({"maxUnavailable": 1}, [pod(), pod()], 4, (4, 3, 0), id="two are not even made"),
    pytest.param({"minAvailable": "50%"}, [pod(), pod(), pod()], 3, (3, 2, 1), id="a share is rounded up"),
    pytest.param({"maxUnavailable": "100%"}, [pod(), pod()], 2, (2, 0, 2), id="all may go"),
    pytest.param({"minAvailable": 1}, [], 0, (0, 1, 0), id="there are none"),
    pytest.param({}, [pod()], 0, (0, 0, 0), id="it does not say"),
])
def test_pods_that_may_go(spec: Object, pods: list[Object], scale: int, expected: tuple[int, int, int]) -> None:
    found = status({"spec": spec}, pods, scale, NOON)

    assert expected == (found["expectedPods"], found["desiredHealthy"], found["disruptionsAllowed"])
    assert ("True" if expected[2] else "False") == found["conditions"][0]["status"]


@pytest.mark.parametrize(("minutes", "going", "expected"), [
    pytest.param(1, False, (1, {"a": "2026-01-01T11:59:00Z"}), id="evicted, and about to go"),
    pytest.param(1, True, (1, {}), id="evicted, and going"),
    pytest.param(3, False, (2, {}), id="evicted, but it was not deleted"),
])
def test_evicted_pods_do_not_count_until_it_is_clear_that_they_stay(
        minutes: int, going: bool, expected: tuple[int, dict[str, str]]) -> None:
    paid = timestamp(NOON - timedelta(minutes=minutes))
    budget = {"spec": {"minAvailable": 1}, "status": {"disruptedPods": {"a": paid, "gone": paid}}}
    found = status(budget, [pod("a", going=going), pod("b")], 0, NOON)

    assert expected == (found["currentHealthy"], found.get("disruptedPods", {}))


async def test_what_the_controllers_want_is_counted_and_who_has_no_scale_allows_nothing() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, workload("Deployment", replicas=3))
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        about = {"name": "b", "namespace": "default"}
        made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": about, "spec": spec}
        await it.client.create(BUDGETS, made)
        await it.run(1)
        counted = (await it.client.get(BUDGETS, "b", "default"))["status"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
        await it.client.create(PODS, {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "j", "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "main", "image": "x"}]}})
        await it.settle()
        failed = (await it.client.get(BUDGETS, "b", "default"))["status"]

        assert (3, 2, 1) == (counted["expectedPods"], counted["desiredHealthy"], counted["disruptionsAllowed"])
        assert (0, "SyncFailed") == (failed["disruptionsAllowed"], failed["conditions"][0]["reason"])
        assert "jobs.batch does not implement the scale subresource" == failed["conditions"][0]["message"]


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
