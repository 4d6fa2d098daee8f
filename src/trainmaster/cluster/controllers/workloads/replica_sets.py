"""Keeps the pods of ReplicaSets and ReplicationControllers, which differ in where they live and how they select."""

from datetime import datetime

from trainmaster.api.core import PODS, REPLICA_SETS
from trainmaster.api.meta import Key, Object, Resource
from trainmaster.cluster.controllers.workloads import replicas
from trainmaster.cluster.controllers.workloads.claims import claim
from trainmaster.cluster.controllers.workloads.following import Dependents, Followed, workloads
from trainmaster.cluster.controllers.workloads.hands import Hands, later
from trainmaster.cluster.controllers.workloads.pods import from_template
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.recorder import Recorder

REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController")
_COMPONENTS = {REPLICA_SETS: "replicaset-controller", REPLICATION_CONTROLLERS: "replication-controller"}


def selector_of(thing: Object) -> Object:
    """What a ReplicaSet selects by; a ReplicationController has plain labels."""
    selector: Object = (thing.get("spec") or {}).get("selector") or {}
    return {"matchLabels": selector} if thing.get("kind") == REPLICATION_CONTROLLERS.kind else selector


class ReplicaSets:
    """A key is that of a ReplicaSet, or of a ReplicationController: one of these for each kind."""

    def __init__(self, resource: Resource, client: Client, clock: Clock, pods: Dependents) -> None:
        self._resource = resource
        self._client = client
        self._clock = clock
        self._pods = pods
        self._hands = Hands(client, PODS, pods.recent, Recorder(client, _COMPONENTS[resource], clock))
        self.followed = Followed(
            resource, workloads(client, resource, clock), pods, clock, selector_of, self.reconcile
        )

    async def reconcile(self, key: Key) -> datetime | None:
        thing = self.followed.get(key)
        if thing is None:
            return None    # deleted: the garbage collector has the rest
        selector, now = selector_of(thing), self._clock.now()
        try:
            pods = await claim(
                self._client, self._resource, thing, selector, PODS, self._pods.candidates(thing, selector),
                self._pods.recent,
            )
            todo = replicas.plan(thing, pods)
            template = thing["spec"].get("template") or {}
            _, failure = await self._hands.create(thing, [from_template(template, thing)] * todo.create)
            failure = await self._hands.delete(thing, todo.delete) or failure
            await self._write(thing, replicas.status(
                thing, pods, str(failure) if failure else "", now,
                counts_terminating=self._resource is REPLICA_SETS,
            ))
        except NotFound:
            return None    # it went while we looked at it, or its namespace did
        if failure is not None:
            raise later(failure)
        return replicas.look_again_at(thing, pods, now)

    async def _write(self, thing: Object, status: Object) -> None:
        if status != (thing.get("status") or {}):
            told = {**thing, "status": status}
            self.followed.written(await self._client.replace(self._resource, told, subresource="status"))
