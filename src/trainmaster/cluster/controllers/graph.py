"""Who owns whom, by UID, and what follows from it for one object. Pure.

An object goes when all its owners are gone; an owner that was deleted and made again is another one. A reference counts
only if its kind, name and namespace are those of the object with that UID, as in Kubernetes: otherwise anybody could
tie the life of an object to one in a namespace that he cannot see.

Rings. Owners that wait for each other in the foreground are let go together; Kubernetes instead rewrites the references
of one of them, guessing before the ring is complete. A ring that had an owner outside goes when that is gone;
Kubernetes keeps it for ever. A ring that never had one is left alone, there and here.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from trainmaster.api.meta import Key, Object, Resource, key_of, metadata, revision_of, uid_of

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
# Objects that are looked at to find out whether one hangs in a ring. Real ones have two or three.
LARGEST_RING = 1000
# Owners known to be gone. One that is forgotten costs a request when the next of its dependents is looked at.
REMEMBERED = 5000


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner reference."""

    uid: str
    blocks: bool   # blockOwnerDeletion: the owner waits for us when it is deleted in the foreground
    api_version: str
    kind: str
    name: str

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class Item:
    """An object as a place in the graph."""

    resource: Resource
    key: Key
    uid: str
    owners: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False
    revision: str = ""

    @property
    def waits(self) -> bool:
        """Whether it is held back until its dependents are gone."""
        return self.deleting and FOREGROUND in self.finalizers


def item_of(resource: Resource, thing: Object) -> Item:
    about = metadata(thing)
    return Item(
        resource, key_of(thing), uid_of(thing), tuple(map(owner_of, about.get("ownerReferences") or ())),
        tuple(about.get("finalizers") or ()), bool(about.get("deletionTimestamp")), revision_of(thing),
    )


def owner_of(ref: Object) -> Owner:
    return Owner(ref["uid"], bool(ref.get("blockOwnerDeletion")), ref["apiVersion"], ref["kind"], ref["name"])


