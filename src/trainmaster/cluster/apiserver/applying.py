"""Server-side apply: a configuration, its author, and the live object become the next object and its owners. Pure.

The author owns what the configuration says. What it said the last time and does not say any more goes, unless somebody
else owns it too. What it changes although somebody else owns it is a conflict, unless the author insists (`force`).
The order of the steps is that of Kubernetes, because each sees what the one before it left.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import orjson

from trainmaster.api.core import SCALES
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import bodies, builtin, conforming, failures, fieldsets, managers, merging, shapes
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.fieldsets import FieldSet
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.managers import APPLY, UPDATE, Comparison, Identity, Writer
from trainmaster.cluster.apiserver.mergeable import Fields, Unmergeable

# Owns what was there before anybody applied, on objects whose owners are not known.
BEFORE = "before-first-apply"
# kubectl's own record of what it applied, and the author that keeps it up to date.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
NULL = 'Invalid value: "null"'
_STRIPPED: FieldSet = {"f:apiVersion": {}, "f:kind": {}, "f:metadata": {
    ".": {}, **{f"f:{name}": {} for name in sorted(shapes.UNOWNED)}}}


class Conflict(failures.Failure):
    """409: somebody else owns what would be changed."""

    def __init__(self, found: dict[Identity, FieldSet], *, scaling: bool = False) -> None:
        self.found = found
        if scaling:       # seen from a scale, all ordinary writers wrote scales
            found = {(me[0], me[1], SCALES.api_version if me[1] == UPDATE else "", me[3]): fields
                     for me, fields in found.items()}
        paths = {me: list(fieldsets.paths(fields)) for me, fields in found.items()}
        causes = [Cause(path, "FieldManagerConflict", f"conflict with {_named(me)}")
                  for me in paths for path in paths[me]]
        if len(causes) == 1:
            said = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
        else:
            lines = [line for me in sorted(paths, key=managers.spelled)
                     for line in (f"conflicts with {_named(me)}:", *(f"- {path}" for path in paths[me]))]
            said = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
        super().__init__(409, "Conflict", said, {"causes": [cause.document() for cause in causes]})


def _named(me: Identity) -> str:
    manager, operation, version, part = me
    said = fieldsets.json_text(manager)
    if part:
        said += f" with subresource {fieldsets.json_text(part)}"
    return f"{said} using {version}" if operation == UPDATE else said


@dataclass(frozen=True, slots=True)
class Application:
    """A configuration, who applies it, and how the kind is found in other versions."""

    kind: Kind
    config: Object
    writer: Writer
    force: bool
    find: Callable[[str], Kind | None]

    def applied(self, live: Object | None) -> Object:
        """The next object, with its owners in its metadata. Raises Failure 400, 409 or 500."""
        self._check()
        present = shapes.nothing(self.kind) if live is None else live
        stored = list(present["metadata"].get("managedFields") or ())
        bare = _bare(present)
        try:
            result, entries = self._resolved(bare, stored)
        except Unmergeable as error:
            raise failures.unexpected(f"failed to merge config: {error}") from error
        if self.writer.manager == KUBECTL and _annotations(result).get(LAST_APPLIED):
            kept = {**_annotations(result), LAST_APPLIED: self._as_text()}
            result = {**result, "metadata": {**result["metadata"], "annotations": kept}}
        if not self.kind.custom:       # a typed server reads null as nothing
            result = bodies.as_object(bodies.without_nulls(result))
        elif faults := list(_holes(self.kind, result)):
            raise failures.invalid(self.kind.resource, str(result["metadata"].get("name") or ""), faults)
        managers.keep(result, entries)
        return result

    def _check(self) -> None:
        resource, config = self.kind.resource, self.config
        version, kind = config.get("apiVersion") or "", config.get("kind") or ""
        if (version, kind) != (resource.api_version, resource.kind):
            raise failures.bad_request(f"invalid object type: {_group_version(str(version))}, Kind={kind}")
        meta = config.get("metadata")
        if isinstance(meta, dict) and meta.get("managedFields") is not None:
            raise failures.bad_request("metadata.managedFields must be nil")
        shape = shapes.of_kind(self.kind)
        if self.kind.schema is not None:
            faults = conforming.faults_of_schema(config, self.kind.schema.document, shape)
        else:
            assert self.kind.type is not None
            faults = conforming.faults_of_type(config, self.kind.type.name, shape)
        if faults:
            meta = meta if isinstance(meta, dict) else {}
            named = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {_group_version(version)}, Kind={kind}"
            raise failures.unexpected(f"failed to create typed patch object ({named}): {conforming.text(faults)}")

    def _resolved(self, live: Object, stored: list[Object]) -> tuple[Object, list[Object]]:
        """The outcome, where kubectl may take over what it owns by its own record."""
        try:
            return self._outcome(live, stored)
        except Conflict as conflict:
            if self.writer.manager != KUBECTL:
                raise
            allowed = self._recorded(live)
            left = {me: fieldsets.difference(fields, allowed) for me, fields in conflict.found.items()}
            if any(left.values()):
                raise Conflict({me: fields for me, fields in left.items() if fields}) from conflict
            return replace(self, force=True)._outcome(live, stored)

    def _outcome(self, live: Object, stored: list[Object]) -> tuple[Object, list[Object]]:
        entries = {managers.identity(entry): entry for entry in (*stored, *self._before(live, stored))}
        me, shape = self.writer.identity(APPLY), shapes.of_kind(self.kind)
        last = entries.get(me)
        merged = merging.merged(shape, live, self.config)
        wanted = fieldsets.pruned(merging.fields(shape, self.config), managers.reset(self.kind, self.writer.part))
        entries[me] = self.writer.entry(wanted, APPLY)
        result = _Pruning(self, entries, me).pruned(merged, last) if last and last.get("fieldsV1") else merged
        compared = managers.comparison(self.kind, live, result, self.writer.part, self.find)
        if not self.force and (conflicts := dict(_conflicts(entries, compared, me))):
            raise Conflict(conflicts, scaling=self.writer.part == "scale")
        entries = managers.taken(list(entries.values()), compared, but=me)
        own = fieldsets.difference(wanted, _STRIPPED)
        if not own:
            entries.pop(me, None)
        else:
            entries[me] = self._entry(own, last, written=result != live)
        return result, managers.ordered(entries)

    def _entry(self, own: FieldSet, last: Object | None, *, written: bool) -> Object:
        """Its time is that of the last change; one that never changed anything has none."""
        found = self.writer.entry(own, APPLY)
        if written and "time" in found:
            return found
        then = {"time": last["time"]} if last is not None and last.get("time") else {}
        return {key: value for key, value in found.items() if key != "time"} | then

    def _before(self, live: Object, stored: list[Object]) -> list[Object]:
        """The owner of everything on an object that has no owners; a new object has nothing to own."""
        writer = replace(self.writer, manager=BEFORE)
        path = managers.replicas(self.kind)
        if writer.part == "scale":
            seen = any(fieldsets.has(entry.get("fieldsV1") or {}, path) for entry in stored)
            return [] if seen else [writer.entry(fieldsets.only(path))]
        if stored or not live["metadata"].get("uid"):
            return []
        return managers.updated([], managers.comparison(self.kind, None, live, writer.part, self.find), writer)

    def _recorded(self, live: Object) -> FieldSet:
        """The paths that kubectl applied in its own way, and that are still as it left them."""
        try:
            record: Json = orjson.loads(str(_annotations(live).get(LAST_APPLIED) or ""))
        except orjson.JSONDecodeError:
            return {}
        if not isinstance(record, dict) or record.get("apiVersion") != self.kind.resource.api_version:
            return {}
        shape = shapes.of_kind(self.kind)
        try:
            changed, removed = shape.compare(record, live)
            return fieldsets.difference(fieldsets.difference(merging.fields(shape, record), changed or {}),
                                        removed or {})
        except Unmergeable:
            return {}

    def _as_text(self) -> str:
        """The configuration as kubectl keeps it."""
        meta = dict(self.config.get("metadata") or {})
        if LAST_APPLIED in (meta.get("annotations") or {}):
            meta["annotations"] = {key: value for key, value in meta["annotations"].items() if key != LAST_APPLIED}
        return orjson.dumps({**self.config, "metadata": meta}, option=orjson.OPT_SORT_KEYS).decode() + "\n"


def _holes(kind: Kind, thing: Object) -> Iterator[Cause]:
    """What a custom object must not have: null, left where a list or an object lost its last item. Upstream parity: an
    ordinary write drops such a null before it is checked, an application does not, so it is refused."""
    if kind.schema is not None and b"null" in orjson.dumps(thing):
        yield from (cause for cause in kind.schema.check(thing, None) if cause.message.startswith(NULL))


def _conflicts(entries: dict[Identity, Object], compared: Comparison,
               me: Identity) -> Iterator[tuple[Identity, FieldSet]]:
    for other, entry in entries.items():
        change = None if other == me else compared(entry["apiVersion"])
        if change is not None and (fields := fieldsets.intersection(entry.get("fieldsV1") or {}, change.changed)):
            yield other, fields


@dataclass(frozen=True, slots=True)
class _Pruning:
    """Takes out of an object what its author gave up: said the last time, not now, and nobody else owns."""

    application: Application
    entries: dict[Identity, Object]
    me: Identity

    def pruned(self, merged: Object, last: Object) -> Object:
        kind, version = self.application.kind, last["apiVersion"]
        then = kind if version == kind.resource.api_version else self.application.find(version)
        if then is None:
            return merged
        shape = shapes.of_kind(then)
        whole = kind.converted(merged, then)
        given: FieldSet = merging.named(shape, last["fieldsV1"])
        left = _as_object(merging.without(shape, whole, given))
        left = self._owned(whole, left, then)
        kept = merging.named(shape, merging.fields(shape, left))
        before = merging.named(shape, merging.fields(shape, whole))
        gone = fieldsets.intersection(fieldsets.difference(before, kept), given)
        return then.converted(_as_object(merging.without(shape, whole, gone)), kind)

    def _owned(self, merged: Object, left: Object, then: Kind) -> Object:
        """What is left, with what anybody owns put back, version by version."""
        by_version: dict[str, FieldSet] = {then.resource.api_version: {}}
        for entry in self.entries.values():
            version = entry["apiVersion"]
            by_version[version] = fieldsets.union(by_version.get(version, {}), entry.get("fieldsV1") or {})
        for version, owned in by_version.items():
            other = then if version == then.resource.api_version else self.application.find(version)
            if other is not None:
                shape = shapes.of_kind(other)
                whole, rest = then.converted(merged, other), then.converted(left, other)
                left = other.converted(_with(shape, whole, rest, owned), then)
        return left


def _with(shape: Fields, whole: Object, left: Object, owned: FieldSet) -> Object:
    before = merging.named(shape, merging.fields(shape, whole))
    kept = fieldsets.union(merging.named(shape, merging.fields(shape, left)), merging.named(shape, owned))
    return _as_object(merging.without(shape, whole, fieldsets.difference(before, kept)))


def _as_object(value: Json) -> Object:
    return value if isinstance(value, dict) else {}


def _bare(thing: Object) -> Object:
    return {**thing, "metadata": {key: value for key, value in thing["metadata"].items() if key != "managedFields"}}


def _annotations(thing: Object) -> Object:
    return thing["metadata"].get("annotations") or {}


def _group_version(api_version: str) -> str:
    return api_version if "/" in api_version else f"/{api_version}"


def addressed(kind: Kind, thing: Object, live: Object | None, namespace: str, name: str) -> Object:
    """The object, if it is the one that the request was sent to. Raises Failure 400 or 409."""
    meta = thing["metadata"]
    if live is None:
        if meta.get("uid"):
            raise failures.conflict(kind.resource, name, f"uid mismatch: the provided object specified uid "
                                    f"{meta['uid']}, and no existing object was found")
        meta = thing["metadata"] = {key: value for key, value in meta.items() if key != "resourceVersion"}
    if meta.get("namespace", namespace) != namespace:
        raise failures.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request")
    if not meta.get("name"):
        raise failures.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if meta["name"] != name:
        raise failures.misnamed(meta["name"], name)
    return thing


def of_scale(kind: Kind, scale: Object) -> Object:
    """A configuration of a scale as one of the object. Raises Failure 400 or 500."""
    assert kind.scale is not None
    version, named = str(scale.get("apiVersion") or ""), str(scale.get("kind") or "")
    if (version, named) != (SCALES.api_version, SCALES.kind):
        raise failures.bad_request(f"invalid object type: {_group_version(version)}, Kind={named}")
    type_ = builtin.shape_of(SCALES.api_version, SCALES.kind)
    assert type_ is not None
    meta = scale.get("metadata")
    if faults := conforming.faults_of_type(scale, type_.name, shapes.of_type(type_.name)):
        meta = meta if isinstance(meta, dict) else {}
        raise failures.unexpected(
            f"failed to create typed patch object ({meta.get('namespace') or ''}/{meta.get('name') or ''}; {version}, "
            f"Kind={named}): {conforming.text(faults)}")
    kept = {key: value for key, value in (meta or {}).items() if key in {"name", "namespace", "uid", "resourceVersion"}}
    result: Object = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "metadata": kept}
    replicas = (scale.get("spec") or {}).get("replicas")
    if replicas is not None:
        inner = result
        for part in kind.scale.spec[:-1]:
            inner = inner.setdefault(part, {})
        inner[kind.scale.spec[-1]] = replicas
    return result
