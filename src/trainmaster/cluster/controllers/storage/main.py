"""The shell around `binding`: follows claims, volumes, classes and the pods that use claims, and does the next step.

Nothing of it runs before there is a claim or a volume. Events are told once per claim and sentence.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trainmaster.api.claims import claims_of
from trainmaster.api.core import CLAIMS, NODES, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from trainmaster.api.meta import Key, Object, being_deleted, key_of, metadata, name_of, namespace_of, timestamp, uid_of
from trainmaster.api.volumes import BOUND_BY_CONTROLLER, LATER, SELECTED_NODE, class_of, reference_to, selected_node
from trainmaster.cluster.controllers.graph import Item
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.cluster.controllers.reduced import Reduced
from trainmaster.cluster.controllers.storage import binding
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger
from trainmaster.runtime.recorder import Recorder

log = logger("storage")
BY_CLAIM = "claim"


@dataclass(frozen=True, slots=True)
class Directories:
    """Where provisioned volumes are, and how one is deleted with all that is in it."""

    root: Path
    remove: Callable[[Path], None]
    nodes: tuple[str, ...] = ()        # of one machine, which have this disk in common


async def run(client: Client, clock: Clock, inventory: Inventory, directories: Directories) -> None:
    """Until cancelled; at work from the first claim or volume on."""
    needed = asyncio.Event()
    places = {(one.group, one.plural) for one in (CLAIMS, PERSISTENT_VOLUMES)}

    def something_changed(_before: Item | None, after: Item | None) -> None:
        if after is not None and (after.resource.group, after.resource.plural) in places:
            needed.set()

    inventory.on_change(something_changed)
    await needed.wait()
    storage = Storage(client, clock, directories)
    async with asyncio.TaskGroup() as group:
        for informer in storage.informers:
            group.create_task(informer.run())
        group.create_task(storage.controller.run())


class Storage:
    """A key is that of a claim, or of a volume, which has no namespace."""

    def __init__(self, client: Client, clock: Clock, directories: Directories) -> None:
        self._client = client
        self._clock = clock
        self._directories = directories
        self._recorder = Recorder(client, "persistentvolume-controller", clock)
        self._provisioner = Recorder(client, binding.PROVISIONER, clock)
        self._told: dict[str, str] = {}                     # claim UID -> the last sentence
        self.claims = Informer(client, CLAIMS, clock=clock)
        self.volumes = Informer(client, PERSISTENT_VOLUMES, clock=clock)
        self.classes = Informer(client, STORAGE_CLASSES, clock=clock)
        self.pods = Informer(Reduced(client, _kept), PODS, clock=clock, indexes={BY_CLAIM: _claims_of})
        self.informers = (self.claims, self.volumes, self.classes, self.pods)
        self.controller: Controller[Key] = Controller(
            "storage", self.reconcile, clock=clock, workers=2, informers=self.informers
        )
        self.claims.on_change(self._claim_changed)
        self.volumes.on_change(self._volume_changed)
        self.classes.on_change(lambda _before, _after: self._look_at_pending())
        self.pods.on_change(self._pod_changed)

    def _claim_changed(self, before: Object | None, after: Object | None) -> None:
        claim = after or before or {}
        if after is not None:
            self.controller.queue.add(key_of(claim))
        else:
            self._told.pop(uid_of(claim), None)
        if named := claim["spec"].get("volumeName"):
            self.controller.queue.add(Key("", str(named)))
        for volume in self.volumes.copy.all():              # one that was kept for it
            reference = volume["spec"].get("claimRef") or {}
            if (reference.get("namespace"), reference.get("name")) == (namespace_of(claim), name_of(claim)):
                self.controller.queue.add(Key("", name_of(volume)))

    def _volume_changed(self, before: Object | None, after: Object | None) -> None:
        volume = after or before or {}
        if after is not None:
            self.controller.queue.add(Key("", name_of(volume)))
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("name"):
            self.controller.queue.add(Key(str(reference.get("namespace")), str(reference["name"])))
        elif after is not None:
            self._look_at_pending()

    def _look_at_pending(self) -> None:
        for claim in self.claims.copy.all():
            if (claim.get("status") or {}).get("phase") == "Pending":
                self.controller.queue.add(key_of(claim))

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if after is None or (before is not None and _node_of(before) == _node_of(after)):
            return
        for name in claims_of(after):
            self.controller.queue.add(Key(namespace_of(after), name))

    async def reconcile(self, key: Key) -> datetime | None:
        try:
            if key.namespace:
                claim = self.claims.copy.get(key.namespace, key.name)
                if claim is not None:
                    await self._claim(claim)
            else:
                volume = self.volumes.copy.get("", key.name)
                if volume is not None:
                    await self._volume(volume)
        except NotFound:
            return None                                     # deleted meanwhile; its end comes by the watch
        return None

    async def _claim(self, claim: Object) -> None:
        classes = {name_of(one): one for one in self.classes.copy.all()}
        step = binding.for_claim(claim, self.volumes.copy.all(), classes, self._consumer(claim))
        match step:
            case binding.Tell(reason, message, warning):
                await self._tell(claim, reason, message, warning=warning)
            case binding.Classify(name):
                await self._client.replace(CLAIMS, {**claim, "spec": {**claim["spec"], "storageClassName": name}})
            case binding.Ask(provisioner):
                await self._ask(claim, provisioner)
            case binding.Provision(node):
                await self._provision(claim, classes[class_of(claim) or ""], node)
            case binding.Bind(volume):
                await self._bind(claim, volume)
            case binding.Lose(reason, message):
                await self._tell(claim, reason, message, warning=True)
                status = {**(claim.get("status") or {}), "phase": "Lost"}
                await self._client.replace(CLAIMS, {**claim, "status": status}, subresource="status")

    def _consumer(self, claim: Object) -> str | None:
        """The node of the first pod that uses a claim."""
        users = self.pods.copy.by(BY_CLAIM, f"{namespace_of(claim)}/{name_of(claim)}")
        found = sorted((str(metadata(pod).get("creationTimestamp")), name_of(pod), _node_of(pod)) for pod in users
                       if _node_of(pod) and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"))
        return found[0][2] if found else None

    async def _ask(self, claim: Object, provisioner: str, node: str = "") -> Object:
        """Mark the claim for whoever makes its volume, as the controller of Kubernetes does for every provisioner."""
        marks = {binding.PROVISIONER_OF: provisioner, **({SELECTED_NODE: node} if node else {})}
        if not marks.items() <= (metadata(claim).get("annotations") or {}).items():
            claim = await self._client.replace(CLAIMS, _marked(claim, marks))
        await self._tell(claim, "ExternalProvisioning", (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."))
        return claim

    async def _provision(self, claim: Object, class_: Object, node: str) -> None:
        """Every step can be the last: the next one who looks finds the marks, or the volume by its name."""
        if selected_node(claim) and not (await self._client.list(NODES, fields=f"metadata.name={node}")).items:
            await self._choose_again(claim, node)
            return
        claim = await self._ask(claim, binding.PROVISIONER, node)
        place = f"pvc-{uid_of(claim)}_{namespace_of(claim)}_{name_of(claim)}"
        await self._tell(claim, "Provisioning", "External provisioner is provisioning volume for claim "
                                                f'"{namespace_of(claim)}/{name_of(claim)}"', by=self._provisioner)
        seen_by = self._directories.nodes if node in self._directories.nodes else (node,) if node else ()
        made = binding.provisioned(claim, class_, seen_by, str(self._directories.root / place))
        try:
            volume = await self._client.create(PERSISTENT_VOLUMES, made)
        except AlreadyExists:
            volume = await self._client.get(PERSISTENT_VOLUMES, name_of(made))
        await self._tell(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name_of(made)}",
                         by=self._provisioner)
        await self._bind(claim, volume)

    async def _choose_again(self, claim: Object, node: str) -> None:
        """The node that was selected is gone. Without the mark, the scheduler looks for another."""
        left = {key: value for key, value in metadata(claim)["annotations"].items() if key != SELECTED_NODE}
        claim = await self._client.replace(CLAIMS, {**claim, "metadata": {**claim["metadata"], "annotations": left}})
        await self._tell(claim, "ProvisioningFailed", (
            f'failed to provision volume with StorageClass "{class_of(claim)}": failed to get target node: '
            f'nodes "{node}" not found'), warning=True, by=self._provisioner)

    async def _bind(self, claim: Object, volume: Object) -> None:
        """The volume points to the claim, then the claim to the volume, then both say so."""
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid") != uid_of(claim):
            spec = {**volume["spec"], "claimRef": reference_to(claim)}
            marks = {} if reference else {BOUND_BY_CONTROLLER: "yes"}
            volume = await self._client.replace(PERSISTENT_VOLUMES, {**_marked(volume, marks), "spec": spec})
        if (volume.get("status") or {}).get("phase") != "Bound":
            volume = await self._set_phase(volume, "Bound")
        annotations = metadata(claim).get("annotations") or {}
        if claim["spec"].get("volumeName") != name_of(volume) or not annotations.get(binding.BIND_COMPLETED):
            found = {} if claim["spec"].get("volumeName") else {BOUND_BY_CONTROLLER: "yes"}
            marked = _marked(claim, {binding.BIND_COMPLETED: "yes", **found})
            spec = {**claim["spec"], "volumeName": name_of(volume)}
            claim = await self._client.replace(CLAIMS, {**marked, "spec": spec})
        status = {
            **(claim.get("status") or {}), "phase": "Bound", "accessModes": volume["spec"]["accessModes"],
            "capacity": volume["spec"]["capacity"],
        }
        if status != claim.get("status"):
            await self._client.replace(CLAIMS, {**claim, "status": status}, subresource="status")
            log.info("claim bound", claim=f"{namespace_of(claim)}/{name_of(claim)}", volume=name_of(volume))

    async def _volume(self, volume: Object) -> None:
        reference = volume["spec"].get("claimRef") or {}
        claim = await self._named(reference) if reference.get("name") else None
        match binding.for_volume(volume, claim):
            case binding.Phase(name):
                await self._set_phase(volume, name)
            case binding.Reclaim():
                await self._reclaim(volume)
            case binding.Unprotect():
                left = {**metadata(volume), "finalizers": []}
                await self._client.replace(PERSISTENT_VOLUMES, {**volume, "metadata": left})

    async def _named(self, reference: Object) -> Object | None:
        """The claim of a reference. That it is gone is believed only of the server: the copy may be behind."""
        namespace, name = str(reference.get("namespace")), str(reference["name"])
        known = self.claims.copy.get(namespace, name)
        if known is not None and reference.get("uid") in (None, "", uid_of(known)):
            return known
        try:
            return await self._client.get(CLAIMS, name, namespace)
        except NotFound:
            return None

    async def _reclaim(self, volume: Object) -> None:
        place = Path(str((volume["spec"].get("hostPath") or {}).get("path") or ""))
        if (metadata(volume).get("annotations") or {}).get(binding.PROVISIONED_BY) != binding.PROVISIONER:
            await self._recorder.event(volume, "Warning", "VolumeFailedDelete", (
                "this cluster deletes only the volumes that it provisioned; delete its files and the object yourself"))
            await self._set_phase(volume, "Failed")
            return
        if place.parent == self._directories.root:          # never anything else, whatever the object says
            await asyncio.to_thread(self._directories.remove, place)
        await self._client.delete(PERSISTENT_VOLUMES, name_of(volume), uid=uid_of(volume))
        log.info("volume deleted with its claim", volume=name_of(volume))

    async def _set_phase(self, volume: Object, phase: str) -> Object:
        status = {**(volume.get("status") or {}), "phase": phase,
                  "lastPhaseTransitionTime": timestamp(self._clock.now())}
        return await self._client.replace(PERSISTENT_VOLUMES, {**volume, "status": status}, subresource="status")

    async def _tell(self, claim: Object, reason: str, message: str, *, warning: bool = False,
                    by: Recorder | None = None) -> None:
        if self._told.get(uid_of(claim)) != message and not being_deleted(claim):
            self._told[uid_of(claim)] = message
            await (by or self._recorder).event(claim, "Warning" if warning else "Normal", reason, message)


def _marked(thing: Object, marks: dict[str, str]) -> Object:
    annotations = {**(metadata(thing).get("annotations") or {}), **marks}
    return {**thing, "metadata": {**thing["metadata"], "annotations": annotations}} if marks else thing


def _kept(pod: Object) -> Object:
    """What matters of a pod here: where it is, and its claims, which most pods have none of."""
    about, spec = metadata(pod), pod.get("spec") or {}
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    volumes = [volume for volume in spec.get("volumes") or () if volume.get("persistentVolumeClaim")]
    return {"metadata": {field: about[field] for field in fields if field in about},
            "spec": {"nodeName": spec.get("nodeName"), "volumes": volumes},
            "status": {"phase": (pod.get("status") or {}).get("phase")}}


def _node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _claims_of(pod: Object) -> list[str]:
    return [f"{namespace_of(pod)}/{name}" for name in claims_of(pod)]


def local_path() -> Object:
    """The class for claims that name none, as the local-path provisioner installs it."""
    return {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": binding.PROVISIONER,
        "metadata": {"name": "local-path", "annotations": {binding.DEFAULT_CLASS: "true"}},
        "volumeBindingMode": LATER, "reclaimPolicy": "Delete",
    }
