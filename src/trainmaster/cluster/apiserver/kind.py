"""What the server must know about one kind to serve it: where it lives, what it may be called, its defaults and rules.

Built-in kinds are rows of a table of these (`kinds`); a custom resource becomes one when its definition is installed
(`definitions`). Everything else in the server works on `Kind` and does not ask which of the two it has.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import orjson

from trainmaster.api.meta import Json, Object, Resource
from trainmaster.cluster.apiserver import builtin, embedded, names
from trainmaster.cluster.apiserver.causes import Cause

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
SUB_VERBS = ("get", "patch", "update")

# Finalizers that the garbage collector works through.
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with verbs of its own, as discovery tells it."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    value: Callable[[Object], Json]
    type: str = "string"
    format: str = ""
    priority: int = 0                  # above 0: only with -o wide
    description: str = ""


class Schema(Protocol):
    """How objects of a custom kind are cleaned, completed and checked; built-in kinds have functions instead."""

    document: Object

    def settle(self, thing: Object) -> list[str]:
        """Drop what the schema does not know, fill in defaults; the paths that were dropped.

        Raises `embedded.Misfit`, after all of it is done, for what cannot be read.
        """
        ...

    def check(self, thing: Object, old: Object | None) -> Iterable[Cause]: ...


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a definition that changed makes of older objects when they are read: pruned and completed, not rewritten."""

    schema: Schema                     # of the version that is stored
    since: int                         # the revision that brought it; what is newer was settled when it was written

    def renewed(self, value: bytes) -> Object | None:
        """The object as the schema has it, or None: the bytes are as they should be."""
        found = _REVISION.search(value)
        if found is None or int(found[1]) > self.since:
            return None
        thing: Object = orjson.loads(value)
        with suppress(embedded.Misfit):      # what does not fit any more is not shown
            self.schema.settle(thing)
        return thing


