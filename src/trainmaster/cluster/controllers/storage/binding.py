"""What to do next about one claim or one volume. Pure: looked at again after every step, so any step may be the last.

Binding is two writes, the volume's first: a volume that points to a claim is nobody else's, whatever happens then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trainmaster.api.meta import Object, being_deleted, metadata, name_of, uid_of
from trainmaster.api.volumes import (
    LATER,
    NO_PROVISIONER,
    anywhere,
    best_volume,
    class_of,
    points_to,
    reaches,
    reference_to,
    satisfies,
    selected_node,
)

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER_OF = "volume.kubernetes.io/storage-provisioner"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
PROVISIONER = "rancher.io/local-path"


@dataclass(frozen=True, slots=True)
class Nothing:
    """All is as it should be, or nobody can do anything."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Say why a claim waits."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Classify:
    """Give a claim that names no class the default one."""

    name: str


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind a claim and a volume to each other."""

    volume: Object


@dataclass(frozen=True, slots=True)
class Ask:
    """Mark a claim for the provisioner of its class, which somebody else runs."""

    provisioner: str


@dataclass(frozen=True, slots=True)
class Provision:
    """Make a volume for a claim, for the node where it is needed."""

    node: str


@dataclass(frozen=True, slots=True)
class Lose:
    """A bound claim whose volume is gone, or somebody else's."""

    reason: str
    message: str


ClaimStep: TypeAlias = Nothing | Tell | Classify | Bind | Ask | Provision | Lose


def for_claim(
    claim: Object, volumes: Iterable[Object], classes: Mapping[str, Object], node: str | None
) -> ClaimStep:
    """`node` is that of the first pod that was bound though no node was selected for the claim, None while there is
    none. Kubernetes lets such a pod wait for ever."""
    volumes = list(volumes)
    node = selected_node(claim) or node
    annotations = metadata(claim).get("annotations") or {}
    named = str(claim["spec"].get("volumeName") or "")
    if annotations.get(BIND_COMPLETED):
        return _bound(claim, next((one for one in volumes if name_of(one) == named), None))
    if being_deleted(claim):
        return Nothing()
    if named:
        return _asked_for(claim, next((one for one in volumes if name_of(one) == named), None))
    class_name = class_of(claim)
    if class_name is None and (default := default_class(classes)) is not None:
        return Classify(default)
    class_ = classes.get(class_name or "")
    later = class_ is not None and class_.get("volumeBindingMode") == LATER
    if later and node is None:
        kept = best_volume(claim, (one for one in volumes if one["spec"].get("claimRef")))
        if kept is not None:
            return Bind(kept)
        return Tell(LATER, "waiting for first consumer to be created before binding")
    found = best_volume(claim, volumes, (lambda one: reaches(one, str(node))) if later else anywhere)
    if found is not None:
        return Bind(found)
    return _wanting(claim, class_name or "", class_, node)


def default_class(classes: Mapping[str, Object]) -> str | None:
    """The class for claims that name none: of several, the newest."""
    marked = [one for one in classes.values()
              if (metadata(one).get("annotations") or {}).get(DEFAULT_CLASS) == "true"]
    return max(((str(metadata(one).get("creationTimestamp")), name_of(one)) for one in marked), default=("", None))[1]


def _wanting(claim: Object, class_name: str, class_: Object | None, node: str | None) -> ClaimStep:
    if not class_name:
        return Tell("FailedBinding", "no persistent volumes available for this claim and no storage class is set")
    if class_ is None:
        return Tell("ProvisioningFailed", f'storageclass.storage.k8s.io "{class_name}" not found', warning=True)
    provisioner = str(class_.get("provisioner"))
    if provisioner == NO_PROVISIONER:
        return Tell("FailedBinding", "no persistent volumes available for this claim and no storage class is set")
    if provisioner != PROVISIONER:
        return Ask(provisioner)
    if (claim["spec"].get("volumeMode") or "Filesystem") != "Filesystem":
        return Tell("ProvisioningFailed", f'failed to provision volume with StorageClass "{class_name}": block volumes '
                                          "are not supported", warning=True)
    return Provision(node or "")


def _bound(claim: Object, volume: Object | None) -> ClaimStep:
    phase = (claim.get("status") or {}).get("phase")
    if volume is None:
        return Nothing() if phase == "Lost" else Lose(
            "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    if not points_to(volume, claim):
        return Nothing() if phase == "Lost" else Lose(
            "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly")
    whole = phase == "Bound" and (volume.get("status") or {}).get("phase") == "Bound" and \
        (volume["spec"].get("claimRef") or {}).get("uid") == uid_of(claim)
    return Nothing() if whole else Bind(volume)


def _asked_for(claim: Object, volume: Object | None) -> ClaimStep:
    """A claim that names its volume."""
    if volume is None or being_deleted(volume):
        return Nothing()
    if volume["spec"].get("claimRef"):
        return Bind(volume) if points_to(volume, claim) else Tell(
            "FailedBinding", f'volume "{name_of(volume)}" already bound to a different claim.', warning=True)
    if not satisfies(volume, claim):
        return Tell("VolumeMismatch", f'Cannot bind to requested volume "{name_of(volume)}": it does not have the '
                                      "class, size, mode or access modes that are asked for", warning=True)
    return Bind(volume)


@dataclass(frozen=True, slots=True)
class Phase:
    """A volume's phase is another now."""

    name: str


@dataclass(frozen=True, slots=True)
class Reclaim:
    """The claim of a volume is gone and its policy says Delete: files and object go."""


@dataclass(frozen=True, slots=True)
class Unprotect:
    """A volume that is being deleted is nobody's: let it go."""


VolumeStep: TypeAlias = Nothing | Phase | Reclaim | Unprotect


def for_volume(volume: Object, claim: Object | None) -> VolumeStep:
    """`claim` is the one that the volume's reference names, None when there is none of that name any more."""
    phase = (volume.get("status") or {}).get("phase")
    reference = volume["spec"].get("claimRef") or {}
    gone = bool(reference.get("uid")) and (claim is None or uid_of(claim) != reference["uid"])
    if being_deleted(volume) and (gone or not reference):
        return Unprotect() if metadata(volume).get("finalizers") else Nothing()
    if not reference or (not reference.get("uid") and phase in (None, "Pending")):
        return Nothing() if phase == "Available" else Phase("Available")
    if gone and phase not in ("Released", "Failed"):
        return Phase("Released")
    if gone and phase == "Released" and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
        return Reclaim()
    return Nothing()


def provisioned(claim: Object, class_: Object, nodes: Sequence[str], path: str) -> Object:
    """A volume for a claim: a directory that the node makes when it is first used. `nodes` have it; none: all."""
    spec: Object = {
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
        "claimRef": reference_to(claim),
        "hostPath": {"path": path, "type": "DirectoryOrCreate"},
        "persistentVolumeReclaimPolicy": class_.get("reclaimPolicy") or "Delete",
        "storageClassName": name_of(class_),
        "volumeMode": "Filesystem",
    }
    if nodes:
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {
        "apiVersion": "v1", "kind": "PersistentVolume", "spec": spec,
        "metadata": {"name": f"pvc-{uid_of(claim)}", "annotations": {PROVISIONED_BY: PROVISIONER}},
    }

