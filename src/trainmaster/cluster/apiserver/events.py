"""Events, in the core group and in `events.k8s.io`: the same objects, stored once, under two sets of field names.

The newer group asks for more of whoever creates an event through it, and lets nothing but the series change.
"""

from collections.abc import Iterator
from dataclasses import replace

from trainmaster.api import core
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, columns, names, normal
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Column, Kind, View
from trainmaster.cluster.apiserver.rows import row

# How the newer group calls what the core group has; all other fields are called the same.
NEW_NAMES = {
    "involvedObject": "regarding", "message": "note", "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount", "reportingComponent": "reportingController",
}
_OLD_NAMES = {new: old for old, new in NEW_NAMES.items()}
_FIELDS = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
    "reportingComponent", "source", "type",
)
_NEW_FIELDS = {".".join((NEW_NAMES.get(field.split(".")[0], field.split(".")[0]), *field.split(".")[1:])): field
               for field in _FIELDS if field != "source"}
_LONGEST = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_OLD_ONLY = ("firstTimestamp", "lastTimestamp", "count", "source")      # what the core group has is said otherwise now
_FIXED = ("involvedObject", "reason", "message", *_OLD_ONLY, "type", "eventTime", "action", "related",
          "reportingComponent", "reportingInstance")
_NEWLY = {"reportingComponent": "reportingController"}      # the one that is told by its new name


def to_new(event: Object) -> Object:
    return {**{NEW_NAMES.get(field, field): value for field, value in event.items()},
            "apiVersion": "events.k8s.io/v1", "kind": "Event"}


def to_core(event: Object) -> Object:
    found = {**_renamed(event), "apiVersion": "v1", "kind": "Event"}
    _settle(found, None)
    return found


def _core_rules(event: Object, _old: Object | None) -> Iterator[Cause]:
    """What both groups ask for: more of an event with the newer field for its time."""
    yield from _shared_rules(event, "reportingComponent")


def _shared_rules(event: Object, reporter: str) -> Iterator[Cause]:
    about, home = (event.get("involvedObject") or {}).get("namespace") or "", event["metadata"].get("namespace")
    timed = bool(event.get("eventTime"))
    homes = {about} if about else {"default", "kube-system"} if timed else {"default"}
    if home not in homes and not (about and timed):
        yield causes.invalid("involvedObject.namespace", about, "does not match event.namespace")
    if not timed:
        return
    controller = event.get("reportingComponent") or ""
    if not controller:
        yield causes.required(reporter)
    yield from names.refused(reporter, controller, names.qualified(controller))
    for field, most in _LONGEST.items():
        said = event.get(field) or ""
        if not said and field != "message":
            yield causes.required(field)
        if len(said.encode("utf-8", "replace")) > most:
            yield causes.invalid(field, "", f"can have at most {most} characters")


def _new_rules(event: Object, old: Object | None) -> Iterator[Cause]:
    """Faults are told by the names of the core group, as a real server does."""
    found, was = _renamed(event), None if old is None else _renamed(old)
    yield from _shared_rules(found, "reportingController")
    series = event.get("series")
    if series is not None and series != (was or {}).get("series"):
        if (series.get("count") or 0) < 2:
            yield causes.invalid("series.count", "", "should be at least 2")
        if not series.get("lastObservedTime"):
            yield causes.required("series.lastObservedTime")
    if was is not None:
        for field in _FIXED:
            yield from checks.unchanged(found.get(field), was.get(field), _NEWLY.get(field, field))
        return
    if not event.get("eventTime"):
        yield causes.required("eventTime")
    if event.get("type") not in {"Normal", "Warning"}:
        yield causes.invalid("type", "", f"has invalid value: {event.get('type') or ''}")
    for field in (each for each in _OLD_ONLY if found.get(each)):
        yield causes.invalid(field, "", "needs to be unset")


def _renamed(event: Object) -> Object:
    return {_OLD_NAMES.get(field, field): value for field, value in event.items()}


def _column(column: Column) -> Column:
    def cell(event: Object) -> Json:
        return column.value(to_core(event))

    return replace(column, value=cell)


_settle = normal.settle("v1", "Event")

KINDS: tuple[Kind, ...] = (
    row("v1", "events", selectable=_FIELDS, rules=_core_rules, columns=columns.EVENT),
    row("events.k8s.io/v1", "events", selectable=tuple(_NEW_FIELDS), rules=_new_rules,
        view=View(core.EVENTS, to_core, to_new, _NEW_FIELDS), columns=tuple(map(_column, columns.EVENT))),
)
