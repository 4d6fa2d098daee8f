"""Volumes and where they come from: PersistentVolume, PersistentVolumeClaim, StorageClass, and the kinds of drivers.

A claim in use and a volume in use must not vanish under a pod: both are born with a finalizer. A volume that nobody is
bound to, and a claim that no pod on a node names, lose theirs in the write that deletes them; the last such pod of a
claim that waits takes it along when it goes. In Kubernetes a controller does this a moment later.
"""

import posixpath
from collections.abc import Iterable, Iterator
from datetime import datetime

from trainmaster.api import quantity
from trainmaster.api.claims import claims_of
from trainmaster.api.meta import Json, Object, timestamp
from trainmaster.cluster.apiserver import causes, checks, labels, names, other_columns, statuses
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

CLAIM_PROTECTION, VOLUME_PROTECTION = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_ACCESS = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODES = ("Block", "Filesystem")
PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_SOURCES = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
    "gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume",
    "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
)
_SPEC_STAYS = ("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
               "claims")
_SOURCES_OF_CLAIMS = {("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")}
_REFERENCE = ("apiGroup", "kind", "name")
_LIVES = ("Persistent", "Ephemeral")
_LONGEST_NODE_ID = 256


def _protected(thing: Object, finalizer: str) -> None:
    found = thing["metadata"].setdefault("finalizers", [])
    if finalizer not in found:
        found.append(finalizer)


def _access_rules(modes: Json, path: str) -> Iterator[Cause]:
    for mode in modes or ():
        yield from checks.choice(mode, path, _ACCESS)
    if "ReadWriteOncePod" in (modes or ()) and len(modes) > 1:
        yield causes.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _volume_begin(volume: Object) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": volume["metadata"]["creationTimestamp"]}
    _protected(volume, VOLUME_PROTECTION)


def stamp(volume: Object, old: Object, now: datetime) -> None:
    """Note when the phase of a volume changed, unless whoever changed it does."""
    status, was = volume.get("status") or {}, old.get("status") or {}
    said, before = status.get("lastPhaseTransitionTime"), was.get("lastPhaseTransitionTime")
    if status.get("phase") == was.get("phase"):
        if said is None and before is not None:
            volume["status"] = {**status, "lastPhaseTransitionTime": before}
    elif said in (None, before):
        volume["status"] = {**status, "lastPhaseTransitionTime": timestamp(now)}


def _volume_defaults(volume: Object) -> None:
    spec = volume.setdefault("spec", {})
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    if isinstance(spec.get("hostPath"), dict):
        spec["hostPath"].setdefault("type", "")


def _volume_ending(volume: Object, _now: datetime) -> Object:
    """A volume that no claim holds needs no protection."""
    if (volume.get("status") or {}).get("phase") == "Bound":
        return volume
    return _without(volume, VOLUME_PROTECTION)


def uses(pod: Object, claim: str) -> bool:
    """Whether a pod on a node has the claim. One that has no node yet will not be started with a claim that goes."""
    spec = pod.get("spec") or {}
    return bool(spec.get("nodeName")) and claim in claims_of(pod)


