"""Who owns which fields after a write: what the verbs on stored objects ask of `managers`, which is pure."""

import contextlib
import copy
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import failures, managers
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.familiar import Familiar
from trainmaster.cluster.apiserver.fieldsets import MEMBER, FieldSet
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.options import Options

# Writes that say what happened to an object, and are nobody's wish for it.
_UNOWNED = frozenset({"binding"})


@dataclass(frozen=True, slots=True)
class Ownership:
    """Keeps the record of owners. Entries may name any version that the catalog has."""

    catalog: Catalog

    def record(self, kind: Kind, old: Object | None, new: Object, sent: Json, part: str, options: Options,
               now: datetime, apart: FieldSet = MEMBER, before: Callable[[], Object] | None = None,
               familiar: Familiar | None = None) -> None:
        """Write down who owns the fields of an object; it is not yet what admission makes of it, as in Kubernetes.

        `familiar`: what is known about the specification of a new object. `before` makes the object as it was sent to
        webhooks: what they add is nobody's. If that was not a valid object without them, what they added is the
        writer's.
        """
        if options.applied:
            managers.keep(new, sent)
            return
        if options.manager is None or part in _UNOWNED:
            managers.keep(new, None if old is None else old["metadata"].get("managedFields"))
            return
        writer = managers.Writer(options.manager, kind.resource.api_version, part, now)
        if before is not None:
            with contextlib.suppress(failures.Failure):
                given = before()
                managers.record(kind, old, given, sent, writer, self.in_version(kind), apart)
                managers.keep(new, given["metadata"].get("managedFields"))
                return
        managers.record(kind, old, new, sent, writer, self.in_version(kind), apart, familiar)

    def record_own(self, kind: Kind, before: Object, new: Object, now: datetime) -> None:
        """The same for a status that the server itself has set."""
        writer = managers.Writer(managers.SERVER, kind.resource.api_version, "status", now)
        managers.record(kind, before, new, None, writer, self.in_version(kind))

    def in_version(self, kind: Kind) -> Callable[[str], Kind | None]:
        """The same kind as an entry of its managed fields names it, by apiVersion."""
        def find(api_version: str) -> Kind | None:
            group, _, version = api_version.rpartition("/")
            found = self.catalog.find(group, version, kind.resource.plural)
            return found if found is not None and found.prefix == kind.prefix else None

        return find


def without(thing: Object) -> Object:
    """A copy without a word about who owns what."""
    found = copy.deepcopy(thing)
    found["metadata"].pop("managedFields", None)
    return found
