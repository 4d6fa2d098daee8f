"""Who owns which fields: `metadata.managedFields`, and what a write makes of it. Pure.

An ordinary write owns what it changes and takes it from everybody else; what is gone is nobody's. The rules are those
of Kubernetes, entry by entry: one per manager, operation, version and subresource; at most ten of them from ordinary
writes, the oldest folded into `ancient-changes`; an object whose entries were taken away stays without until somebody
applies it. Entries are kept as the JSON they are stored as, and one that a write does not touch is not looked into.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TypeAlias

from trainmaster.api.meta import Json, Object, timestamp
from trainmaster.cluster.apiserver import fieldsets, shapes
from trainmaster.cluster.apiserver.familiar import Familiar
from trainmaster.cluster.apiserver.fieldsets import MEMBER, Change, FieldSet
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.mergeable import Unmergeable

APPLY, UPDATE = "Apply", "Update"
UNKNOWN = "unknown"
LONGEST_NAME = 128
# Ordinary writers that are told apart; the oldest beyond them become one.
MOST_UPDATERS = 10
ANCIENT = "ancient-changes"
# The server itself, where Kubernetes has a controller in it.
SERVER = "kube-apiserver"

Identity: TypeAlias = tuple[str, str, str, str]


# How the object before and after a write compares in some version; None: there is no such version (any more).
Comparison: TypeAlias = Callable[[str], Change | None]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, through which version and which subresource."""

    manager: str
    api_version: str
    part: str
    now: datetime

    def identity(self, operation: str = UPDATE) -> Identity:
        return self.manager or UNKNOWN, operation, self.api_version if operation == UPDATE else "", self.part

    def entry(self, fields: FieldSet, operation: str = UPDATE) -> Object:
        found: Object = {"manager": self.manager or UNKNOWN, "operation": operation, "apiVersion": self.api_version,
                         "time": timestamp(self.now), "fieldsType": "FieldsV1", "fieldsV1": fields}
        if self.part == "scale":         # Kubernetes forgets the time on the way from the scale to its object
            del found["time"]
        return {**found, "subresource": self.part} if self.part else found


def of_user_agent(agent: str) -> str:
    """The name of a writer that gave none: that of its program."""
    start = agent.partition("/")[0]
    return _program(start) if len(start) <= LONGEST_NAME else _program.__wrapped__(start)


@lru_cache(maxsize=256)
def _program(start: str) -> str:
    name = "".join(sign for sign in start if sign.isprintable())
    while len(name.encode()) > LONGEST_NAME:
        name = name[:-1]
    return name


def identity(entry: Object) -> Identity:
    operation = str(entry.get("operation") or "")
    version = str(entry.get("apiVersion") or "") if operation != APPLY else ""
    return str(entry.get("manager") or ""), operation, version, str(entry.get("subresource") or "")


def known(stored: Json, sent: Json) -> list[Object]:
    """The entries that a write starts from: those it sent, if they can be read, or those that are stored.

    An empty list, or one with an empty entry, takes all entries away.
    """
    stored = stored or []
    if sent is None or sent == stored:
        return list(stored)
    if sent in ([], [{}]):
        return []
    try:
        return [_read(entry) for entry in sent] or list(stored)
    except fieldsets.Malformed:
        return list(stored)


