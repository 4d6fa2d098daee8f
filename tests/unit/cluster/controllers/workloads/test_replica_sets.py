"""ReplicaSets and ReplicationControllers on the embedded server: made, scaled, adopted, released, refused."""

import pytest
from tests.unit.cluster.controllers.workloads.scene import Scene, scene, template, workload

from trainmaster.api.core import EVENTS, PODS, REPLICA_SETS
from trainmaster.api.meta import Object, Resource, controller_of, name_of
from trainmaster.cluster.controllers.quotas import QUOTAS
from trainmaster.cluster.controllers.workloads.replica_sets import REPLICATION_CONTROLLERS

BOTH = pytest.mark.parametrize(("resource", "made"), [
    pytest.param(REPLICA_SETS, workload("ReplicaSet", replicas=3), id="a replica set"),
    pytest.param(REPLICATION_CONTROLLERS, workload("ReplicationController", "v1", replicas=3),
                 id="a replication controller"),
])



async def status(it: Scene, resource: Resource) -> Object:
    found: Object = (await it.client.get(resource, "web", "default"))["status"]
    return {name: count for name, count in found.items() if name != "observedGeneration"}


@BOTH
async def test_it_has_as_many_pods_as_it_wants(resource: Resource, made: Object) -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(resource, made)
        await it.settle()
        seen = [len(await it.pods())]
        await it.run(1)
        counted = await status(it, resource)
        await it.client.patch(resource, "web", "default", {"spec": {"replicas": 1}})
        await it.run(2)
        seen.append(len(await it.pods()))
        await it.client.delete(PODS, name_of((await it.pods())[0]), "default")
        await it.run(2)
        seen.append(len(await it.pods()))

        assert [3, 1, 1] == seen
        counted.pop("terminatingReplicas", None)
        assert {"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 3, "availableReplicas": 3} == counted


@BOTH
async def test_orphans_are_adopted_and_those_that_do_not_match_let_go(resource: Resource, made: Object) -> None:
    async with scene() as it:
        it.begin()
        orphan = {"apiVersion": "v1", "kind": "Pod", **template()}
        orphan["metadata"] = {**orphan["metadata"], "name": "orphan", "namespace": "default"}
        await it.client.create(PODS, orphan)
        await it.client.create(resource, made)
        await it.settle()
        adopted = controller_of(await it.client.get(PODS, "orphan", "default"))
        before = len(await it.pods())
        await it.client.patch(PODS, "orphan", "default", {"metadata": {"labels": {"app": "other"}}})
        await it.settle()
        released = controller_of(await it.client.get(PODS, "orphan", "default"))

        assert adopted is not None
        assert ("web", 3, None, 4) == (adopted["name"], before, released, len(await it.pods()))


async def test_a_pod_is_available_when_it_was_ready_for_long_enough() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(REPLICA_SETS, workload("ReplicaSet", replicas=1, minReadySeconds=30))
        await it.settle()
        await it.report()
        await it.settle(5)
        early = await status(it, REPLICA_SETS)
        await it.settle(40)

        assert (1, None) == (early["readyReplicas"], early.get("availableReplicas"))
        assert 1 == (await status(it, REPLICA_SETS))["availableReplicas"]


@BOTH
async def test_a_quota_that_is_full_is_said_once_and_not_a_thousand_times(resource: Resource, made: Object) -> None:
    async with scene() as it:
        it.begin()
        quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"pods": "1"}}}
        await it.client.create(QUOTAS, quota)
        full = {"hard": {"pods": "1"}, "used": {"pods": "0"}}
        await it.client.patch(QUOTAS, "q", "default", {"status": full}, subresource="status")
        await it.client.create(resource, {**made, "spec": {**made["spec"], "replicas": 50}})
        await it.settle(0.1)
        events = [each for each in (await it.client.list(EVENTS, "default")).items if each["type"] == "Warning"]
        condition = (await status(it, resource))["conditions"][0]

        assert 1 == len(await it.pods())
        assert 0 < len(events) < 15     # tried again a few times, ever more slowly
        assert ("ReplicaFailure", "True", "FailedCreate") == tuple(condition[f] for f in ("type", "status", "reason"))
        assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in condition["message"]