def class_for(claim: Object, classes: Iterable[Object]) -> str:
    """The class that a new claim gets because it names none; "" if it does, or if there is none to give."""
    old = (claim["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    if claim["spec"].get("storageClassName") is not None or old is not None:
        return ""
    marked = [(class_["metadata"]["creationTimestamp"], class_["metadata"]["name"]) for class_ in classes
              if (class_["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"]
    return max(marked, default=("", ""))[1]


def unprotected(claim: Object) -> Object:
    return _without(claim, CLAIM_PROTECTION)


def _without(thing: Object, finalizer: str) -> Object:
    left = [each for each in thing["metadata"].get("finalizers") or () if each != finalizer]
    meta = {**thing["metadata"], "finalizers": left}
    if not left:
        del meta["finalizers"]
    return {**thing, "metadata": meta}


def _volume_rules(volume: Object, old: Object | None) -> Iterator[Cause]:
    spec = volume["spec"]
    yield from _capacity_rules(spec.get("capacity"))
    if not spec.get("accessModes"):
        yield causes.required("spec.accessModes")
    yield from _access_rules(spec.get("accessModes"), "spec.accessModes")
    sources = [source for source in _SOURCES if spec.get(source) is not None]
    if not sources:
        yield causes.required("spec", "must specify a volume type")
    for source in _later(sources):
        yield causes.forbidden(f"spec.{source}", "may not specify more than 1 volume type")
    yield from _path_rules(spec)
    yield from checks.choice(spec["persistentVolumeReclaimPolicy"], "spec.persistentVolumeReclaimPolicy",
                             ("Delete", "Recycle", "Retain"))
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" and _is_root((spec.get("hostPath") or {}).get("path")):
        yield causes.forbidden("spec.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'")
    if spec.get("storageClassName"):
        yield from names.refused("spec.storageClassName", spec["storageClassName"],
                                 names.subdomain(spec["storageClassName"]))
    yield from checks.choice(spec["volumeMode"], "spec.volumeMode", _MODES)
    if old is not None:
        was = old["spec"]
        if {source: spec.get(source) for source in _SOURCES} != {source: was.get(source) for source in _SOURCES}:
            yield causes.forbidden("spec.persistentvolumesource",
                                   "spec.persistentvolumesource is immutable after creation")
        yield from checks.unchanged(spec["volumeMode"], was.get("volumeMode"), "volumeMode")


def _later(sources: list[str]) -> list[str]:
    """All but the one that Kubernetes looks at first."""
    order = ["hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs"]
    return sorted(sources, key=lambda source: order.index(source) if source in order else len(order))[1:]


def _capacity_rules(capacity: Json) -> Iterator[Cause]:
    if not capacity:
        yield causes.required("spec.capacity")
    if list(capacity or ()) != ["storage"]:
        yield causes.unsupported("spec.capacity", capacity, ("storage",))
    for name, amount in (capacity or {}).items():
        if quantity.parse(amount) <= 0:
            yield causes.invalid(f"spec.capacity[{name}]", str(amount), "must be greater than zero")


def _path_rules(spec: Object) -> Iterator[Cause]:
    for source in ("hostPath", "local"):
        path = (spec.get(source) or {}).get("path")
        if spec.get(source) is None:
            continue
        if not path:
            yield causes.required(f"spec.{source}.path")
        elif ".." in path.split("/"):
            yield causes.invalid(f"spec.{source}.path", path, "must not contain '..'")
    kind = (spec.get("hostPath") or {}).get("type")
    if kind is not None:
        yield from checks.choice(kind, "spec.hostPath.type", PATH_TYPES)
    for field in ("driver", "volumeHandle"):
        if spec.get("csi") is not None and not spec["csi"].get(field):
            yield causes.required(f"spec.csi.{field}")
    if spec.get("nodeAffinity") is not None and spec["nodeAffinity"].get("required") is None:
        yield causes.required("spec.nodeAffinity.required", "must specify required node constraints")
    if spec.get("local") is not None and not spec.get("nodeAffinity"):
        yield causes.required("spec.nodeAffinity", "Local volume requires node affinity")


def _is_root(path: Json) -> bool:
    return isinstance(path, str) and posixpath.normpath(path or ".") in {"/", "//"}


def _claim_begin(claim: Object) -> None:
    claim["status"] = {"phase": "Pending"}
    _protected(claim, CLAIM_PROTECTION)


def _claim_defaults(claim: Object) -> None:
    spec = claim.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    source = spec.get("dataSource")
    if isinstance(source, dict) and (source.get("apiGroup") or "", source.get("kind")) not in _SOURCES_OF_CLAIMS:
        del spec["dataSource"]      # an old field, for these only; others have the newer one


def claim_rules(spec: Object, path: str = "spec") -> Iterator[Cause]:
    """The faults of a claim's spec, also that of a template."""
    modes = spec.get("accessModes")
    if not modes:
        yield causes.required(f"{path}.accessModes", "at least 1 access mode is required")
    if spec.get("selector"):
        yield from labels.rules(spec["selector"], f"{path}.selector")
    yield from _access_rules(modes, f"{path}.accessModes")
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if wanted is None:
        yield causes.required(f"{path}.resources[storage]")
    elif quantity.parse(wanted) <= 0:
        yield causes.invalid(f"{path}.resources[storage]", str(wanted), "must be greater than zero")
    if spec.get("storageClassName"):
        yield from names.refused(f"{path}.storageClassName", spec["storageClassName"],
                                 names.subdomain(spec["storageClassName"]))
    yield from checks.choice(spec.get("volumeMode"), f"{path}.volumeMode", _MODES)
    one, other = spec.get("dataSource"), spec.get("dataSourceRef")
    if one is not None and other is not None and not other.get("namespace") \
            and [one.get(field) for field in _REFERENCE] != [other.get(field) for field in _REFERENCE]:
        yield causes.invalid(path, {}, "must match dataSourceRef")


def _claim_rules(claim: Object, old: Object | None) -> Iterator[Cause]:
    spec = claim["spec"]
    yield from claim_rules(spec)
    if old is None:
        return
    was, bound = old["spec"], (old.get("status") or {}).get("phase") == "Bound"
    if _lasting(spec, was, bound=bound) != was:
        yield causes.forbidden("spec", _SPEC_STAYS)
    elif bound and not _at_least(_storage(spec), _storage(was)):
        have = ((old.get("status") or {}).get("capacity") or {}).get("storage")
        if not _at_least(_storage(spec), have if have is not None else _storage(was)):
            yield causes.forbidden("spec.resources.requests.storage",
                                   "field can not be less than status.capacity")


def grows(claim: Object, old: Object) -> bool:
    """Whether a claim asks for more than it did."""
    return not _at_least(_storage(old["spec"]), _storage(claim["spec"]))


def _at_least(amount: Json, other: Json) -> bool:
    return amount is None or other is None or quantity.parse(amount) >= quantity.parse(other)


def _lasting(spec: Object, was: Object, *, bound: bool) -> Object:
    """The new spec with whatever may change put back: a volume is named once, a bound claim may ask for more."""
    result = dict(spec)
    if not was.get("volumeName"):
        result.pop("volumeName", None)
        if was.get("storageClassName") is None:
            result.pop("storageClassName", None)
    if bound:
        for field in ("resources", "volumeAttributesClassName"):
            result.pop(field, None)
            if field in was:
                result[field] = was[field]
    return result


def _storage(spec: Object) -> Json:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage")


def _class_defaults(thing: Object) -> None:
    thing.setdefault("reclaimPolicy", "Delete")
    thing.setdefault("volumeBindingMode", "Immediate")


def _class_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    provisioner = thing.get("provisioner") or ""
    if not provisioner:
        yield causes.required("provisioner")
    else:
        yield from names.refused("provisioner", provisioner, names.qualified(provisioner.lower()))
    if "" in (thing.get("parameters") or {}):
        yield causes.invalid("parameters", "", "field can not be empty.")
    yield from checks.choice(thing["reclaimPolicy"], "reclaimPolicy", ("Delete", "Retain"))
    yield from checks.choice(thing["volumeBindingMode"], "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    if old is not None:
        for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            yield from checks.unchanged(thing.get(field), old.get(field), field)


def _driver_defaults(driver: Object) -> None:
    spec = driver.setdefault("spec", {})
    for field, value in (("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False),
                         ("fsGroupPolicy", "ReadWriteOnceWithFSType"), ("requiresRepublish", False),
                         ("seLinuxMount", False)):
        spec.setdefault(field, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _driver_rules(driver: Object, old: Object | None) -> Iterator[Cause]:
    spec = driver["spec"]
    for mode in spec["volumeLifecycleModes"]:
        yield from checks.choice(mode, "spec.volumeLifecycleModes", _LIVES)
    yield from checks.choice(spec["fsGroupPolicy"], "spec.fsGroupPolicy",
                             ("ReadWriteOnceWithFSType", "File", "None"))
    if old is not None:
        was = old["spec"]
        # The first path is misspelt in Kubernetes too, and clients see it.
        yield from checks.unchanged(spec["attachRequired"], was.get("attachRequired"), "spec.attachedRequired")
        yield from checks.unchanged(spec["volumeLifecycleModes"], was.get("volumeLifecycleModes"),
                                    "spec.volumeLifecycleModes")


def _node_drivers_rules(thing: Object, _old: Object | None) -> Iterator[Cause]:
    taken = set()
    for index, driver in enumerate((thing.get("spec") or {}).get("drivers") or ()):
        path, name, identity = f"spec.drivers[{index}]", driver.get("name") or "", driver.get("nodeID") or ""
        if not name:
            yield causes.required(f"{path}.name")
        if not identity:
            yield causes.required(f"{path}.nodeID")
        elif len(identity) > _LONGEST_NODE_ID:
            yield causes.invalid(f"{path}.nodeID", identity, f"must be {_LONGEST_NODE_ID} characters or less")
        if name in taken:
            yield causes.duplicate(f"{path}.name", name)
        taken.add(name)


def _attachment_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    spec = thing.get("spec") or {}
    if not spec.get("attacher"):
        yield causes.required("spec.attacher")
    source = spec.get("source") or {}
    if bool(source.get("persistentVolumeName")) == bool(source.get("inlineVolumeSpec")):
        yield causes.required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
    node = spec.get("nodeName") or ""
    yield from names.refused("spec.nodeName", node, names.subdomain(node))
    if old is not None and spec != old.get("spec"):
        told = {"Attacher": spec.get("attacher"), "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": source.get("inlineVolumeSpec")}, "NodeName": node}
        yield causes.invalid("spec", told, checks.IMMUTABLE)


KINDS: tuple[Kind, ...] = (
    row("v1", "persistentvolumes", answers_object=True, begin=_volume_begin, defaults=_volume_defaults,
        rules=_volume_rules, status_carry=statuses.phase_defaults, ending=_volume_ending, columns=other_columns.VOLUME),
    row("v1", "persistentvolumeclaims", answers_object=True, begin=_claim_begin, defaults=_claim_defaults,
        rules=_claim_rules, status_carry=statuses.phase_defaults, status_rules=statuses.claim,
        columns=other_columns.CLAIM),
    row("storage.k8s.io/v1", "storageclasses", answers_object=True, defaults=_class_defaults, rules=_class_rules,
        columns=other_columns.STORAGE_CLASS),
    row("storage.k8s.io/v1", "csidrivers", answers_object=True, defaults=_driver_defaults, rules=_driver_rules,
        columns=other_columns.DRIVER),
    row("storage.k8s.io/v1", "csinodes", answers_object=True, rules=_node_drivers_rules,
        columns=other_columns.NODE_DRIVERS),
    row("storage.k8s.io/v1", "volumeattachments", answers_object=True, status_only=True, rules=_attachment_rules,
        columns=other_columns.ATTACHMENT),
)
