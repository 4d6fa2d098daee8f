"""Deployments on the embedded server: rolled out, scaled, paused, undone, stuck."""

from typing import Any

from tests.unit.cluster.controllers.workloads.scene import Scene, scene, workload

from trainmaster.api.core import DEPLOYMENTS, EVENTS, REPLICA_SETS
from trainmaster.api.meta import Json, Object, name_of


def deployment(**spec: Any) -> Object:
    return workload("Deployment", **{"replicas": 4, **spec})


async def patch(it: Scene, **spec: Json) -> None:
    await it.client.patch(DEPLOYMENTS, "web", "default", {"spec": spec})


async def set_image(it: Scene, image: str) -> None:
    await patch(it, template={"spec": {"containers": [{"name": "c", "image": image}]}})


async def conditions(it: Scene) -> dict[str, tuple[str, str]]:
    found = (await it.client.get(DEPLOYMENTS, "web", "default"))["status"].get("conditions") or ()
    return {each["type"]: (each["status"], each["reason"]) for each in found}


async def revisions(it: Scene) -> dict[str, tuple[str, int]]:
    """Image of each set: its revision and size."""
    found = (await it.client.list(REPLICA_SETS, "default")).items
    return {one["spec"]["template"]["spec"]["containers"][0]["image"]:
            (one["metadata"]["annotations"]["deployment.kubernetes.io/revision"], one["spec"]["replicas"])
            for one in found}


async def test_a_new_one_becomes_available() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, deployment())
        await it.settle()
        early = await conditions(it)
        await it.run(2)
        found = await it.client.get(DEPLOYMENTS, "web", "default")

        assert {"Available": ("False", "MinimumReplicasUnavailable"),
                "Progressing": ("True", "ReplicaSetUpdated")} == early
        assert {"Available": ("True", "MinimumReplicasAvailable"),
                "Progressing": ("True", "NewReplicaSetAvailable")} == await conditions(it)
        counts = {name: count for name, count in found["status"].items() if name != "conditions"}
        assert {"observedGeneration": 1, "replicas": 4, "updatedReplicas": 4, "readyReplicas": 4,
                "availableReplicas": 4, "terminatingReplicas": 0} == counts
        assert "1" == found["metadata"]["annotations"]["deployment.kubernetes.io/revision"]


async def test_a_rollout_keeps_within_its_bounds() -> None:
    async with scene() as it:
        it.begin()
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await it.client.create(DEPLOYMENTS, deployment(strategy=rolling))
        await it.run(2)
        await set_image(it, "i:2")
        seen = []
        for _ in range(12):
            await it.settle()
            alive = [pod for pod in await it.pods() if "deletionTimestamp" not in pod["metadata"]]
            ready = sum(pod["status"].get("conditions", [{}])[0].get("status") == "True" for pod in alive)
            seen.append((len(alive), ready))
            await it.report()
            await it.bury()
        said = [each["message"] for each in (await it.client.list(EVENTS, "default")).items
                if each["reason"] == "ScalingReplicaSet"]

        assert max(alive for alive, _ in seen) == 5
        assert min(ready for _, ready in seen) == 4
        assert {"i:1": ("1", 0), "i:2": ("2", 4)} == await revisions(it)
        assert any(text.startswith("Scaled down replica set web-") and text.endswith(" from 4 to 3") for text in said)


async def test_recreate_has_one_revision_at_a_time() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, deployment(strategy={"type": "Recreate"}))
        await it.run(2)
        await set_image(it, "i:2")
        images = []
        for _ in range(6):
            await it.settle()
            images.append({pod["spec"]["containers"][0]["image"] for pod in await it.pods()})
            await it.report()
            await it.bury()

        assert {"i:1", "i:2"} not in images
        assert {"i:1": ("1", 0), "i:2": ("2", 4)} == await revisions(it)


async def test_an_older_template_is_the_newest_revision_again() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, deployment(replicas=1))
        await it.run(2)
        for image in ("i:2", "i:1"):
            await set_image(it, image)
            await it.run()
        found = (await it.client.get(DEPLOYMENTS, "web", "default"))["metadata"]["annotations"]

        assert {"i:1": ("3", 1), "i:2": ("2", 0)} == await revisions(it)
        assert "3" == found["deployment.kubernetes.io/revision"]


async def test_only_so_many_revisions_are_kept() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, deployment(replicas=1, revisionHistoryLimit=1))
        await it.run(2)
        for image in ("i:2", "i:3", "i:4"):
            await set_image(it, image)
            await it.run()

        assert {"i:3": ("3", 0), "i:4": ("4", 1)} == await revisions(it)


async def test_a_paused_one_is_scaled_but_not_rolled_out() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, deployment())
        await it.run(2)
        await patch(it, paused=True, replicas=6)
        await set_image(it, "i:2")
        await it.run(2)
        paused = (await revisions(it), (await conditions(it))["Progressing"])
        await patch(it, paused=False)
        await it.run(8)

        assert ({"i:1": ("1", 6)}, ("Unknown", "DeploymentPaused")) == paused
        assert {"i:1": ("1", 0), "i:2": ("2", 6)} == await revisions(it)
        assert ("True", "NewReplicaSetAvailable") == (await conditions(it))["Progressing"]


async def test_a_rollout_that_is_scaled_keeps_its_proportions() -> None:
    async with scene() as it:
        it.begin()
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        await it.client.create(DEPLOYMENTS, deployment(replicas=10, strategy=rolling))
        await it.run(2)
        await set_image(it, "i:2")
        await it.settle()      # no pod of it gets ready
        halfway = {image: size for image, (_, size) in (await revisions(it)).items()}
        await patch(it, replicas=30)
        await it.settle()

        assert {"i:1": 8, "i:2": 5} == halfway
        assert {"i:1": 20, "i:2": 13} == {image: size for image, (_, size) in (await revisions(it)).items()}


async def test_a_rollout_that_does_not_move_is_late() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, deployment(progressDeadlineSeconds=60))
        await it.settle(30)
        early = (await conditions(it))["Progressing"]
        await it.settle(90)
        late = (await conditions(it))["Progressing"]
        await it.run(2)

        assert ("True", "ReplicaSetUpdated") == early
        assert ("False", "ProgressDeadlineExceeded") == late
        assert ("True", "NewReplicaSetAvailable") == (await conditions(it))["Progressing"]


async def test_a_name_that_something_else_has_is_passed_over() -> None:
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, deployment(replicas=1))
        await it.settle()
        taken = (await it.client.list(REPLICA_SETS, "default")).items[0]
        await it.client.patch(REPLICA_SETS, name_of(taken), "default", {
            "metadata": {"ownerReferences": None, "labels": {"app": "other"}}})
        await it.run(2)
        found = (await it.client.list(REPLICA_SETS, "default")).items

        assert 1 == (await it.client.get(DEPLOYMENTS, "web", "default"))["status"]["collisionCount"]
        assert 2 == len(found)


async def test_a_count_of_no_collisions_that_somebody_wrote_does_not_stop_the_status() -> None:
    """The server refuses a status without it: a count never goes down."""
    async with scene() as it:
        it.begin()
        await it.client.create(DEPLOYMENTS, deployment(replicas=1))
        await it.run(2)
        await it.client.patch(DEPLOYMENTS, "web", "default", {"status": {"collisionCount": 0}}, subresource="status")
        await patch(it, replicas=2)
        await it.run(2)
        status = (await it.client.get(DEPLOYMENTS, "web", "default"))["status"]

        assert (2, 2, 0) == (status["observedGeneration"], status["readyReplicas"], status["collisionCount"])
