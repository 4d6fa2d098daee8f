"""What the metadata of an object may say, whatever its kind. Pure.

Names are the kind's business (`Kind.naming`); finalizers of one word are a privilege of Kubernetes' own, which built-in
kinds insist on. What did not change was found right before, and is not looked at again.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import FOREGROUND, ORPHAN, Kind

_OF_ONE_WORD = frozenset({"kubernetes", ORPHAN, FOREGROUND})
_BARE = "name is neither a standard finalizer name nor is it fully qualified"
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_NO_OWNER = ("v1", "Event")
# What only a deletion sets.
_OF_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")


def created(kind: Kind, meta: Object) -> Iterator[Cause]:
    name, prefix = meta.get("name") or "", meta.get("generateName")
    if prefix:
        yield from names.refused("metadata.generateName", prefix, kind.naming(_continued(prefix)))
    if not name:
        yield causes.required("metadata.name", "name or generateName is required")
    else:
        yield from names.refused("metadata.name", name, kind.naming(name))
    yield from common(kind, meta, {})


def _continued(prefix: str) -> str:
    """A prefix may end in a dash, because something comes after it."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def common(kind: Kind, meta: Object, was: Object) -> Iterator[Cause]:
    """`was` was found right before: what is the same there needs no second look."""
    if (labels := meta.get("labels")) and labels != was.get("labels"):
        yield from names.labels(labels, "metadata.labels")
    if (annotations := meta.get("annotations")) and annotations != was.get("annotations"):
        yield from names.annotations(annotations, "metadata.annotations")
    if (owners := meta.get("ownerReferences")) and owners != was.get("ownerReferences"):
        yield from _owners(owners)
    if (finalizers := meta.get("finalizers")) and finalizers != was.get("finalizers"):
        yield from _finalizers(finalizers, custom=kind.custom)


def of_deletion(sent: Object, was: Object, part: str) -> Iterator[Cause]:
    """What an update says of an end that it does not bring. Nodes may: what they say of a pod is not listened to."""
    for field in () if part == "status" else _OF_DELETION:
        if sent.get(field) is not None and sent[field] != was.get(field):
            yield causes.invalid(f"metadata.{field}", sent[field], checks.IMMUTABLE)


def finalizer(name: str, path: str) -> Iterator[Cause]:
    """The faults of one who must agree to the end of a namespace's content."""
    yield from names.refused(path, name, names.qualified(name))
    if "/" not in name and name not in _OF_ONE_WORD:
        yield causes.invalid(path, name, _BARE)


def _finalizers(found: list[str], *, custom: bool) -> Iterator[Cause]:
    for finalizer in found:
        yield from names.refused("metadata.finalizers", finalizer, names.qualified(finalizer))
    if ORPHAN in found and FOREGROUND in found:
        yield causes.invalid("metadata.finalizers", found,
                             f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set")
    for index, finalizer in enumerate(() if custom else found):
        if "/" not in finalizer and finalizer not in _OF_ONE_WORD:
            yield causes.invalid(f"metadata.finalizers[{index}]", finalizer, _BARE)


def _owners(owners: list[Object]) -> Iterator[Cause]:
    controllers: list[str] = []
    for owner in owners:
        version = owner.get("apiVersion") or ""
        if not version or version.count("/") > 1:
            yield causes.invalid("metadata.ownerReferences.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield causes.invalid(f"metadata.ownerReferences.{field}", "", "must not be empty")
        if (version, owner.get("kind")) == _NO_OWNER:
            yield causes.invalid("metadata.ownerReferences", _in_order(owner),
                                 "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        yield causes.invalid("metadata.ownerReferences", [_in_order(owner) for owner in owners],
                             'Only one reference can have Controller set to true. Found "true" in references for '
                             f"{controllers[0]} and {controllers[1]}")


def _in_order(owner: Object) -> Json:
    return {field: owner[field] for field in _OWNER_FIELDS if field in owner}
