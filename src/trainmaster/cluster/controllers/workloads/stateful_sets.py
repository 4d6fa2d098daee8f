"""Keeps the pods, claims and revisions of StatefulSets."""

from collections.abc import Sequence
from datetime import datetime

from trainmaster.api.core import CLAIMS, PODS, STATEFUL_SETS
from trainmaster.api.meta import Key, Object, Resource, controller_of, name_of, namespace_of, uid_of
from trainmaster.cluster.controllers.workloads import ordinals
from trainmaster.cluster.controllers.workloads.claims import claim
from trainmaster.cluster.controllers.workloads.following import Dependents, Followed, workloads
from trainmaster.cluster.controllers.workloads.hands import Hands, Words, later
from trainmaster.cluster.controllers.workloads.hashing import short_hash
from trainmaster.cluster.controllers.workloads.pods import reference
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, KubeError, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.recorder import Recorder

REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
_WORDS = Words(
    created="Create Pod {name} in StatefulSet {owner} successful",
    refused="Create Pod {name} in StatefulSet {owner} failed error: {problem}",
    deleted="Delete Pod {name} in StatefulSet {owner} successful",
    stayed="Delete Pod {name} in StatefulSet {owner} failed error: {problem}",
)


def selector_of(thing: Object) -> Object:
    return (thing.get("spec") or {}).get("selector") or {}


class StatefulSets:
    """A key is that of a StatefulSet."""

    def __init__(self, client: Client, clock: Clock, pods: Dependents, revisions: Dependents) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._revisions = revisions
        self._hands = Hands(client, PODS, pods.recent, Recorder(client, "statefulset-controller", clock), _WORDS)
        self.followed = Followed(
            STATEFUL_SETS, workloads(client, STATEFUL_SETS, clock), pods, clock, selector_of, self.reconcile,
            also=[revisions.informer],
        )

    async def reconcile(self, key: Key) -> datetime | None:
        owner = self.followed.get(key)
        if owner is None:
            return None    # deleted: the garbage collector has the rest
        selector, now = selector_of(owner), self._clock.now()
        try:
            pods = await claim(
                self._client, STATEFUL_SETS, owner, selector, PODS, self._pods.candidates(owner, selector),
                self._pods.recent,
            )
            update = await self._revision(owner)
            known = {name_of(one): one for one in [*self._revisions.of(owner), update]}
            current = known.get(str((owner.get("status") or {}).get("currentRevision")), update)
            todo = ordinals.plan(owner, pods, name_of(update), now)
            failure = await self._hands.delete(owner, todo.delete)
            for number in todo.create:
                failure = failure or await self._create(
                    owner, number, update if ordinals.is_updated(owner, number) else current)
            status = ordinals.status(owner, pods, name_of(current), name_of(update), now)
            await self._write(owner, status)
            await self._forget(owner, pods, {name_of(update), name_of(current)}, list(known.values()))
        except NotFound:
            return None    # it went while we looked at it, or its namespace did
        if failure is not None:
            raise later(failure)
        return ordinals.look_again_at(owner, pods, now)

    async def _create(self, owner: Object, number: int, revision: Object) -> KubeError | None:
        for wanted in ordinals.claims_of(owner, number):
            try:
                await self._client.create(CLAIMS, wanted)
            except AlreadyExists:
                continue      # of the pod that was here before
            except KubeError as problem:
                whose = f"Pod {name_of(owner)}-{number} in StatefulSet {name_of(owner)}"
                said = f"Create Claim {name_of(wanted)} for {whose} failed error: {problem}"
                await self._hands.tell(owner, "Warning", "FailedCreate", said)
                return problem
        template = revision["data"]["spec"]["template"]
        pod = ordinals.pod_of(owner, template, number, name_of(revision))
        _, failure = await self._hands.create(owner, [pod])
        if isinstance(failure, AlreadyExists):
            found = await self._client.get(PODS, name_of(pod), namespace_of(owner))
            if (controller_of(found) or {}).get("uid") == uid_of(owner):
                self._pods.recent.made(found)
                return None
        return failure

    async def _revision(self, owner: Object) -> Object:
        """The revision of the set's template, made if it is new, the newest if it was there before."""
        template = owner["spec"]["template"]
        mine = sorted(self._revisions.of(owner), key=lambda one: int(one.get("revision") or 0))
        last = int(mine[-1].get("revision") or 0) if mine else 0
        same = [one for one in mine if one["data"]["spec"]["template"] == template]
        if same:
            one = same[-1]
            if one is not mine[-1]:
                one = await self._client.replace(REVISIONS, {**one, "revision": last + 1})
                self._revisions.recent.written(one)
            return one
        collisions = (owner.get("status") or {}).get("collisionCount")
        labels = {**((template.get("metadata") or {}).get("labels") or {})}
        one = {
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": last + 1,
            "metadata": {"name": f"{name_of(owner)}-{short_hash(template, collisions or None)}",
                         "namespace": namespace_of(owner), "labels": labels, "ownerReferences": [reference(owner)]},
            "data": {"spec": {"template": template}},
        }
        try:
            made = await self._client.create(REVISIONS, one)
        except AlreadyExists:
            made = await self._client.get(REVISIONS, name_of(one), namespace_of(owner))
            if (controller_of(made) or {}).get("uid") != uid_of(owner) or made["data"] != one["data"]:
                status = {**(owner.get("status") or {}), "replicas": 0, "collisionCount": int(collisions or 0) + 1}
                await self._write(owner, status)
                raise
        self._revisions.recent.made(made)
        return made

    async def _write(self, owner: Object, status: Object) -> None:
        if status != (owner.get("status") or {}):
            told = {**owner, "status": status}
            self.followed.written(await self._client.replace(STATEFUL_SETS, told, subresource="status"))

    async def _forget(self, owner: Object, pods: Sequence[Object], live: set[str], revisions: list[Object]) -> None:
        """Old revisions that no pod is of, beyond as many as are to be kept."""
        used = live | {str((pod["metadata"].get("labels") or {}).get(ordinals.HASH)) for pod in pods}
        old = sorted((one for one in revisions if name_of(one) not in used), key=lambda one: int(one["revision"]))
        limit = owner["spec"].get("revisionHistoryLimit", 10)
        for one in old[: max(0, len(old) - limit)]:
            await self._client.delete(REVISIONS, name_of(one), namespace_of(one), uid=uid_of(one))
            self._revisions.recent.deleted(uid_of(one))
