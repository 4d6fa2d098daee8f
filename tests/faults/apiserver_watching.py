"""What watchers were told, held against what happened: the guarantees of a watch, one function each.

Ordered: revisions only grow. Unique: no change is told twice. Atomic: what is told of a change is the whole object as
it was written, and never a mixture. Reliable: of what is selected nothing is left out up to the newest that was told.
Resumable: all this holds across cuts, from the last revision that was seen. Bookmarkable: after a bookmark nothing
comes that is not newer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from trainmaster.api.meta import Object

Selected = Callable[[Object], bool]


@dataclass(frozen=True, slots=True)
class Happened:
    """One change of one object; None is "not there". `last` is what a deletion leaves to be told."""

    revision: int
    before: Object | None
    after: Object | None
    last: Object | None = None


@dataclass(frozen=True, slots=True)
class Told:
    type: str
    object: Object

    @property
    def revision(self) -> int:
        return int(self.object["metadata"]["resourceVersion"])


@dataclass(slots=True)
class Recording:
    """One watcher from one list on; a new one begins when it had to list again."""

    selected: Selected
    start: int
    told: list[Told] = field(default_factory=list)
    cuts: int = 0

    @property
    def seen(self) -> int:
        """Where to resume."""
        return max([self.start, *(each.revision for each in self.told[-1:])])


def faults(recording: Recording, truth: Sequence[Happened]) -> list[str]:
    """Sentences about broken guarantees."""
    changes = [each for each in recording.told if each.type != "BOOKMARK"]
    return [*_ordered(changes), *_unique(changes), *_bookmarked(recording.told), *_started(recording),
            *_as_it_happened(recording, changes, truth)]


def expected(selected: Selected, truth: Sequence[Happened], after: int, through: int) -> Iterator[Told]:
    """What a watch must tell, from what was there before and after each change."""
    for each in truth:
        if not after < each.revision <= through:
            continue
        was, now = each.before is not None and selected(each.before), each.after is not None and selected(each.after)
        if now:
            assert each.after is not None
            yield Told("MODIFIED" if was else "ADDED", each.after)
        elif was and each.after is None:
            yield Told("DELETED", each.last or {})
        elif was:
            assert each.before is not None
            meta = {**each.before["metadata"], "resourceVersion": str(each.revision)}
            yield Told("DELETED", {**each.before, "metadata": meta})


def _ordered(changes: Sequence[Told]) -> Iterator[str]:
    for one, two in pairwise(changes):
        if two.revision < one.revision:
            yield f"not ordered: {two.revision} was told after {one.revision}"


def _unique(changes: Sequence[Told]) -> Iterator[str]:
    told: set[int] = set()
    for each in changes:
        if each.revision in told:
            yield f"not unique: {each.revision} was told twice"
        told.add(each.revision)


def _bookmarked(told: Sequence[Told]) -> Iterator[str]:
    mark = 0
    for each in told:
        if each.type == "BOOKMARK":
            if each.revision < mark:
                yield f"not bookmarkable: the mark went back from {mark} to {each.revision}"
            mark = each.revision
        elif each.revision <= mark:
            yield f"not bookmarkable: {each.revision} was told after the mark {mark}"


def _started(recording: Recording) -> Iterator[str]:
    for each in recording.told[:1]:
        if each.type != "BOOKMARK" and each.revision <= recording.start:
            yield f"not resumable: {each.revision} was told to one who knew {recording.start}"


def _as_it_happened(recording: Recording, changes: Sequence[Told], truth: Sequence[Happened]) -> Iterator[str]:
    wanted = {each.revision: each for each in expected(recording.selected, truth, recording.start, recording.seen)}
    told = {each.revision: each for each in changes}
    for revision in sorted(wanted.keys() - told.keys()):
        yield f"not reliable: {wanted[revision].type} {revision} was never told, up to {recording.seen}"
    for revision in sorted(told.keys() - wanted.keys()):
        yield f"not reliable: {told[revision].type} {revision} was told and did not happen"
    for revision in sorted(told.keys() & wanted.keys()):
        if told[revision] != wanted[revision]:
            yield f"not atomic: {told[revision]} was told of {wanted[revision]}"
