"""Our own writes that the local copies do not show yet.

A watch is always a little behind. Without this, a job that was just given its pods would be looked at again without
them: harmless, because their names are fixed, but a wasted request each; and a decision could be made on a status that
we replaced ourselves. Upstream guards the same moment with counters that can go wrong; here what we know is laid over
the copy until the copy shows it, or for a minute at most.
"""

from collections.abc import Iterable

from trainmaster.api.meta import Key, Object, being_deleted, controller_of, key_of, metadata, revision_of, uid_of
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.store import older

# Nothing is this late but a write whose object was gone again before the watch could show it.
PATIENCE = 60.0


class Recent:
    """What we wrote, by what it belongs to. One for each kind of object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._made: dict[str, dict[Key, tuple[float, Object]]] = {}  # by UID of the owner
        self._deleted: dict[str, float] = {}                         # UIDs
        self._written: dict[str, Object] = {}                        # by UID

    def made(self, thing: Object) -> None:
        owner = controller_of(thing)
        if owner:
            mine = self._made.setdefault(str(owner.get("uid")), {})
            mine[key_of(thing)] = (self._clock.monotonic() + PATIENCE, thing)

    def deleted(self, uid: str) -> None:
        now = self._clock.monotonic()
        if len(self._deleted) > 10_000:
            self._deleted = {known: until for known, until in self._deleted.items() if until > now}
        self._deleted[uid] = now + PATIENCE

    def written(self, thing: Object) -> None:
        self._written[uid_of(thing)] = thing

    def shown(self, before: Object | None, after: Object | None) -> None:
        """The local copy changed: what it shows need not be remembered."""
        for thing in (before, after):
            if thing is not None:
                self._forget(thing)
        gone = after is None and before is not None
        if before is not None and (gone or (after is not None and being_deleted(after))):
            self._deleted.pop(uid_of(before), None)
        if gone and before is not None:
            self._written.pop(uid_of(before), None)

    def newest(self, thing: Object) -> Object:
        """The object, or what we made of it since."""
        mine = self._written.get(uid_of(thing))
        if mine is not None and older(revision_of(thing), revision_of(mine)):
            return mine
        self._written.pop(uid_of(thing), None)
        return thing

    def over(self, shown: Iterable[Object], owner: str) -> list[Object]:
        """The children that the copy shows, with what we did to them since."""
        now = self._clock.monotonic()
        there = {key_of(thing): thing for thing in shown}
        made = self._made.get(owner, {})
        for key, (until, thing) in list(made.items()):
            if key in there or until < now:
                del made[key]
            else:
                there[key] = thing
        if not made:
            self._made.pop(owner, None)
        return [_going(thing) if self._is_deleted(thing, now) else thing for thing in there.values()]

    def _is_deleted(self, thing: Object, now: float) -> bool:
        return not being_deleted(thing) and self._deleted.get(uid_of(thing), 0.0) > now

    def _forget(self, thing: Object) -> None:
        owner = controller_of(thing)
        mine = self._made.get(str(owner.get("uid"))) if owner else None
        if owner and mine is not None:
            mine.pop(key_of(thing), None)
            if not mine:
                del self._made[str(owner.get("uid"))]


def _going(thing: Object) -> Object:
    return {**thing, "metadata": {**metadata(thing), "deletionTimestamp": "now"}}
