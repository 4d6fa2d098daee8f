"""Specifications that came before: what was made of one is made of the next that is the same, byte for byte.

The pods of a set, and of many a job, differ in their names alone. To check, complete and settle a specification and to
list its fields is half the work of a creation, and depends on nothing but the specification, for kinds that say so
(`Kind.of_spec`). So it is done once. The first time only the bytes are remembered: most specifications are never seen
again, and should cost nothing more. What is remembered is bounded, and the oldest goes first.

Rejected: to remember parts of specifications, such as containers. Looking up the small ones costs what checking them
does, and the large ones differ wherever the whole does.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import shapes
from trainmaster.cluster.apiserver.fieldsets import Change, FieldSet
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.mergeable import Unmergeable

MOST = 64
MOST_SORTS = 16                          # of metadata, for which who owns what is remembered with a specification
LONGEST_SORT = 2048                      # signs of what makes one
LONGEST = 16 * 1024                      # bytes of a specification that is remembered

Sent = tuple[str, bytes]                 # a kind, and a specification as it was sent
Sort = tuple[tuple[str, ...], tuple[str, ...], bytes]


# Of the metadata: what nobody owns, and what is owned by its keys alone.
_OF_NO_MATTER = shapes.UNOWNED | {"labels", "annotations"}


@dataclass(frozen=True, slots=True)
class Familiar:
    """What became of a specification: the fields of an object that follow from it, and those of them that are owned."""

    _made: bytes
    owned: FieldSet
    _changes: dict[Sort, Change] = field(default_factory=dict, compare=False)

    def change(self, meta: Object, compare: Callable[[], Change]) -> Change:
        """What making an object with this specification does to its fields: the same for all whose metadata have the
        same labels and annotations, whatever these say, and the rest in common. Not to be changed."""
        rest = {name: value for name, value in meta.items() if name not in _OF_NO_MATTER}
        labels, annotations = (tuple(meta.get(name) or ()) for name in ("labels", "annotations"))
        sort = labels, annotations, orjson.dumps(rest) if rest else b""
        found = self._changes.get(sort)
        if found is None:
            found = compare()
            if sum(map(len, (*labels, *annotations))) + len(sort[2]) <= LONGEST_SORT:
                if len(self._changes) >= MOST_SORTS:
                    self._changes.clear()
                self._changes[sort] = found
        return found

    def made(self) -> Object:
        """The spec and the status of a new object, to be changed at will."""
        found: Object = orjson.loads(self._made)
        return found


@dataclass(frozen=True, slots=True)
class Familiars:
    """Those that came last."""

    _known: OrderedDict[Sent, Familiar | None] = field(default_factory=OrderedDict)

    def sent(self, kind: Kind, body: Json) -> Sent | None:
        """What a new object is known by; None: its kind is not one of those, or it is too large."""
        if not kind.of_spec or not isinstance(body, dict) or not isinstance(body.get("spec"), dict):
            return None
        found = orjson.dumps(body["spec"])
        return (kind.prefix, found) if len(found) <= LONGEST else None

    def find(self, sent: Sent | None) -> Familiar | None:
        if sent is None or (found := self._known.get(sent)) is None:
            return None
        self._known.move_to_end(sent)
        return found

    def saw(self, sent: Sent | None, kind: Kind, thing: Object) -> None:
        """An object was made of this that is not familiar yet, valid and complete as far as its kind goes."""
        if sent is None:
            return
        self._known[sent] = _familiar(kind, thing) if sent in self._known else None
        self._known.move_to_end(sent)
        if len(self._known) > MOST:
            self._known.popitem(last=False)


def _familiar(kind: Kind, thing: Object) -> Familiar | None:
    """None: who owns what does not follow from the specification alone."""
    try:
        changed, removed = shapes.of_kind(kind).compare(shapes.nothing(kind), thing)
    except Unmergeable:
        return None
    if "f:spec" in (removed or {}) or not (owned := (changed or {}).get("f:spec")):
        return None
    return Familiar(orjson.dumps({part: thing[part] for part in ("spec", "status") if part in thing}), owned)
