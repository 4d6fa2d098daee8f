"""The local copy of one kind of object, with indexes: what controllers read instead of asking the server.

Objects are shared, not copied: whoever takes one out treats it as immutable and copies before changing. The copy
itself decides what is news: a state that is older than the one it has never replaces it, however often the wire
repeats it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from trainmaster.api.meta import Key, Object, key_of, revision_of, uid_of
from trainmaster.runtime.log import logger

Index = Callable[[Object], Iterable[str]]

log = logger("store")


@dataclass(frozen=True, slots=True)
class Change:
    """One object from one state to the next: no `before` is new, no `after` is gone."""

    before: Object | None
    after: Object | None


class LocalCopy:
    """Objects by namespace and name, and by the values that each index gives them."""

    def __init__(self, indexes: Mapping[str, Index] | None = None) -> None:
        self._objects: dict[Key, Object] = {}
        self._indexes = dict(indexes or {})
        self._by: dict[str, dict[str, dict[Key, Object]]] = {name: {} for name in self._indexes}
        self._places: dict[Key, list[tuple[str, str]]] = {}   # index and value, under which an object can be found

    def get(self, namespace: str, name: str) -> Object | None:
        return self._objects.get(Key(namespace, name))

    def by(self, index: str, value: str) -> list[Object]:
        """Objects to which `index` gives `value`, in no order that means anything."""
        return list(self._by[index].get(value, {}).values())

    def holds(self, index: str, value: str) -> bool:
        """Whether `index` gives `value` to any object."""
        return value in self._by[index]

    def all(self) -> list[Object]:
        return list(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self.all())

    def take(self, thing: Object, *, at_least: str = "") -> list[Change]:
        """Take in a state that a watch reported. Nothing happens if it is not newer than what is known.

        `at_least` is the revision up to which the watch is complete: an unknown object from before it is one that was
        deleted since.
        """
        key, revision = key_of(thing), revision_of(thing)
        before = self._objects.get(key)
        known = revision_of(before) if before is not None else at_least
        if older(revision, known) or (before is not None and revision == known):
            return []
        return self._put(key, before, thing)

    def drop(self, thing: Object) -> list[Change]:
        """Take in an end that a watch reported; `thing` is the last state. One before the known state is old news."""
        key = key_of(thing)
        before = self._objects.get(key)
        if before is None or older(revision_of(thing), revision_of(before)):
            return []
        self._remove(key)
        return [Change(before, None)]

    def replace(self, things: Iterable[Object]) -> list[Change]:
        """Become exactly this list; the changes that lead there, those that went away first."""
        fresh = {key_of(thing): thing for thing in things}
        changes = []
        for key in [key for key in self._objects if key not in fresh]:
            changes.append(Change(self._objects[key], None))
            self._remove(key)
        for key, thing in fresh.items():
            before = self._objects.get(key)
            if before is None or revision_of(before) != revision_of(thing) or before != thing:
                changes += self._put(key, before, thing)
        return changes

    def _put(self, key: Key, before: Object | None, after: Object) -> list[Change]:
        if before is not None:
            self._remove(key)
        self._objects[key] = after
        self._places[key] = places = self._places_of(after)
        for name, value in places:
            self._by[name].setdefault(value, {})[key] = after
        if before is not None and uid_of(before) != uid_of(after):
            # Deleted and made again between two looks: two objects, and those who follow one must hear of its end.
            return [Change(before, None), Change(None, after)]
        return [Change(before, after)]

    def _remove(self, key: Key) -> None:
        del self._objects[key]
        for name, value in self._places.pop(key):
            entries = self._by[name][value]
            entries.pop(key, None)
            if not entries:
                del self._by[name][value]

    def _places_of(self, thing: Object) -> list[tuple[str, str]]:
        places = []
        for name, index in self._indexes.items():
            try:
                places += [(name, value) for value in set(index(thing))]
            except Exception:  # an object that one index cannot read must not be lost to everybody
                log.exception("an index failed", index=name, object=key_of(thing))
        return places


def older(revision: str, than: str) -> bool:
    """Whether one revision certainly lies before another.

    Kubernetes orders them as whole numbers within one kind; anything else can only be compared for equality, and then
    nothing is called old.
    """
    if revision.isdecimal() and than.isdecimal():
        return int(revision) < int(than)
    return False
