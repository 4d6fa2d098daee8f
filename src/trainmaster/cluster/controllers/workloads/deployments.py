"""Does what `rollout` decides: makes, sizes and forgets the ReplicaSets of Deployments."""

from datetime import datetime

from trainmaster.api.core import DEPLOYMENTS, REPLICA_SETS
from trainmaster.api.meta import Key, Object, being_deleted, controller_of, name_of, namespace_of, uid_of
from trainmaster.cluster.controllers.workloads import revisions, rollout, rollout_status
from trainmaster.cluster.controllers.workloads.claims import claim
from trainmaster.cluster.controllers.workloads.following import Dependents, Followed, workloads
from trainmaster.cluster.controllers.workloads.hands import later
from trainmaster.cluster.controllers.workloads.replicas import wanted
from trainmaster.cluster.controllers.workloads.rollout import Sizes
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.recorder import Recorder


def selector_of(deployment: Object) -> Object:
    return (deployment.get("spec") or {}).get("selector") or {}


class Deployments:
    """A key is that of a Deployment."""

    def __init__(self, client: Client, clock: Clock, sets: Dependents) -> None:
        self._client = client
        self._clock = clock
        self._sets = sets
        self._recorder = Recorder(client, "deployment-controller", clock)
        self.followed = Followed(
            DEPLOYMENTS, workloads(client, DEPLOYMENTS, clock), sets, clock, selector_of, self.reconcile
        )

    async def reconcile(self, key: Key) -> datetime | None:
        deployment = self.followed.get(key)
        if deployment is None:
            return None    # deleted: the garbage collector has the rest
        selector, now = selector_of(deployment), self._clock.now()
        try:
            sets = await claim(
                self._client, DEPLOYMENTS, deployment, selector, REPLICA_SETS,
                self._sets.candidates(deployment, selector), self._sets.recent,
            )
            if being_deleted(deployment):
                new = revisions.newest(deployment, sets)
                step = Sizes(deployment, new, [one for one in sets if one is not new])
            else:
                step = rollout.decide(deployment, sets)
            failure = await self._act(step)
            told = rollout_status.status(step, now, str(failure) if failure else "")
            await self._write(step, told)
        except NotFound:
            return None    # it went while we looked at it, or its namespace did
        if failure is not None:
            raise later(failure)
        return rollout_status.look_again_at(deployment, told)

    async def _act(self, step: Sizes) -> KubeError | None:
        """Make and size the sets; why the new one could not be made, if so."""
        surge, _ = rollout.bounds(step.deployment)
        if step.creates is not None:
            failure = await self._create(step, surge)
            if failure is not None:
                return failure
        if being_deleted(step.deployment):
            return None
        for one in step.all:
            if one is not step.creates and not being_deleted(one):
                await self._update(step, one, surge)
        for one in step.deletes:
            await self._client.delete(REPLICA_SETS, name_of(one), namespace_of(one), uid=uid_of(one))
            self._sets.recent.deleted(uid_of(one))
        return None

    async def _create(self, step: Sizes, surge: int) -> KubeError | None:
        new, deployment = step.creates, step.deployment
        assert new is not None, "called when there is one to make"
        size = step.size(new)
        new["spec"]["replicas"] = size
        new["metadata"]["annotations"] = revisions.sized(new["metadata"]["annotations"], step.replicas, surge)
        try:
            made = await self._client.create(REPLICA_SETS, new)
        except AlreadyExists as taken:
            found = await self._client.get(REPLICA_SETS, name_of(new), namespace_of(new))
            ours = (controller_of(found) or {}).get("uid") == uid_of(deployment)
            if not ours or not revisions.same_template(deployment, found):
                await self._count_collision(deployment)
                return taken
            made = found      # ours, made before we died or before the copy showed it
        except KubeError as problem:
            said = f"Failed to create new replica set \"{name_of(new)}\": {problem}"
            await self._recorder.event(deployment, "Warning", "ReplicaSetCreateError", said)
            return problem
        self._sets.recent.made(made)
        if size:
            await self._tell_size(deployment, new, 0, size)
        return None

    async def _count_collision(self, deployment: Object) -> None:
        """Another template has the name: the next try takes another."""
        status = deployment.get("status") or {}
        told = {**deployment, "status": {**status, "collisionCount": int(status.get("collisionCount") or 0) + 1}}
        self.followed.written(await self._client.replace(DEPLOYMENTS, told, subresource="status"))

    async def _update(self, step: Sizes, one: Object, surge: int) -> None:
        """Bring the size of a set, and what it says of itself, to where they should be."""
        before, after, deployment = wanted(one), step.size(one), step.deployment
        annotations, spec = revisions.annotations_of(one), one["spec"]
        if one is step.new:
            number = revisions.next_revision(step.old)
            annotations = revisions.described(one, deployment, number, copies=True)
            ready = deployment["spec"].get("minReadySeconds") or 0
            spec = {**spec, "minReadySeconds": ready} if spec.get("minReadySeconds", 0) != ready else spec
        if one is step.new or name_of(one) in step.sizes:
            annotations = revisions.sized(annotations, step.replicas, surge)
        if after != before:
            spec = {**spec, "replicas": after}
        if spec is one["spec"] and annotations == revisions.annotations_of(one):
            return
        changed = {**one, "metadata": {**one["metadata"], "annotations": annotations}, "spec": spec}
        self._sets.recent.written(await self._client.replace(REPLICA_SETS, changed))
        if after != before:
            await self._tell_size(deployment, one, before, after)

    async def _tell_size(self, deployment: Object, one: Object, before: int, after: int) -> None:
        word = "up" if after > before else "down"
        said = f"Scaled {word} replica set {name_of(one)} from {before} to {after}"
        await self._recorder.event(deployment, "Normal", "ScalingReplicaSet", said)

    async def _write(self, step: Sizes, status: Object) -> None:
        deployment = step.deployment
        if step.new is not None and not being_deleted(deployment):
            number = revisions.described(
                step.new, deployment, revisions.next_revision(step.old), copies=False)[revisions.REVISION]
            if revisions.annotations_of(deployment).get(revisions.REVISION) != number:
                change = {"metadata": {"annotations": {revisions.REVISION: number}}}
                deployment = await self._client.patch(
                    DEPLOYMENTS, name_of(deployment), namespace_of(deployment), change, subresource="status")
                self.followed.written(deployment)
        if status != (deployment.get("status") or {}):
            told = {**deployment, "status": status}
            self.followed.written(await self._client.replace(DEPLOYMENTS, told, subresource="status"))
