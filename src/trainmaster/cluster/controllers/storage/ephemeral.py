"""Claims of ephemeral volumes: each is made for one pod, from the template in the pod, and goes with it.

The pod is read once, when it appears: following all pods with their specifications would cost every pod something for a
kind of volume that few have. The rest is anybody's claim: bound, provisioned and, since the pod owns it, collected.
"""

import asyncio
from datetime import datetime

from trainmaster.api.claims import claim_of, foreign
from trainmaster.api.core import CLAIMS, PODS
from trainmaster.api.meta import Key, Object, being_deleted, name_of, namespace_of, uid_of
from trainmaster.cluster.controllers.graph import Item
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.recorder import Recorder


async def run(client: Client, clock: Clock, inventory: Inventory) -> None:
    """Make them until cancelled."""
    maker = Maker(client, clock)
    inventory.on_change(maker.something_changed)
    await maker.controller.run()


class Maker:
    """A key is that of a pod."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._recorder = Recorder(client, "ephemeral_volume", clock)
        self.controller: Controller[Key] = Controller("ephemeral-volumes", self.reconcile, clock=clock, workers=2)

    def something_changed(self, before: Item | None, after: Item | None) -> None:
        if before is None and after is not None and after.resource == PODS:
            self.controller.queue.add(after.key)

    async def reconcile(self, key: Key) -> datetime | None:
        try:
            pod = await self._client.get(PODS, key.name, key.namespace)
        except NotFound:
            return None
        templates = {claim_of(pod, volume): template for volume in pod["spec"].get("volumes") or ()
                     if (template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"))}
        if templates and not being_deleted(pod):
            await asyncio.gather(*(self._make(pod, name, template) for name, template in templates.items()))
        return None

    async def _make(self, pod: Object, name: str, template: Object) -> None:
        try:
            await self._client.create(CLAIMS, claim_from(pod, name, template))
        except AlreadyExists:
            found = await self._client.get(CLAIMS, name, namespace_of(pod))
            if why := foreign(pod, found):
                await self._recorder.event(pod, "Warning", "EphemeralVolumeConflict", why)


def claim_from(pod: Object, name: str, template: Object) -> Object:
    about = template.get("metadata") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod), "controller": True,
             "blockOwnerDeletion": True}
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": template["spec"],
        "metadata": {"name": name, "namespace": namespace_of(pod), "ownerReferences": [owner],
                     **{part: about[part] for part in ("labels", "annotations") if about.get(part)}},
    }