# Nothing before it in the metadata of a custom object (name, namespace, uid) can contain this.
_REVISION = re.compile(rb'"resourceVersion":"(\d+)"')


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a custom kind keeps its replica counts."""

    spec: tuple[str, ...]
    status: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """A kind whose objects are stored as those of another: where they are, and how one becomes the other."""

    stored: Resource
    inward: Callable[[Object], Object]
    outward: Callable[[Object], Object]
    fields: Mapping[str, str] = field(default_factory=dict)      # how selectors name fields here -> in the stored form


def _nothing(_thing: Object) -> None:
    """A kind without defaults."""


def _settled(_thing: Object, _old: Object | None) -> None:
    """A kind that is stored as it is sent."""


def _no_rules(_thing: Object, _old: Object | None) -> Iterable[Cause]:
    return ()


def _carries_nothing(_thing: Object, _old: Object) -> None:
    """A kind whose updates may replace everything."""


def _no_grace(_thing: Object, _asked: int | None) -> int:
    return 0


def _ends_as_is(thing: Object, _now: datetime) -> Object:
    return thing


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in one version."""

    resource: Resource
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    virtual: bool = False                     # its objects are answered and never stored
    singular: str = ""
    list_kind: str = ""
    naming: Callable[[str], names.Faults] = names.subdomain
    status: bool = False                      # has a status subresource: spec and status are written separately
    keeps_status: bool = False                # takes the status that comes with a creation
    generation: bool = False                  # counts changes of what is not metadata or status
    unconditional: bool = True                # PUT without a resourceVersion replaces whatever is there
    custom: bool = False
    answers_object: bool = False              # a deletion is answered with the object and not with a Status
    subresources: tuple[Subresource, ...] = ()    # besides status
    selectable: tuple[str, ...] = ()
    begin: Callable[[Object], None] = _nothing     # at creation, before the defaults
    defaults: Callable[[Object], None] = _nothing
    of_spec: bool = False                     # defaults and rules look at nothing but the spec: once is enough
    carry: Callable[[Object, Object], None] = _carries_nothing    # what an update takes over from the old object
    # Of an update of the status: what it takes over or fills in, without changing parts in place, and its rules.
    status_only: bool = False                 # of a built-in kind: it leaves the metadata alone, as custom kinds do
    status_carry: Callable[[Object, Object], None] = _carries_nothing
    status_rules: Callable[[Object, Object], Iterable[Cause]] = _no_rules
    grace: Callable[[Object, int | None], int] = _no_grace        # seconds an object gets when it is deleted
    ending: Callable[[Object, datetime], Object] = _ends_as_is    # the object when its deletion begins
    content_finalizers: bool = False          # `spec.finalizers` hold it too
    orphans: bool = False                     # what it owns stays, unless a deletion says otherwise
    rules: Callable[[Object, Object | None], Iterable[Cause]] = _no_rules
    columns: Sequence[Column] = ()
    schema: Schema | None = None
    renewal: Renewal | None = None
    scale: Scale | None = None
    # The form that Kubernetes stores, whatever form was sent; what is as in the object before is in that form already.
    settle: Callable[[Object, Object | None], None] = _settled
    view: View | None = None
    warning: str = ""                         # sent with every answer: a deprecated version
    head: bytes = field(init=False, repr=False)
    prefix: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pair = orjson.dumps({"apiVersion": self.resource.api_version, "kind": self.resource.kind})
        object.__setattr__(self, "head", pair[:-1] + b",")
        stored = self.view.stored if self.view else self.resource
        object.__setattr__(self, "prefix", f"/{stored.group or 'core'}/{stored.plural}/")
        object.__setattr__(self, "singular", self.singular or self.resource.kind.lower())
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.resource.kind}List")

    @property
    def graceful(self) -> bool:
        """Whether its objects may get time to end."""
        return self.grace is not _no_grace

    @property
    def type(self) -> builtin.Type | None:
        """The fields of a built-in kind; a custom one has a schema instead."""
        return None if self.custom else builtin.shape_of(self.resource.api_version, self.resource.kind)

    def under(self, namespace: str) -> str:
        """The prefix of the keys of all objects, or of those of one namespace."""
        return f"{self.prefix}{namespace}/" if namespace else self.prefix

    def key(self, namespace: str, name: str) -> str:
        return f"{self.prefix}{namespace}/{name}" if self.resource.namespaced else f"{self.prefix}{name}"

    def present(self, value: bytes) -> bytes:
        """Stored bytes as this version's clients see them.

        Every stored object starts with its apiVersion and kind, so that another version of the same kind (conversion
        changes nothing else) is a matter of another beginning.
        """
        if self.renewal is not None and (renewed := self.renewal.renewed(value)) is not None:
            return self._encoded(renewed, self.resource)
        if value.startswith(self.head):
            return value
        if self.view is not None:
            return self._encoded(self.view.outward(orjson.loads(value)), self.resource)
        return self.head + value[value.index(b'"metadata"'):]

    def item(self, value: bytes) -> bytes:
        """The same inside a list, where built-in kinds carry no apiVersion and kind."""
        if self.custom:
            return self.present(value)
        return b"{" + (value if self.view is None else self.present(value))[len(self.head):]

    def encode(self, thing: Object) -> bytes:
        """The bytes to store: apiVersion, kind and metadata first, then the rest as it came."""
        if self.view is not None:
            return self._encoded(self.view.inward(thing), self.view.stored)
        return self._encoded(thing, self.resource)

    @staticmethod
    def _encoded(thing: Object, resource: Resource) -> bytes:
        rest = {key: value for key, value in thing.items() if key not in {"apiVersion", "kind", "metadata"}}
        ordered = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": thing["metadata"]}
        return orjson.dumps({**ordered, **rest})

    def converted(self, thing: Object, other: "Kind") -> Object:
        """An object of this kind as one of the same kind in another version; `thing` stays as it is."""
        if other is self or (self.view is None and other.view is None):
            return thing
        found: Object = {"metadata": {}, **orjson.loads(orjson.dumps(thing))}
        if self.view is not None:
            found = self.view.inward(found)
        return found if other.view is None else other.view.outward(found)

    def subresource(self, name: str) -> Subresource | None:
        if name == "status" and self.status:
            return Subresource("status", self.resource.kind, SUB_VERBS)
        return next((found for found in self.subresources if found.name == name), None)
