"""Which volume satisfies which claim: Kubernetes' rules, for the controller and the scheduler, who must agree. Pure."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from trainmaster.api import quantity
from trainmaster.api.meta import Object, being_deleted, labels_of, metadata, name_of, namespace_of, uid_of

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
HOSTNAME = "kubernetes.io/hostname"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
LATER = "WaitForFirstConsumer"


def class_of(thing: Object) -> str | None:
    """The class that a claim or a volume names; None where it names none, which is not the same as the empty one."""
    old = (metadata(thing).get("annotations") or {}).get(CLASS_ANNOTATION)
    found = old if old is not None else thing["spec"].get("storageClassName")
    return str(found) if found is not None else None


def anywhere(_volume: Object) -> bool:
    """Whether a volume can be used where nobody asks for a place."""
    return True


def best_volume(claim: Object, volumes: Iterable[Object], usable: Callable[[Object], bool] = anywhere) -> Object | None:
    """The volume kept for this claim, else the smallest free one that satisfies it, of those that are `usable`."""
    fitting = [volume for volume in volumes if _free_for(claim, volume) and satisfies(volume, claim)
               and usable(volume)]
    kept = [volume for volume in fitting if volume["spec"].get("claimRef")]
    return min(kept or fitting, key=lambda volume: (_size(volume["spec"].get("capacity")), name_of(volume)),
               default=None)


def satisfies(volume: Object, claim: Object) -> bool:
    """Whether a volume is what a claim asks for."""
    offered, wanted = volume["spec"], claim["spec"]
    return (
        (class_of(volume) or "") == (class_of(claim) or "")
        and set(wanted.get("accessModes") or ()) <= set(offered.get("accessModes") or ())
        and (wanted.get("volumeMode") or "Filesystem") == (offered.get("volumeMode") or "Filesystem")
        and _size((wanted.get("resources") or {}).get("requests")) <= _size(offered.get("capacity"))
        and _selects(wanted.get("selector"), labels_of(volume))
    )


def points_to(volume: Object, claim: Object) -> bool:
    """Whether a volume is kept for or bound to this claim; a reference without a UID means whoever has the name."""
    reference = volume["spec"].get("claimRef") or {}
    return (
        reference.get("namespace") == namespace_of(claim) and reference.get("name") == name_of(claim)
        and reference.get("uid") in (None, "", uid_of(claim))
    )


def reaches(volume: Object, node: str) -> bool:
    """Whether the volume can be used on the node, as far as it says where it is by the node's name."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required") or {}
    terms = required.get("nodeSelectorTerms")
    if not terms:
        return True
    return any(
        all(node in (one.get("values") or ()) for one in term.get("matchExpressions") or ()
            if one.get("key") == HOSTNAME and one.get("operator") == "In")
        for term in terms
    )


def selected_node(claim: Object) -> str:
    """Where the scheduler wants the volume of a claim that waits for its first consumer; "" before it has chosen."""
    return str((metadata(claim).get("annotations") or {}).get(SELECTED_NODE) or "")


def reference_to(claim: Object) -> Object:
    """What a volume says of the claim that it is kept for."""
    return {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace_of(claim), "name": name_of(claim),
        "uid": uid_of(claim), "resourceVersion": metadata(claim).get("resourceVersion", ""),
    }


def _free_for(claim: Object, volume: Object) -> bool:
    if being_deleted(volume):
        return False
    if volume["spec"].get("claimRef"):
        return points_to(volume, claim)
    return (volume.get("status") or {}).get("phase") in ("Available", "Pending", None)


def _size(amounts: Mapping[str, str] | None) -> Fraction:
    return quantity.parse(str((amounts or {}).get("storage") or "0"))


def _selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    if not selector:
        return True
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for one in selector.get("matchExpressions") or ():
        key, values = one.get("key"), one.get("values") or ()
        holds = {
            "In": labels.get(key) in values, "NotIn": labels.get(key) not in values,
            "Exists": key in labels, "DoesNotExist": key not in labels,
        }
        if not holds.get(one.get("operator"), False):
            return False
    return True
