"""The latest changes, kept so that a watch can resume and a list can be read page by page at one revision.

The window is bounded by number and by bytes, not by age: memory is what a laptop runs out of. Changes are kept once, in
order, and once more per kind, so that a watcher of one kind never steps over the changes of another. Subscribers
read from here instead of having buffers of their own: a slow one costs nothing and is late only when the window has
moved past it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.cluster.store.objects import resource_of
from trainmaster.cluster.store.records import Change, Record

OVERHEAD = 400  # bytes that an entry costs beside its values


@dataclass(frozen=True, slots=True)
class Window:
    """How much of the past is kept. Enough for 75 s, the freshness Kubernetes aims at, of a busy laptop."""

    changes: int = 50_000
    size: int = 32 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    change: Change
    before: Record | None

    @property
    def garbage(self) -> Iterator[int]:
        """Revisions that nobody can ask for once this change is forgotten."""
        if self.before is not None:
            yield self.before.revision
        if self.change.value is None:
            yield self.change.revision

    @property
    def size(self) -> int:
        """What only the window keeps alive: the state that was replaced. The new one is current, or replaced later."""
        size = OVERHEAD + (len(self.before.value) if self.before else 0)
        if self.change.value is None and self.change.before is not None:
            size += len(self.change.before)
        return size


class Track:
    """Entries in order of revision; cheap to append, to drop at the front and to find by revision."""

    __slots__ = ("_entries", "_first")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._entries) - self._first

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    def drop_first(self) -> Entry:
        entry = self._entries[self._first]
        self._first += 1
        if self._first > 64 and self._first * 2 > len(self._entries):
            del self._entries[: self._first]
            self._first = 0
        return entry

    def first(self) -> Entry:
        return self._entries[self._first]

    def after(self, revision: int) -> Iterator[Entry]:
        start = bisect_right(self._entries, revision, lo=self._first, key=_revision)
        for index in range(start, len(self._entries)):
            yield self._entries[index]


class History:
    """Changes with revision > `oldest`, all of them."""

    def __init__(self, oldest: int, window: Window) -> None:
        self.oldest = oldest
        self._window = window
        self._size = 0
        self._all = Track()
        self._of: dict[str, Track] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, entry: Entry) -> None:
        resource = resource_of(entry.change.key)
        track = self._of.get(resource)
        if track is None:
            track = self._of[resource] = Track()
        track.append(entry)
        self._all.append(entry)
        self._size += entry.size

    def trim(self) -> list[int]:
        """Forget what is beyond the window; returns the garbage."""
        garbage: list[int] = []
        while len(self._all) > self._window.changes or (self._size > self._window.size and len(self._all) > 1):
            garbage += self._forget_first()
        return garbage

    def forget(self, until: int) -> list[int]:
        """Forget the changes up to and including `until`; returns the garbage."""
        garbage: list[int] = []
        while len(self._all) and self._all.first().change.revision <= until:
            garbage += self._forget_first()
        self.oldest = max(self.oldest, until)
        return garbage

    def since(self, prefix: str, revision: int) -> Iterator[Change]:
        """Changes below the prefix after the revision, oldest first. Read it at once: it follows later appends."""
        resource = resource_of(prefix)
        track = self._of.get(resource) if resource else self._all
        if track is None:
            return
        whole = prefix == resource
        for entry in track.after(revision):
            if whole or entry.change.key.startswith(prefix):
                yield entry.change

    def undo(self, prefix: str, revision: int) -> dict[str, Record | None]:
        """What the objects below the prefix that changed after the revision were at that revision."""
        resource = resource_of(prefix)
        track = self._of.get(resource) if resource else self._all
        undone: dict[str, Record | None] = {}
        if track is not None:
            for entry in track.after(revision):
                if entry.change.key.startswith(prefix):
                    undone.setdefault(entry.change.key, entry.before)
        return undone

    def _forget_first(self) -> Iterator[int]:
        entry = self._all.drop_first()
        resource = resource_of(entry.change.key)
        track = self._of[resource]
        track.drop_first()
        if not track:
            del self._of[resource]
        self._size -= entry.size
        self.oldest = entry.change.revision
        return entry.garbage


def _revision(entry: Entry) -> int:
    return entry.change.revision
