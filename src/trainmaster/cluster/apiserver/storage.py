"""Volumes and who wants them: PersistentVolume and PersistentVolumeClaim. Where they come from is in `drivers`.

A claim in use and a volume in use must not vanish under a pod: both are born with a finalizer. A volume that nobody is
bound to, and a claim that no pod on a node names, lose theirs in the write that deletes them; the last such pod of a
claim that waits takes it along when it goes. In Kubernetes a controller does this a moment later.
"""

import posixpath
from collections.abc import Iterable, Iterator
from datetime import datetime
from math import floor

from trainmaster.api import quantity
from trainmaster.api.claims import claims_of
from trainmaster.api.meta import Json, Object, timestamp
from trainmaster.cluster.apiserver import (
    causes,
    checks,
    labels,
    names,
    node_selectors,
    other_columns,
    statuses,
    volume_sources,
)
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

CLAIM_PROTECTION, VOLUME_PROTECTION = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_ACCESS = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MODES = ("Block", "Filesystem")
_SPEC_STAYS = ("spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
               "claims")
_SOURCES_OF_CLAIMS = {("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")}
_REFERENCE = ("apiGroup", "kind", "name")


def _protected(thing: Object, finalizer: str) -> None:
    found = thing["metadata"].setdefault("finalizers", [])
    if finalizer not in found:
        found.append(finalizer)


def _access_rules(modes: Json, path: str) -> Iterator[Cause]:
    for mode in modes or ():
        yield from checks.choice(mode, path, _ACCESS)
    known = {mode for mode in modes or () if mode in _ACCESS}
    if "ReadWriteOncePod" in known and len(known) > 1:
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
    volume_sources.defaults(spec)


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
    if not spec.get("accessModes"):
        yield causes.required("spec.accessModes")
    yield from _access_rules(spec.get("accessModes"), "spec.accessModes")
    yield from _capacity_rules(spec.get("capacity"))
    yield from checks.choice(spec["persistentVolumeReclaimPolicy"], "spec.persistentVolumeReclaimPolicy",
                             ("Delete", "Recycle", "Retain"))
    yield from _place_rules(spec)
    yield from volume_sources.rules(spec, "spec", volume["metadata"].get("name", ""))
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" and _is_root((spec.get("hostPath") or {}).get("path")):
        yield causes.forbidden("spec.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'")
    yield from _class_name_rules(spec, "spec", "storageClassName")
    yield from checks.choice(spec["volumeMode"], "spec.volumeMode", _MODES)
    if spec.get("volumeAttributesClassName") == "":
        yield causes.required("spec.volumeAttributesClassName", "an empty string is disallowed")
    yield from _class_name_rules(spec, "spec", "volumeAttributesClassName")
    if spec.get("volumeAttributesClassName") is not None and spec.get("csi") is None:
        yield causes.required("spec.csi", "has to be specified when using volumeAttributesClassName")
    if old is not None:
        was = old["spec"]
        if any(spec.get(source) != was.get(source) for source in volume_sources.SOURCES):
            yield causes.forbidden("spec.persistentvolumesource",
                                   "spec.persistentvolumesource is immutable after creation")
        yield from checks.unchanged(spec["volumeMode"], was.get("volumeMode"), "volumeMode")
        if was.get("nodeAffinity") is not None and spec.get("nodeAffinity") != was["nodeAffinity"]:
            yield causes.invalid("nodeAffinity", spec.get("nodeAffinity"),
                                 f"{checks.IMMUTABLE}, except for updating from beta label to GA")


def _capacity_rules(capacity: Json) -> Iterator[Cause]:
    if not capacity:
        yield causes.required("spec.capacity")
    if list(capacity or ()) != ["storage"]:
        yield causes.unsupported("spec.capacity", capacity, ("storage",))
    for name, amount in (capacity or {}).items():
        found, path = quantity.parse(amount), f"spec.capacity[{name}]"
        if found < 0:
            yield causes.invalid(path, max(floor(found), -2**63), "must be a valid resource quantity")
        if found <= 0:
            yield causes.invalid(path, str(amount), "must be greater than zero")