class Graph:
    """Items by UID, and their dependents. Everything asked of it costs as much as the answer is long."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}    # in the order they came, so that runs can be repeated
        self._blocking: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> None:
        self.drop(item.uid)
        self._items[item.uid] = item
        for owner in item.owners:
            if owner.uid != item.uid:    # who owns himself waits for nobody
                self._dependents.setdefault(owner.uid, {})[item.uid] = None
                if owner.blocks:
                    self._blocking.setdefault(owner.uid, {})[item.uid] = None

    def drop(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        for owner in item.owners if item else ():
            for edges in (self._dependents, self._blocking):
                if of_owner := edges.get(owner.uid):
                    of_owner.pop(uid, None)
                    if not of_owner:
                        del edges[owner.uid]

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def owner(self, item: Item, reference: Owner) -> Item | None:
        """The object that a reference means, if it is here and the reference is right about it."""
        found = self._items.get(reference.uid)
        if found is None or (found.resource.group, found.resource.kind) != (reference.group, reference.kind):
            return None
        return found if found.key.name == reference.name and found.key.namespace in ("", item.key.namespace) else None

    def dependents(self, uid: str) -> list[Item]:
        return [self._items[one] for one in self._dependents.get(uid, ())]

    def blocking(self, uid: str) -> Iterator[Item]:
        """Those that hold back an owner which is deleted in the foreground: rightly, not from another namespace."""
        for one in self._blocking.get(uid, ()):
            item = self._items[one]
            if any(ref.uid == uid and ref.blocks and self.owner(item, ref) is not None for ref in item.owners):
                yield item

    def is_owner(self, uid: str) -> bool:
        return uid in self._dependents

    def is_blocked(self, uid: str) -> bool:
        return next(self.blocking(uid), None) is not None


class Absent:
    """Owners that are certainly not there; the latest, so many."""

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._known: OrderedDict[tuple[str, ...], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def gone(self, uid: str) -> None:
        """No object has this UID any more."""
        self._add((uid,))

    def missing(self, reference: Owner, namespace: str) -> None:
        """What a reference from this namespace says is not so, whether or not the UID belongs to another object."""
        self._add(_place(reference, namespace))

    def back(self, uid: str) -> None:
        """An object has this UID after all: the server was set back to an older state."""
        self._known.pop((uid,), None)

    def has(self, reference: Owner, namespace: str) -> bool:
        return (reference.uid,) in self._known or _place(reference, namespace) in self._known

    def _add(self, key: tuple[str, ...]) -> None:
        self._known[key] = None
        self._known.move_to_end(key)
        if len(self._known) > self._size:
            self._known.popitem(last=False)


def _place(reference: Owner, namespace: str) -> tuple[str, ...]:
    return reference.uid, reference.api_version, reference.kind, reference.name, namespace


class Verdict(Enum):
    """What to do with one object."""

    KEEP = "keep"
    DELETE = "delete"                        # its owners are gone
    DELETE_FOREGROUND = "delete foreground"  # its owner waits for it, and something waits for it in turn
    CUT = "cut"                              # remove references to owners that are gone or waiting; others live
    RELEASE = "release"                      # its dependents are gone: drop the foreground finalizer
    ORPHAN = "orphan"                        # cut the references of its dependents, then drop the orphan finalizer
    ASK = "ask"                              # an owner is not in the graph: ask the server before believing it gone


def verdict(item: Item, graph: Graph, absent: Absent) -> Verdict:
    """Decide about one object."""
    if item.deleting:
        if ORPHAN in item.finalizers:
            return Verdict.ORPHAN
        return Verdict.RELEASE if item.waits and not _blocked(item, graph) else Verdict.KEEP
    if not item.owners:
        return Verdict.KEEP
    living = []
    for reference in item.owners:
        owner = graph.owner(item, reference)
        if owner is None and not absent.has(reference, item.key.namespace):
            return Verdict.ASK
        if owner is not None and not owner.waits:
            living.append(owner)
    if len(living) == len(item.owners):
        return Verdict.KEEP
    if living and not _in_a_ring(item, living, graph, absent):
        return Verdict.CUT
    waiting = any(owner.waits for ref in item.owners if (owner := graph.owner(item, ref)) is not None)
    return Verdict.DELETE_FOREGROUND if waiting and graph.is_owner(item.uid) else Verdict.DELETE


def superfluous(item: Item, graph: Graph) -> frozenset[Owner]:
    """The references to owners that no longer hold an object: gone, or waiting for it to go."""
    found = ((reference, graph.owner(item, reference)) for reference in item.owners)
    return frozenset(reference for reference, owner in found if owner is None or owner.waits)


def _blocked(item: Item, graph: Graph) -> bool:
    """Whether an owner in the foreground has to wait for a dependent: not for those that wait for it in turn."""
    seen: set[str] = set()
    ahead = [item]
    while ahead:
        for one in graph.blocking(ahead.pop().uid):
            if not one.waits or not graph.is_blocked(one.uid):
                return True    # on its way out, or about to be let go: whoever it holds back hears of it then
            if one.uid not in seen:
                seen.add(one.uid)
                ahead.append(one)
    return bool(seen) and item.uid not in seen


def _in_a_ring(item: Item, living: list[Item], graph: Graph, absent: Absent) -> bool:
    """Whether the living owners of an object have nothing to live for but the object itself.

    So it is when no way up from them ends anywhere, and each of them comes back to the object. When in doubt it is not.
    """
    above: dict[str, Item] = {}
    ahead = [owner for owner in living if owner.uid != item.uid]
    while ahead:
        one = ahead.pop()
        if one.uid in above or one.uid == item.uid:
            continue
        above[one.uid] = one
        owners = [(reference, graph.owner(one, reference)) for reference in one.owners if reference.uid != one.uid]
        if any(owner is None and not absent.has(reference, one.key.namespace) for reference, owner in owners):
            return False
        holding = [owner for _, owner in owners if owner is not None and not owner.waits]
        if not holding or ORPHAN in one.finalizers or len(above) > LARGEST_RING:
            return False
        ahead += holding
    return _all_below(item, above, graph)


def _all_below(item: Item, wanted: dict[str, Item], graph: Graph) -> bool:
    seen: set[str] = set()
    ahead = [item]
    while ahead:
        for dependent in graph.dependents(ahead.pop().uid):
            if dependent.uid in wanted and dependent.uid not in seen:
                seen.add(dependent.uid)
                ahead.append(dependent)
    return len(seen) == len(wanted)