def _read(entry: Json) -> Object:
    if not isinstance(entry, dict) or entry.get("operation") not in {APPLY, UPDATE}:
        raise fieldsets.Malformed("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
        raise fieldsets.Malformed("an entry has an apiVersion, and FieldsV1")
    return {**entry, "fieldsV1": fieldsets.read(entry.get("fieldsV1"))}


def updated(entries: Sequence[Object], compared: Comparison, writer: Writer) -> list[Object]:
    """The entries after an ordinary write."""
    own = compared(writer.api_version)
    assert own is not None, "a write is in a version that is served"
    if not entries:
        return [writer.entry(own.changed)] if own.changed else []
    left = taken(entries, compared)
    if own.changed:
        me = writer.identity()
        before = left.get(me)
        left[me] = writer.entry(fieldsets.union(own.changed, before["fieldsV1"]) if before else own.changed)
    return ordered(_capped(left))


def taken(entries: Sequence[Object], compared: Comparison, but: Identity | None = None) -> dict[Identity, Object]:
    """What is left to the others (all but one) of what somebody changed or removed; who has nothing left goes."""
    found: dict[Identity, Object] = {}
    for entry in entries:
        me = identity(entry)
        fields: FieldSet = entry.get("fieldsV1") or {}
        if me != but:
            change = compared(entry["apiVersion"])
            if change is None:
                continue
            left = fieldsets.difference(fieldsets.difference(fields, change.changed), change.removed)
            entry = entry if left is fields else {**entry, "fieldsV1": left}
            fields = left
        if fields:
            found[me] = entry
    return found


def ordered(entries: dict[Identity, Object]) -> list[Object]:
    """The entries in the order in which they are stored."""
    if len(entries) < 2:
        return list(entries.values())
    return sorted(entries.values(), key=lambda entry: (
        entry["operation"], entry.get("time") or "", entry.get("manager") or "", entry["apiVersion"],
        entry.get("subresource") or ""))


def _capped(entries: dict[Identity, Object]) -> dict[Identity, Object]:
    """At most so many entries of ordinary writers: the oldest of a version become one."""
    updaters = [me for me in entries if me[1] != APPLY]
    surplus = len(updaters) - MOST_UPDATERS
    if surplus <= 0:
        return entries
    updaters.sort(key=lambda me: (entries[me].get("time") or "", spelled(me)))
    result, first = dict(entries), dict[str, Identity]()
    for me in updaters:
        if surplus <= 0:
            break
        version = me[2]
        if version not in first:
            first[version] = me
            continue
        bucket = (ANCIENT, UPDATE, version, "")
        entry = result.pop(me)
        into = result.pop(bucket) if bucket in result else result.pop(first[version])
        result[bucket] = {key: value for key, value in entry.items() if key != "subresource"} | {
            "manager": ANCIENT, "fieldsV1": fieldsets.union(entry["fieldsV1"], into["fieldsV1"])}
        surplus -= 1
    return result


def spelled(me: Identity) -> str:
    """An identity as Kubernetes spells it, which decides the order of writers within one second."""
    names = ("manager", "operation", "apiVersion", "subresource")
    return fieldsets.plain_text({name: value for name, value in zip(names, me, strict=True) if value})


def comparison(kind: Kind, old: Object | None, new: Object, part: str, find: Callable[[str], Kind | None],
               apart: FieldSet = MEMBER, familiar: Familiar | None = None) -> Comparison:
    """How an object compares before (None: there was none) and after a write. `find` gives a kind in a version.

    What is in `apart` is left out, for one specification always the same; `familiar` is what is known about that of a
    new object. Raises Unmergeable, when it is asked.
    """
    found: dict[str, Change | None] = {}

    def compared(api_version: str) -> Change | None:
        if api_version not in found:
            other = kind if api_version == kind.resource.api_version else find(api_version)
            if familiar is not None and other is kind:
                found[api_version] = familiar.change(new["metadata"], lambda: _compared(
                    kind, None, new, fieldsets.union(reset(kind, part), apart), familiar.owned))
                return found[api_version]
            found[api_version] = None if other is None else _compared(
                other, *_converted(kind, other, old, new), fieldsets.union(reset(other, part), apart), MEMBER)
        return found[api_version]

    return compared


def _compared(kind: Kind, old: Object | None, new: Object, apart: FieldSet, spec: FieldSet) -> Change:
    before = shapes.nothing(kind) if old is None else old
    if spec:
        before, new = ({name: value for name, value in thing.items() if name != "spec"} for thing in (before, new))
    changed, removed = shapes.of_kind(kind).compare(before, new)
    if spec:
        changed = {**(changed or {}), "f:spec": spec}
    return Change(fieldsets.pruned(changed or {}, apart), fieldsets.pruned(removed or {}, apart))


def _converted(kind: Kind, other: Kind, old: Object | None, new: Object) -> tuple[Object | None, Object]:
    return (None if old is None else kind.converted(old, other)), kind.converted(new, other)


def reset(kind: Kind, part: str) -> FieldSet:
    """What a write to a subresource (or to the whole) cannot change, and so does not own."""
    if part == "status":
        if kind.custom:
            return _META_AND_SPEC
        return _OTHERS_OF_STATUS.get(kind.resource.plural, _SPEC)
    return _STATUS if kind.status and part in {"", "finalize"} else MEMBER


_STATUS: FieldSet = {"f:status": MEMBER}
_SPEC: FieldSet = {"f:spec": MEMBER}
_META_AND_SPEC: FieldSet = {"f:metadata": MEMBER, "f:spec": MEMBER}
_OTHERS_OF_STATUS: dict[str, FieldSet] = {
    "deployments": {"f:spec": MEMBER, "f:metadata": {"f:labels": MEMBER}},
    "pods": {"f:spec": MEMBER, "f:metadata": {"f:deletionTimestamp": MEMBER, "f:ownerReferences": MEMBER}},
    "volumeattachments": _META_AND_SPEC, "flowschemas": _META_AND_SPEC, "prioritylevelconfigurations": _META_AND_SPEC,
    "validatingadmissionpolicies": _META_AND_SPEC, "servicecidrs": _META_AND_SPEC,
}


# What the server fills in at a creation after it noted who owns what. Kubernetes has the same split by accident: its
# defaults come before that, its strategies and admission plug-ins after it.
_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name")
_PROVIDED: dict[str, tuple[tuple[str, ...], ...]] = {
    "namespaces": (("spec", "finalizers"),),
    "pods": (("spec", "priority"), ("spec", "preemptionPolicy"), ("spec", "serviceAccountName")),
    "services": (("spec", "clusterIPs"), ("spec", "ipFamilies"), ("spec", "ipFamilyPolicy")),
    "persistentvolumes": (("metadata", "finalizers"),),
    "persistentvolumeclaims": (("metadata", "finalizers"),),
    "jobs": (("spec", "selector"), *(("metadata", "labels", label) for label in _LABELS),
             *(("spec", "template", "metadata", "labels", label) for label in _LABELS)),
}


def provided(kind: Kind, sent: Object) -> FieldSet:
    """The fields that a new object gets from the server, because what was sent does not have them."""
    if kind.custom or (paths := _PROVIDED.get(kind.resource.plural)) is None:
        return MEMBER
    if kind.resource.plural == "jobs" and not sent["metadata"].get("labels"):       # a default: those of its pods
        pods = ((sent.get("spec") or {}).get("template") or {}).get("metadata") or {}
        sent = {**sent, "metadata": {**sent["metadata"], "labels": pods.get("labels")}}
    lacking = []
    for path in paths:
        inner: Json = sent
        for depth, name in enumerate(path):
            if not isinstance(inner, dict) or inner.get(name) is None:
                lacking.append(path[:depth + 1])
                break
            inner = inner[name]
    return _set_of(tuple(lacking))


@lru_cache(maxsize=256)
def _set_of(paths: tuple[tuple[str, ...], ...]) -> FieldSet:
    """Most objects of a kind lack the same: their set is made once."""
    found: FieldSet = {}
    for path in paths:
        found = fieldsets.union(found, fieldsets.only(tuple(f"f:{each}" for each in path)))
    if "f:serviceAccountName" in found.get("f:spec", {}):
        found["f:spec"]["f:serviceAccount"] = MEMBER       # the old name of the same, which follows it
    return found


def record(kind: Kind, old: Object | None, new: Object, sent: Json, writer: Writer,
           find: Callable[[str], Kind | None], apart: FieldSet = MEMBER, familiar: Familiar | None = None) -> None:
    """Write down in `new` who owns its fields after an ordinary write.

    `sent` is what the writer said about that; what is in `apart` is nobody's. `familiar` as in `comparison`.
    """
    stored = None if old is None else old["metadata"].get("managedFields")
    entries = known(stored, None if writer.part else sent)
    if old is None or (entries and not _is_unseen(kind, entries, writer)):
        try:
            entries = updated(entries, comparison(kind, old, new, writer.part, find, apart, familiar), writer)
        except Unmergeable:
            entries = []
    keep(new, entries)


def replicas(kind: Kind) -> tuple[str, ...]:
    """The path that a scale is about."""
    return tuple(f"f:{part}" for part in kind.scale.spec) if kind.scale else ()


def _is_unseen(kind: Kind, entries: Sequence[Object], writer: Writer) -> bool:
    """Who scales sees only who owns the count; if that is nobody, nobody is noted, as on any object without owners."""
    path = replicas(kind)
    return writer.part == "scale" and not any(fieldsets.has(entry.get("fieldsV1") or {}, path) for entry in entries)


def timeless(old: Object, new: Object) -> bool:
    """Whether the two differ at most in the time of entries: then nothing was written at all."""
    before, after = (thing["metadata"].get("managedFields") or () for thing in (old, new))
    if len(before) != len(after) or before == after:
        return False
    for one, other in zip(before, after, strict=True):
        if one != other and {**one, "time": None} != {**other, "time": None}:
            return False
    metas = ({key: value for key, value in thing["metadata"].items() if key != "managedFields"} for thing in (old, new))
    return next(metas) == next(metas) and {**old, "metadata": None} == {**new, "metadata": None}


def keep(thing: Object, entries: Sequence[Object] | None) -> None:
    """Put the entries where they belong."""
    meta = thing["metadata"]
    if entries:
        meta["managedFields"] = list(entries)
    else:
        meta.pop("managedFields", None)
