"""Watches: every change after a revision, in order, once, until the client or the time ends it.

What a watcher sees is decided per change from the state before and after it and the selector, so that an object leaving
the selection is DELETED and one entering it is ADDED. Without a selector and without a table nothing is parsed: stored
bytes go out between two constants. Watches that ask for the same and have come equally far are told the same bytes,
which are put together once. A reader that is too slow is not buffered for: the store says `Lagged`, the stream ends,
the client comes back with the last revision it saw.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, failures, tables
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.lists import MATCH, NOT_OLDER, NOT_WITH_CONTINUE, refused
from trainmaster.cluster.apiserver.negotiation import JSON, Form, Shape
from trainmaster.cluster.apiserver.routing import Query
from trainmaster.cluster.apiserver.selectors import Selector
from trainmaster.cluster.apiserver.streaming import Streaming, Tempo
from trainmaster.cluster.store import Ahead, Batch, Change, Closed, Compacted, Lagged, Record, Store, Subscription
from trainmaster.runtime.clock import Clock

# How often a quiet watch tells how far it is, and how long one lasts when nobody says, in seconds.
BOOKMARK_EVERY = 60.0
LASTING = 1800
# Larger objects are parsed for each watcher: a cache of them could hold more memory than the store.
MOST_SHARED = 32 * 1024
# What is there first is told in pieces, of so many objects looked at: the loop has others to serve.
PIECE = 50
INITIAL_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a watch was asked for."""

    kind: Kind
    namespace: str
    name: str
    selector: Selector
    form: Form
    revision: int | None = None       # None: from now, with what is there first
    initial: bool = False             # what is there first, as ADDED
    initial_end: bool = False         # and a bookmark after it
    bookmarks: bool = False
    timeout: float = float(LASTING)
    include: str = ""


def wanted(kind: Kind, namespace: str, name: str, selector: Selector, form: Form, query: Query) -> Wanted:
    """Read the options of a watch. Raises Failure 400 or 422."""
    asked, match = query.all("sendInitialEvents"), query.text(MATCH)
    if faults := list(_faults(bool(asked), match, query)):
        raise refused(*faults)
    revision = query.revision()
    initial = query.flag("sendInitialEvents") if asked else not revision
    bookmarks = query.flag("allowWatchBookmarks")
    by_name, rest = selector.without_name()
    if name and by_name and name != by_name:
        rest = selector
    return Wanted(kind, namespace, name or by_name, rest, form, revision or None, initial,
                  initial_end=initial and bookmarks and match == "NotOlderThan", bookmarks=bookmarks,
                  timeout=max(0.0, float(query.number("timeoutSeconds") or LASTING)),
                  include=query.text("includeObject"))


