"""Claims of ephemeral volumes: each is made for one pod, from the template in the pod, and goes with it.

Few pods have such a volume, so only those are read; to ask the server for each new pod was a tenth of what the pod cost
it. The rest is anybody's claim: bound, provisioned and, since the pod owns it, collected.
"""

import asyncio
from datetime import datetime

from trainmaster.api.claims import claim_of, foreign
from trainmaster.api.core import CLAIMS, PODS
from trainmaster.api.meta import Key, Object, being_deleted, key_of, metadata, name_of, namespace_of, uid_of
from trainmaster.cluster.controllers.reduced import Only, Reduced
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.recorder import Recorder


async def run(client: Client, clock: Clock) -> None:
    """Make them until cancelled."""
    maker = Maker(client, clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(maker.pods.run())
        group.create_task(maker.controller.run())


class Maker:
    """A key is that of a pod."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._recorder = Recorder(client, "ephemeral_volume", clock)
        self.pods = Informer(Reduced(client, _kept, only=Only(b'"ephemeral"', _has_templates)), PODS, clock=clock)
        self.controller: Controller[Key] = Controller(
            "ephemeral-volumes", self.reconcile, clock=clock, workers=2, informers=[self.pods]
        )
        self.pods.on_change(self._pod_changed)

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if before is None and after is not None:
            self.controller.queue.add(key_of(after))

    async def reconcile(self, key: Key) -> datetime | None:
        pod = self.pods.copy.get(key.namespace, key.name)
        if pod is not None and not being_deleted(pod):
            await asyncio.gather(*(self._make(pod, name, template) for name, template in _templates(pod).items()))
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


def _templates(pod: Object) -> dict[str, Object]:
    """By the name of the claim that is made of each."""
    return {claim_of(pod, volume): template for volume in (pod.get("spec") or {}).get("volumes") or ()
            if (template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"))}


def _has_templates(pod: Object) -> bool:
    return bool(_templates(pod))


def _kept(pod: Object) -> Object:
    """What matters of a pod here: who it is, and its templates."""
    about = metadata(pod)
    fields = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp")
    volumes = [volume for volume in pod["spec"]["volumes"] if volume.get("ephemeral")]
    return {"apiVersion": pod["apiVersion"], "kind": pod["kind"], "spec": {"volumes": volumes},
            "metadata": {field: about[field] for field in fields if field in about}}
