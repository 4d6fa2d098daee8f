"""The life of an object: what a creation, a change and a deletion make of it. Pure.

The rules that hold for every kind are here: who sets which part of the metadata, that status and spec are written
apart, when the generation counts up, what finalizers and grace do to a deletion. The shell (`resources`) reads, calls
these and writes; nothing here knows the store, the clock or HTTP.
"""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice

from trainmaster.api.meta import Json, Object, moment, timestamp
from trainmaster.cluster.apiserver import (
    builtin,
    causes,
    embedded,
    failures,
    fitting,
    identity,
    inspection,
    metadata,
    normal,
)
from trainmaster.cluster.apiserver.bodies import as_object
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.familiar import Familiar
from trainmaster.cluster.apiserver.kind import FOREGROUND, ORPHAN, Kind

# A generated name is the prefix and five of these: no vowels, nothing that can be misread.
SUFFIX_SIGNS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
# As many faults are told at once: who sends more is helped by none of them, and some rules know one for every pair.
MOST_FAULTS = 250
LONGEST_PREFIX = 63 - SUFFIX_LENGTH

UNCONDITIONAL = Cause("metadata.resourceVersion", "FieldValueInvalid",
                      "Invalid value: 0: must be specified for an update")
# Writes that can be a new generation; the others carry out what was decided before, such as a binding.
_COUNTED = frozenset({"", "scale", "ephemeralcontainers", "resize"})
# Of two kinds it counts a part of the metadata too: the one that is passed on to what they make.
_COUNTED_METADATA = {"deployments": "annotations", "endpointslices": "labels"}
# No longer written by anyone: what a client sends here is not looked at.
_DROPPED = "selfLink"
_NO_REVISION = (None, "", "0")       # any will do
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
          "generation")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How a deletion was asked for."""

    grace: int | None = None
    uid: str = ""
    revision: str = ""
    propagation: str = ""                # Background, Foreground, Orphan or "": as the finalizers say
    dry_run: bool = False


def readable(kind: Kind, value: Json, old: Object | None = None, *, patched: bool = False
             ) -> tuple[Object, list[str]]:
    """A body as an object of this kind, and the fields that were dropped. Raises Failure 400 when it cannot be one.

    `old` is the object that it replaces: what is the same there was looked at when that was written.
    """
    thing = as_object(value)
    identity.check(kind.resource, thing, custom=kind.custom, patched=patched)
    meta = thing.get("metadata")
    if meta is None:
        meta = thing["metadata"] = {}
    thing, unknown = _typed(kind, thing, old)
    thing["metadata"] = {field: found for field, found in thing["metadata"].items()
                         if found is not None and field != _DROPPED}
    thing["apiVersion"], thing["kind"] = kind.resource.api_version, kind.resource.kind
    if kind.schema is not None:
        try:
            unknown += kind.schema.settle(thing)
        except embedded.Misfit as error:
            raise Unreadable(kind, str(error)) from error
    return thing, unknown


def _typed(kind: Kind, thing: Object, old: Object | None) -> tuple[Object, list[str]]:
    """The object without the fields that its type does not have, and which these were; of a custom one, the metadata.

    Raises Failure 400 for values of the wrong type.
    """
    type_ = kind.type
    if type_ is not None:
        new = thing if old is None else {name: item for name, item in thing.items()
                                            if name not in old or item != old[name]}
        if fitting.of_type(type_.name)(new):
            return thing, []
        found = inspection.inspect(thing, type_)
        pruned = inspection.prune(thing, type_) if found.unknown else thing
        if not found.faults:
            pruned = normal.without_holes(pruned, type_)
    else:
        type_ = builtin.type_named(builtin.METADATA)
        found = inspection.inspect(thing["metadata"], type_, "metadata")
        pruned = {**thing, "metadata": inspection.prune(thing["metadata"], type_)} if found.unknown else thing
    if found.faults:
        raise Unreadable(kind, str(found.faults[0]))
    if kind.custom:
        meta = pruned["metadata"]
        whole = {field: value for field, value in meta.items() if field != "managedFields"}     # which are long
        if (filled := normal.without_holes(whole, type_)) is not whole:
            pruned = {**pruned, "metadata": {**meta, **filled}}
        normal.of_type(builtin.METADATA)(pruned["metadata"])
    return pruned, list(found.unknown)


class Unreadable(failures.Failure):
    """400: the body cannot be an object of this kind."""

    def __init__(self, kind: Kind, why: str) -> None:
        named, version = kind.resource.kind, kind.resource.version
        super().__init__(400, "BadRequest", f'{named} in version "{version}" cannot be handled as a {named}: {why}')
        self.why = why


def created(kind: Kind, thing: Object, namespace: str, name: str, *, now: datetime, uid: str,
            known: Familiar | None = None) -> Object:
    """The object to store for a creation. Raises Failure 400 or 422.

    `known`: an object with the same spec was created before.
    """
    meta = thing["metadata"]
    if meta.get("resourceVersion") not in _NO_REVISION:
        raise failures.bad_request("resourceVersion should not be set on objects to be created")
    if meta.get("namespace", namespace) != namespace:
        raise failures.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request")
    fixed: Object = {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": timestamp(now)}
    if kind.generation:
        fixed["generation"] = 1
    kept = {field: value for field, value in meta.items() if field not in _FIXED and field != "resourceVersion"}
    thing["metadata"] = {**{field: value for field, value in fixed.items() if value}, **kept}
    if kind.status and not kind.keeps_status:
        thing.pop("status", None)
    if known is not None:
        made = known.made()
        thing |= made
        kind.settle(thing, made)
        _refuse(kind, thing, list(metadata.created(kind, thing["metadata"])))
        return thing
    kind.begin(thing)
    kind.defaults(thing)
    kind.settle(thing, None)
    _refuse(kind, thing, chain(metadata.created(kind, thing["metadata"]), kind.rules(thing, None),
                               _schema_faults(kind, thing, None)))
    return thing


def amended(kind: Kind, old: Object, new: Object, part: str, *, conditional: bool, patched: bool = False) -> Object:
    """The object to store for an update of the whole (`part` empty) or of one subresource.

    `conditional`: the caller must name the revision it read. `patched`: a UID in `new` is a change, not a condition.
    Raises Failure 400, 409 or 422; returns an object equal to `old` when nothing changes.
    """
    was, meta = old["metadata"], new["metadata"]
    addressed(meta, was["name"], was.get("namespace", ""))
    if meta.get("uid", was["uid"]) != was["uid"]:
        if patched:
            _refuse(kind, old, [causes.invalid("metadata.uid", meta["uid"], "field is immutable")])
        raise failures.conflict(kind.resource, was["name"], f"Precondition failed: UID in precondition: {meta['uid']}, "
                                                            f"UID in object meta: {was['uid']}")
    revision = "" if meta.get("resourceVersion") in _NO_REVISION else meta["resourceVersion"]
    if not revision and conditional:
        raise failures.invalid_kind(kind.resource.plural, kind.resource.group, was["name"], [UNCONDITIONAL])
    if revision and revision != was["resourceVersion"]:
        raise failures.conflict(kind.resource, was["name"])
    unasked = list(metadata.of_deletion(meta, was, part))
    result = _merged(kind, old, new, part)
    kept = {field: value for field, value in result["metadata"].items() if field not in _FIXED}
    fixed = {field: was[field] for field in _FIXED if field in was}
    result["metadata"] = {**fixed, **kept, "resourceVersion": was["resourceVersion"]}
    if not part:
        kind.carry(result, old)
    elif part == "status":
        kind.status_carry(result, old)
    if part != "status" and not (kind.of_spec and result.get("spec") == old.get("spec")):
        kind.defaults(result)
    kind.settle(result, None if kind.view else old)      # what a view shows is in no stored form
    _refuse(kind, result, [*unasked, *_update_faults(kind, result, old, part)])
    if kind.generation and part in _COUNTED and _spec_of(kind, result) != _spec_of(kind, old):
        result["metadata"]["generation"] = int(was.get("generation", 0)) + 1
    return result


def addressed(meta: Object, name: str, namespace: str) -> None:
    """Raises Failure 400 for an object that was sent to another place than it says."""
    if not meta.get("name"):
        raise failures.bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must "
                                   "be provided")
    if meta["name"] != name:
        raise failures.misnamed(meta["name"], name)
    if (meta.get("namespace") or namespace) != namespace:
        raise failures.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request")


def finished(kind: Kind, thing: Object) -> bool:
    """Nothing holds a deleted object any more: it goes with this write."""
    meta = thing["metadata"]
    held = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds") or _content(kind, thing)
    return bool(meta.get("deletionTimestamp")) and not held


def ended(kind: Kind, old: Object, options: DeleteOptions, now: datetime) -> tuple[Object, bool]:
    """The object as a deletion leaves it, and whether it goes at once.

    What is told of an object that goes is what it was; only one that might have had time to end is told to have ended.
    """
    # A negative time is one second, as Kubernetes has it.
    grace = kind.grace(old, 1 if options.grace is not None and options.grace < 0 else options.grace)
    if "deletionTimestamp" not in old["metadata"]:
        old = kind.ending(old, now)
    meta = dict(old["metadata"])
    finalizers = _finalizers(kind, meta.get("finalizers") or [], options.propagation)
    if not kind.graceful and not finalizers and not _content(kind, old):
        return old, True
    meta["finalizers"] = finalizers
    if not finalizers:
        del meta["finalizers"]
    if "deletionTimestamp" in meta:
        left = int(meta.get("deletionGracePeriodSeconds") or 0)
        if grace < left:       # a second deletion can only hurry
            meta["deletionTimestamp"] = timestamp(moment(meta["deletionTimestamp"]) - timedelta(seconds=left - grace))
            meta["deletionGracePeriodSeconds"] = grace
    else:
        meta["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
        if not kind.content_finalizers:
            meta["deletionGracePeriodSeconds"] = grace
        if kind.generation:
            meta["generation"] = int(meta.get("generation", 0)) + 1
    kept = {**old, "metadata": meta}
    return kept, finished(kind, kept)


def precondition(kind: Kind, old: Object, options: DeleteOptions) -> None:
    """Raises Failure 409 when the object is not the one that was meant."""
    meta = old["metadata"]
    for said, wanted, found in (("UID", options.uid, meta["uid"]),
                                ("ResourceVersion", options.revision, meta["resourceVersion"])):
        if wanted and wanted != found:
            if kind.content_finalizers:
                raise failures.conflict(kind.resource, meta["name"], f"Precondition failed: {said} in precondition: "
                                                                     f"{wanted}, {said} in object meta: {found}")
            raise failures.unmet(kind.resource, meta["name"], said, wanted, found)


def _content(kind: Kind, thing: Object) -> bool:
    return kind.content_finalizers and bool((thing.get("spec") or {}).get("finalizers"))


def _merged(kind: Kind, old: Object, new: Object, part: str) -> Object:
    """Which of the two objects each part is taken from."""
    if part == "status":
        result = {**old, "metadata": old["metadata"] if kind.custom or kind.status_only else new["metadata"]}
        result.pop("status", None)
        return {**result, "status": new["status"]} if "status" in new else result
    if part:
        return new
    result = {field: value for field, value in new.items() if field != "status" or not kind.status}
    if kind.status and "status" in old:
        result["status"] = old["status"]
    return result


def _spec_of(kind: Kind, thing: Object) -> Object:
    """What the generation counts."""
    apart = {"metadata", "status"} if kind.status else {"metadata"}
    found = {field: value for field, value in thing.items() if field not in apart}
    more = None if kind.custom else _COUNTED_METADATA.get(kind.resource.plural)
    return found if more is None else {**found, "metadata": thing["metadata"].get(more)}


def _finalizers(kind: Kind, found: list[str], propagation: str) -> list[str]:
    if not propagation:
        return [*found, ORPHAN] if kind.orphans and not {FOREGROUND, ORPHAN} & set(found) else found
    rest = [name for name in found if name not in {FOREGROUND, ORPHAN}]
    added = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation)
    return [*rest, added] if added else rest


def _refuse(kind: Kind, thing: Object, faults: Iterable[Cause]) -> None:
    if told := [*islice(faults, MOST_FAULTS)]:
        resource = kind.view.stored if kind.view else kind.resource
        raise failures.invalid(resource, thing["metadata"].get("name", ""), told)


def _update_faults(kind: Kind, new: Object, old: Object, part: str) -> list[Cause]:
    found = list(metadata.common(kind, new["metadata"], old["metadata"]))
    if "deletionTimestamp" in old["metadata"]:
        known = old["metadata"].get("finalizers") or []
        added = [name for name in new["metadata"].get("finalizers") or () if name not in known]
        if added:
            listed = ", ".join(causes.quoted(name) for name in added)
            found.append(causes.forbidden("metadata.finalizers", "no new finalizers can be added if the object is "
                                          f"being deleted, found new finalizers []string{{{listed}}}"))
    if not part:
        found += _new_faults(kind, new, old)
    elif part == "status":
        found += islice(kind.status_rules(new, old), MOST_FAULTS)
    return [*found, *_schema_faults(kind, new, old)]


def _new_faults(kind: Kind, new: Object, old: Object) -> list[Cause]:
    """What is wrong and was not before. An object that an older server took, with fewer rules or defaults, can still be
    changed in other fields, above all lose its finalizers."""
    found = [*islice(kind.rules(new, old), MOST_FAULTS)]
    if not found:
        return []
    before = copy.deepcopy(old)
    kind.defaults(before)
    known = {*islice(kind.rules(before, None), MOST_FAULTS)}
    return [fault for fault in islice(kind.rules(new, before), MOST_FAULTS) if fault not in known]


def _schema_faults(kind: Kind, thing: Object, old: Object | None) -> Iterator[Cause]:
    if kind.schema is not None:
        yield from kind.schema.check(thing, old)