def _faults(asked: bool, match: str, query: Query) -> Iterator[Cause]:
    if asked and match != NOT_OLDER:
        yield causes.forbidden(MATCH, f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}")
    if match and not asked:
        yield causes.forbidden(
            MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if match not in {"", NOT_OLDER}:
        yield causes.unsupported(MATCH, match, (NOT_OLDER,))
    if query.text("continue"):
        yield causes.forbidden(MATCH, NOT_WITH_CONTINUE)


class Watches:
    """All open watches, so that they can be ended when their kind, or the server, goes away."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._open: dict[Subscription, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, wish: Wanted) -> Streaming:
        """Begin a watch. Raises Failure 504 for a revision that is still to come."""
        prefix = wish.kind.under(wish.namespace)
        presented = _Presented(wish, self._clock)
        headers = {"Content-Type": JSON}
        after = self._store.revision if wish.initial or wish.revision is None else wish.revision
        if wish.revision is not None and wish.revision > self._store.revision:
            raise failures.ahead_of_time(wish.revision, self._store.revision)
        try:
            subscription = self._store.subscribe(prefix, after)
        except Ahead as error:
            raise failures.ahead_of_time(after, self._store.revision) from error
        except Compacted as error:
            return Streaming(200, headers, _just(_too_old(after, error.oldest)), _nothing)
        self._open[subscription] = wish.kind.prefix
        there = self._store.scan(prefix) if wish.initial else []
        tempo = Tempo()

        async def finish() -> None:
            self._release(subscription)

        return Streaming(200, headers, self._run(wish, presented, subscription, there, tempo), finish, tempo)

    def end(self, prefix: str = "") -> None:
        """End the watches of one kind, or all."""
        for subscription, watched in list(self._open.items()):
            if watched == prefix or not prefix:
                subscription.close()

    async def _run(self, wish: Wanted, presented: "_Presented", subscription: Subscription, there: list[Record],
                   tempo: Tempo) -> AsyncGenerator[bytes, None]:
        timer = _Timer(self._clock, wish.timeout, subscription)
        after = subscription.progress
        try:
            for piece in presented.initial(there, after):
                if piece:
                    yield piece
                await asyncio.sleep(0)
            there.clear()
            while not timer.over:
                batch = subscription.take()
                if batch.changes:
                    if said := presented.batch(batch):
                        yield said
                    if batch.following:
                        await asyncio.sleep(0)
                    continue
                if timer.rang() and wish.bookmarks:
                    yield presented.bookmark(subscription.progress)
                    continue
                await subscription.wait()
                if tempo.rest is not None:
                    await tempo.rest()
            if wish.bookmarks:      # the next watch begins here and not where the last change was
                yield presented.bookmark(subscription.progress)
        except (Closed, Lagged):
            return
        finally:
            self._release(subscription)
            await timer.stop()

    def _release(self, subscription: Subscription) -> None:
        self._open.pop(subscription, None)
        subscription.close()


class _Presented:
    """Changes as the lines of one watch."""

    def __init__(self, wish: Wanted, clock: Clock) -> None:
        self._wish = wish
        self._clock = clock
        self._key = wish.kind.key(wish.namespace, wish.name) if wish.name else ""
        self._tail = f"/{wish.name}" if wish.name else ""
        self._header = True           # the first table of a watch says what the columns are
        # What decides the bytes of a batch, besides its changes; of a table the clock does too.
        self._same = None if wish.form.shape is Shape.TABLE else (
            id(wish.kind), wish.form, wish.selector, wish.name, wish.include)

    def initial(self, there: Sequence[Record], revision: int) -> Iterator[bytes]:
        """What is there first, in pieces."""
        for start in range(0, len(there), PIECE):
            yield b"".join([self._line(b"ADDED", record.value) for record in there[start:start + PIECE]
                            if self._named(record.key) and self._wish.selector.selects(record.value)])
        if self._wish.initial_end:
            yield self.bookmark(revision, {INITIAL_END: "true"})

    def batch(self, batch: Batch) -> bytes:
        """The lines for changes in a row."""
        if self._same is None:
            return b"".join(map(self.change, batch.changes))
        said = batch.derived.get(self._same)
        if said is None:
            said = batch.derived[self._same] = b"".join(map(self.change, batch.changes))
        return said

    def change(self, change: Change) -> bytes:
        """The line for one change, or nothing."""
        if not self._named(change.key):
            return b""
        if change.value is None:
            last = change.before or b""
            return self._line(b"DELETED", last) if last and self._selected(last) else b""
        if not self._wish.selector:
            return self._line(b"MODIFIED" if change.before is not None else b"ADDED", change.value)
        now, before = self._selected(change.value), change.before is not None and self._selected(change.before)
        if now:
            return self._line(b"MODIFIED" if before else b"ADDED", change.value)
        return self._line(b"DELETED", _renumbered(change.before or b"", change.revision)) if before else b""

    def bookmark(self, revision: int, annotations: Object | None = None) -> bytes:
        meta: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        kind, form = self._wish.kind, self._wish.form
        found: Object = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, "metadata": meta}
        if form.shape is Shape.TABLE:
            found = tables.table(kind, [], self._clock.now(), version=form.version, header=False, listing=meta)
        elif form.shape is not Shape.OBJECT:
            found = tables.partial(found, form.version)
        return _event(b"BOOKMARK", orjson.dumps(found))

    def _named(self, key: str) -> bool:
        if not self._key:
            return True
        return key == self._key if self._wish.namespace or not self._wish.kind.resource.namespaced \
            else key.endswith(self._tail)

    def _selected(self, value: bytes) -> bool:
        return not self._wish.selector or self._wish.selector.holds(_parsed(value))

    def _line(self, what: bytes, value: bytes) -> bytes:
        kind, form = self._wish.kind, self._wish.form
        if form.shape is Shape.OBJECT:
            return _event(what, kind.present(value))
        if form.shape is not Shape.TABLE:
            return _event(what, tables.bare(kind.present(value), form.version))
        thing = _parsed(kind.present(value))
        found = tables.table(kind, [thing], self._clock.now(), include=self._wish.include or "Metadata",
                             version=form.version, header=self._header,
                             listing={"resourceVersion": thing["metadata"]["resourceVersion"]})
        self._header = False
        return _event(what, orjson.dumps(found))


class _Timer:
    """Rings every now and then while a watch lasts, and says when it is over."""

    def __init__(self, clock: Clock, seconds: float, subscription: Subscription) -> None:
        self._clock = clock
        self._ends = clock.monotonic() + seconds
        self._subscription = subscription
        self._rang = False
        self._task = asyncio.ensure_future(self._run())

    @property
    def over(self) -> bool:
        return self._clock.monotonic() >= self._ends

    def rang(self) -> bool:
        """Whether it rang since the last time this was asked."""
        rang, self._rang = self._rang, False
        return rang

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while (left := self._ends - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, BOOKMARK_EVERY))
            self._rang = True
            self._subscription.stir()



def _parsed(value: bytes) -> Object:
    """Shared between the watchers of one change: to be read, never to be changed."""
    return _shared(value) if len(value) <= MOST_SHARED else _shared.__wrapped__(value)


@lru_cache(maxsize=256)
def _shared(value: bytes) -> Object:
    found: Object = orjson.loads(value)
    return found


def _renumbered(value: bytes, revision: int) -> bytes:
    """The last state a watcher could see of an object, at the revision that took it out of sight."""
    thing = orjson.loads(value)
    thing["metadata"]["resourceVersion"] = str(revision)
    return orjson.dumps(thing)


def _event(what: bytes, thing: bytes) -> bytes:
    return b"".join((b'{"type":"', what, b'","object":', thing, b"}\n"))


def _too_old(asked: int, oldest: int) -> Sequence[bytes]:
    status = failures.expired(f"too old resource version: {asked} ({oldest})").status()
    return [_event(b"ERROR", orjson.dumps(status))]


async def _just(chunks: Sequence[bytes]) -> AsyncGenerator[bytes, None]:
    for chunk in chunks:
        yield chunk


async def _nothing() -> None:
    return