def _place_rules(spec: Object) -> Iterator[Cause]:
    """Which nodes can have the volume."""
    near, path = spec.get("nodeAffinity"), "spec.nodeAffinity"
    if near is not None and near.get("required") is None:
        yield causes.required(f"{path}.required", "must specify required node constraints")
    elif near is not None:
        yield from node_selectors.rules(near["required"], f"{path}.required")


def _class_name_rules(spec: Object, path: str, field: str) -> Iterator[Cause]:
    if spec.get(field):
        yield from names.refused(f"{path}.{field}", spec[field], names.subdomain(spec[field]))


def _is_root(path: Json) -> bool:
    return isinstance(path, str) and posixpath.normpath(path or ".") in {"/", "//"}


def _claim_begin(claim: Object) -> None:
    claim["status"] = {"phase": "Pending"}
    _protected(claim, CLAIM_PROTECTION)


def _claim_defaults(claim: Object) -> None:
    spec = claim.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    if (spec.get("dataSourceRef") or {}).get("namespace"):
        del spec["dataSourceRef"]   # Kubernetes has this only behind a switch that is off
    source = spec.get("dataSource")
    if isinstance(source, dict) and spec.get("dataSourceRef") is None \
            and (source.get("apiGroup") or "", source.get("kind")) not in _SOURCES_OF_CLAIMS:
        del spec["dataSource"]      # an old field, for these only; others have the newer one
    _pair(spec)


def _claim_carry(claim: Object, old: Object) -> None:
    """A client that knows only one of the two fields says the other, too, with what it read."""
    if any((old.get("spec") or {}).get(field) is not None for field in ("dataSource", "dataSourceRef")):
        _pair(claim.setdefault("spec", {}))


def _pair(spec: Object) -> None:
    """Have what the volume is filled with in both fields, the old one and its successor, if it is in one."""
    for one, other in (("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")):
        if isinstance(spec.get(one), dict) and spec.get(other) is None:
            spec[other] = {field: spec[one][field] for field in _REFERENCE if field in spec[one]}


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
    yield from _class_name_rules(spec, path, "storageClassName")
    yield from checks.choice(spec.get("volumeMode"), f"{path}.volumeMode", _MODES)
    yield from _content_rules(spec, path)
    yield from _class_name_rules(spec, path, "volumeAttributesClassName")


def _content_rules(spec: Object, path: str) -> Iterator[Cause]:
    """What the volume is to be filled with: an old field and its successor, which must not contradict each other."""
    one, other = spec.get("dataSource"), spec.get("dataSourceRef")
    if one is not None:
        yield from _reference_rules(one, f"{path}.dataSource")
    if other is not None:
        yield from _reference_rules(other, f"{path}.dataSourceRef")
        if space := other.get("namespace"):
            yield from names.refused(f"{path}.dataSourceRef.namespace", space, names.label(space))
    if one is None or other is None:
        return
    if other.get("namespace"):
        yield causes.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif [one.get(field) for field in _REFERENCE] != [other.get(field) for field in _REFERENCE]:
        yield causes.invalid(path, {}, "must match dataSourceRef")


def _reference_rules(reference: Object, path: str) -> Iterator[Cause]:
    for field in ("name", "kind"):
        if not reference.get(field):
            yield causes.required(f"{path}.{field}")
    group, kind = reference.get("apiGroup") or "", reference.get("kind") or ""
    if group:
        yield from names.refused(f"{path}.apiGroup", group, names.subdomain(group))
    elif kind != "PersistentVolumeClaim":
        yield causes.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")


def _claim_rules(claim: Object, old: Object | None) -> Iterator[Cause]:
    spec = claim["spec"]
    yield from claim_rules(spec)
    if old is None:
        return
    was, bound = dict(old["spec"]), (old.get("status") or {}).get("phase") == "Bound"
    _pair(was)
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


KINDS: tuple[Kind, ...] = (
    row("v1", "persistentvolumes", answers_object=True, begin=_volume_begin, defaults=_volume_defaults,
        rules=_volume_rules, status_carry=statuses.phase_defaults, ending=_volume_ending, columns=other_columns.VOLUME),
    row("v1", "persistentvolumeclaims", answers_object=True, begin=_claim_begin, defaults=_claim_defaults,
        carry=_claim_carry, rules=_claim_rules, status_carry=statuses.phase_defaults, status_rules=statuses.claim,
        columns=other_columns.CLAIM),
)
