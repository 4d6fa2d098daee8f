"""StatefulSets on the embedded server: in order, all at once, updated from the last, with claims that stay."""

from datetime import UTC, datetime
from typing import Any

from tests.unit.cluster.controllers.workloads.scene import Scene, scene, workload

from trainmaster.api.core import CLAIMS, EVENTS, PODS, STATEFUL_SETS
from trainmaster.api.meta import Json, Object, name_of
from trainmaster.cluster.controllers.workloads.ordinals import plan
from trainmaster.cluster.controllers.workloads.replicas import MOST_AT_ONCE
from trainmaster.cluster.controllers.workloads.stateful_sets import REVISIONS


def stateful(**spec: Any) -> Object:
    return workload("StatefulSet", **{"replicas": 3, "serviceName": "svc", **spec})


async def names(it: Scene) -> list[str]:
    return [name_of(pod) for pod in await it.pods()]


async def images(it: Scene) -> dict[str, str]:
    return {name_of(pod): pod["spec"]["containers"][0]["image"] for pod in await it.pods()}


async def patch(it: Scene, **spec: Json) -> None:
    await it.client.patch(STATEFUL_SETS, "web", "default", {"spec": spec})


async def set_image(it: Scene, image: str) -> None:
    await patch(it, template={"spec": {"containers": [{"name": "c", "image": image}]}})


async def counts(it: Scene) -> Object:
    status = (await it.client.get(STATEFUL_SETS, "web", "default"))["status"]
    return {name: value for name, value in status.items() if name.endswith("eplicas")}


async def test_pods_come_one_by_one_and_go_from_the_last() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(STATEFUL_SETS, stateful())
        seen = []
        for _ in range(4):
            await it.settle()
            seen.append(len(await names(it)))
            await it.report()
        full = await counts(it)
        pod = (await it.pods())[0]
        await patch(it, replicas=1)
        for _ in range(4):
            await it.settle()
            await it.bury()
        events = {each["message"] for each in (await it.client.list(EVENTS, "default")).items}

        assert [1, 2, 3, 3] == seen
        assert set(full.values()) == {3}
        assert 5 == len(full)
        assert ["web-0"] == await names(it)
        assert ("web-0", "svc", "0") == (pod["spec"]["hostname"], pod["spec"]["subdomain"],
                                         pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"])
        assert {"Create Pod web-0 in StatefulSet web successful",
                "Delete Pod web-2 in StatefulSet web successful"} <= events


async def test_in_parallel_nobody_waits() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(STATEFUL_SETS, stateful(podManagementPolicy="Parallel", ordinals={"start": 5}))
        await it.settle()

        assert ["web-5", "web-6", "web-7"] == await names(it)


async def test_an_update_goes_from_the_last_to_the_partition() -> None:
    async with scene() as it:
        it.begin()
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
        await it.client.create(STATEFUL_SETS, stateful(updateStrategy=strategy))
        await it.run(4)
        await it.bind()
        await set_image(it, "i:2")
        await it.settle()
        first = [name_of(pod) for pod in await it.pods() if "deletionTimestamp" in pod["metadata"]]
        await it.run(6)
        partial = await images(it)
        await it.client.delete(PODS, "web-0", "default", grace=0)
        await it.run(2)
        again = (await images(it))["web-0"]
        await patch(it, updateStrategy={"rollingUpdate": {"partition": 0}})
        await it.run(3)
        status = (await it.client.get(STATEFUL_SETS, "web", "default"))["status"]

        assert ["web-2"] == first
        assert {"web-0": "i:1", "web-1": "i:2", "web-2": "i:2"} == partial
        assert "i:1" == again      # the old revision is remembered
        assert {"i:2"} == set((await images(it)).values())
        assert status["currentRevision"] == status["updateRevision"]
        assert 2 == len((await it.client.list(REVISIONS, "default")).items)


async def test_each_pod_has_a_claim_that_its_successor_gets() -> None:
    async with scene() as it:
        it.begin()
        size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await it.client.create(STATEFUL_SETS, stateful(
            replicas=2, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": size}]))
        await it.run(3)
        await it.client.delete(PODS, "web-1", "default", grace=0)
        await it.run(2)
        pod = await it.client.get(PODS, "web-1", "default")

        assert ["data-web-0", "data-web-1"] == [name_of(one) for one in (await it.client.list(CLAIMS, "default")).items]
        assert "data-web-1" == pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]


async def test_a_pod_that_failed_is_made_again() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(STATEFUL_SETS, stateful(replicas=1))
        await it.run(1)
        before = (await it.pods())[0]["metadata"]["uid"]
        await it.report(phase="Failed")
        await it.run(2)
        after = await it.pods()

        assert ["web-0"] == [name_of(pod) for pod in after]
        assert before != after[0]["metadata"]["uid"]


def test_a_set_of_billions_is_begun_with_as_many_pods_as_are_made_at_once() -> None:
    billions = stateful(replicas=2**31 - 1, podManagementPolicy="Parallel")

    assert tuple(range(MOST_AT_ONCE)) == plan(billions, [], "r", datetime(2026, 1, 1, tzinfo=UTC)).create
