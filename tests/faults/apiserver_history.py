"""What clients of the API server asked and heard, and whether one true order of events explains it.

Per key this is linearizability: every operation takes effect at one moment between its call and its answer, each on
what the one before it left. The search is Wing and Gong's with memory: place any operation that nobody still unplaced
must precede, go on, take it back. Revisions make it short: a state that was seen with one fits in few places. Across
keys the revisions themselves are the order, and must agree with what the clients' clocks say.

An operation without an answer has happened or not, but no later than the death of the server it was sent to.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

NOT_ANSWERED = 0
State = tuple[str, float]       # the value ("": there is none) and the newest revision that the key has had
EMPTY: State = ("", 0)


@dataclass(frozen=True, slots=True)
class Operation:
    """One request on one key. Values are unique, so a value tells which write it is from."""

    client: int
    verb: str                   # create, get, update, delete
    key: str
    began: int
    ended: int                  # when the answer was there; without one, when the server was dead
    code: int = NOT_ANSWERED
    value: str = ""             # what a write writes, what a get found
    revision: int = 0           # in the answer; a deletion tells none
    expected: int = 0           # the revision that a write named; 0: any


@dataclass(frozen=True, slots=True)
class Listed:
    """One list: the revision it says it is of, and what was in it."""

    began: int
    ended: int
    revision: int
    items: Mapping[str, tuple[str, int]]        # key -> value, revision

    def as_gets(self, keys: Iterable[str]) -> Iterator[Operation]:
        """For one key, a list is a read of it."""
        for key in keys:
            value, revision = self.items.get(key, ("", 0))
            yield Operation(-1, "get", key, self.began, self.ended, 200 if value else 404, value, revision)


def problems(operations: Sequence[Operation], lists: Sequence[Listed] = ()) -> list[str]:
    """Sentences about what cannot have happened; none if everything is explained."""
    keys = sorted({each.key for each in operations})
    reads = [read for listed in lists for read in listed.as_gets(keys)]
    everything = [*operations, *reads]
    seen = {each.value: each.revision for each in everything if each.value and each.revision}
    found = [*_revisions(operations), *_clocks(operations, lists), *_snapshots(operations, lists)]
    for key in keys:
        of_key = [each for each in everything if each.key == key]
        if (stuck := unexplained(of_key, seen)) is not None:
            found.append(f"{key}: no order explains {stuck}")
    return found


def unexplained(operations: Sequence[Operation], seen: Mapping[str, int]) -> Operation | None:
    """None if the operations on one key are linearizable, else the one that no order gets past."""
    ordered = sorted(operations, key=lambda each: each.began)
    stack: list[tuple[int, int, State]] = [(0, 0, EMPTY)]       # first unplaced, which are placed after it, state
    known = set(stack)
    furthest = 0
    while stack:
        first, placed, state = stack.pop()
        furthest = max(furthest, first)
        if first == len(ordered):
            return None
        for index in _next(ordered, first, placed):
            begin, rest = first, placed | 1 << (index - first)
            while rest & 1:
                begin, rest = begin + 1, rest >> 1
            for after in _outcomes(state, ordered[index], seen):
                if (step := (begin, rest, after)) not in known:
                    known.add(step)
                    stack.append(step)
    return ordered[furthest]


def _next(ordered: Sequence[Operation], first: int, placed: int) -> Iterator[int]:
    """The unplaced operations that began before any unplaced one had ended."""
    earliest_end = ordered[first].ended
    for index in range(first, len(ordered)):
        if ordered[index].began > earliest_end:
            return
        if not placed >> (index - first) & 1:
            earliest_end = min(earliest_end, ordered[index].ended)
            yield index


def _outcomes(state: State, asked: Operation, seen: Mapping[str, int]) -> Iterator[State]:
    """The states that the operation may leave behind; none if its answer is wrong for this state."""
    if asked.code == NOT_ANSWERED:
        yield state
        if asked.verb != "get" and not _refusal(state, asked):
            # What nobody has seen has a revision that nobody can name.
            yield _written(state, asked, seen.get(asked.value, state[1] + 0.5))
    elif asked.verb == "get":
        found = (asked.value, asked.revision) if asked.code == 200 else ("", state[1])
        if state == found:
            yield state
    elif asked.code >= 400:
        if _refusal(state, asked) == asked.code:
            yield state
    elif not _refusal(state, asked) and (asked.verb == "delete" or asked.revision > state[1]):
        yield _written(state, asked, asked.revision)


def _refusal(state: State, asked: Operation) -> int:
    """The code that a write must be refused with in this state; 0 if it must succeed."""
    value, revision = state
    if asked.verb == "create":
        return 409 if value else 0
    if not value:
        return 404
    return 409 if asked.expected and asked.expected != revision else 0


def _written(state: State, asked: Operation, revision: float) -> State:
    return ("", state[1]) if asked.verb == "delete" else (asked.value, revision)


def _revisions(operations: Sequence[Operation]) -> Iterator[str]:
    """No revision is given twice, and what is read at a revision is what was written at it."""
    writers: dict[int, Operation] = {}
    for each in operations:
        if each.verb in {"create", "update"} and each.revision:
            if each.revision in writers:
                yield f"revision {each.revision} was used again: {writers[each.revision]} and {each}"
            writers[each.revision] = each
    for each in operations:
        writer = writers.get(each.revision)
        if each.verb == "get" and writer is not None and (writer.key, writer.value) != (each.key, each.value):
            yield f"revision {each.revision} is of {writer} and of {each}"


def _clocks(operations: Sequence[Operation], lists: Sequence[Listed]) -> Iterator[str]:
    """A write that began when another had been answered has the larger revision; a list is as new as what was known."""
    told = [(each.began, each.ended, each.revision, "write") for each in operations
            if each.verb in {"create", "update"} and each.revision]
    told += [(each.began, each.ended, each.revision, "list") for each in lists]
    known = [(each.ended, each.revision) for each in operations if each.revision]
    known += [(each.ended, each.revision) for each in lists]
    known.sort(reverse=True)
    newest = 0
    for began, _, revision, what in sorted(told):
        while known and known[-1][0] < began:
            newest = max(newest, known.pop()[1])
        if revision < newest or (revision == newest and what == "write"):
            yield f"a {what} that began at {began} got revision {revision} when {newest} was known: it went back"


def _snapshots(operations: Sequence[Operation], lists: Sequence[Listed]) -> Iterator[str]:
    """A list of a revision has nothing newer in it, and of what it has nothing older."""
    writes = sorted((each.revision, each.key) for each in operations
                    if each.verb in {"create", "update"} and each.revision)
    newest: dict[str, int] = {}
    position = 0
    for listed in sorted(lists, key=lambda each: each.revision):
        while position < len(writes) and writes[position][0] <= listed.revision:
            newest[writes[position][1]] = writes[position][0]
            position += 1
        for key, (_, revision) in listed.items.items():
            if revision > listed.revision:
                yield f"a list of revision {listed.revision} has {key} of {revision}"
            elif revision < newest.get(key, 0):
                yield f"a list of revision {listed.revision} has {key} of {revision}, and {newest[key]} was written"
