"""Keeps a local copy of one kind true: list once, then follow the watch, and list again only when the server forgot.

A plain list + watch instead of `sendInitialEvents`: every server from 1.22 on has it, and the first list costs the
same. All news goes through the copy, which drops what is old or repeated; callbacks hear of changes only.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing

from trainmaster.api.meta import Object, Resource, revision_of
from trainmaster.kube.client import Client, WatchEvent
from trainmaster.kube.errors import ApiError, Gone, KubeError, Unreachable, is_transient
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger
from trainmaster.runtime.store import Change, Index, LocalCopy, older

Callback = Callable[[Object | None, Object | None], None]

PAGE = 500
FIRST_DELAY, LONGEST_DELAY = 0.2, 30.0
# client-go asks for five to ten minutes too: long enough to cost nothing, short enough to spread over servers again.
SHORTEST_WATCH, LONGEST_WATCH = 300, 600
# How much later than asked a server may end a watch before we take it for dead.
OVERTIME = 30.0
# A watch that lived this long was healthy, even if nothing happened in it.
HEALTHY = 5.0
# What a server answers to a revision it cannot serve, other than Gone: it was set back to an older state, or lost the
# kind for a while. After as many of them in a row we list instead.
REFUSALS = frozenset({400, 403, 404, 422, 504})
PATIENCE = 3
CATCHING_UP = 5       # times that a copy is asked for, over six seconds

log = logger("informer")


class Informer:
    """A local copy of the objects that a namespace and selectors pick, and callbacks about its changes."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        clock: Clock,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, Index] | None = None,
        chance: random.Random | None = None,
        troubled: Callable[[KubeError], None] | None = None,
    ) -> None:
        """`troubled` hears why the server cannot be watched, once per episode, instead of the log."""
        self.copy = LocalCopy(indexes)
        self.resource = resource
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._chance = chance or random.Random()  # noqa: S311  spreads load, guards nothing
        self._callbacks: list[Callback] = []
        self._synced = asyncio.Event()
        self._listed = False      # whether the watch can go on from `_revision`
        self._revision = ""       # everything up to here was seen
        self._trouble = _Trouble(resource.kind, troubled)

    def on_change(self, callback: Callback) -> None:
        """Call with (before, after) for every change, and at once for what is already here. It must not block."""
        self._callbacks.append(callback)
        self._tell((Change(None, thing) for thing in self.copy.all()), [callback])

    async def synced(self) -> None:
        """Return once the first list is in and told."""
        await self._synced.wait()

    async def catch_up(self) -> None:
        """Return once the copy is as new as what the caller knows of other kinds: watches do not keep step.

        Of two that were cut, one may be back and tell an end while the other still waits to hear what led to it. A
        server that does not answer is asked a few times; the watch brings what is missing later, as ever.
        """
        for attempt in range(1, CATCHING_UP + 1):
            try:
                await self._list()
            except KubeError as error:
                if not is_transient(error):
                    return
                await self._clock.sleep(_delay(attempt))
            else:
                return

    async def run(self) -> None:
        """List and watch until cancelled. A server that fails is asked again, ever more slowly."""
        while True:
            try:
                if not self._listed:
                    await self._list()
                await self._watch()
                delay = self._trouble.ended()
            except Gone as error:
                self._listed = False
                delay = self._trouble.forgotten(error)
            except KubeError as error:
                delay = self._trouble.failed(error)
                self._listed = self._listed and self._trouble.refusals < PATIENCE
            except Exception:  # this loop owns the task; an answer that we cannot read must not end it
                log.exception("the answer of the server could not be taken in", kind=self.resource.kind)
                self._listed = False
                delay = self._trouble.ended()
            if delay:
                await self._clock.sleep(delay * self._chance.uniform(0.5, 1.0))

    async def _list(self) -> None:
        try:
            items, revision = await self._pages(PAGE)
        except Gone:
            # The pages belong to one revision, which was forgotten half-way: too slow for pages, so all at once.
            items, revision = await self._pages(0)
        if older(revision, self._revision) and self._trouble.from_the_past():
            raise Unreachable(f"listed at revision {revision}, which is before {self._revision}")
        changes = self.copy.replace(items)
        self._revision = revision
        self._listed = True
        self._trouble.refusals = 0
        self._tell(changes, self._callbacks)
        self._synced.set()

    async def _pages(self, limit: int) -> tuple[list[Object], str]:
        items: list[Object] = []
        more, revision = "", ""
        while True:
            page = await self._client.list(
                self.resource, self._namespace, labels=self._labels, fields=self._fields, limit=limit, more=more
            )
            items += map(_slim, page.items)
            more, revision = page.more, revision or page.revision
            if not more:
                return items, revision

    async def _watch(self) -> None:
        seconds = self._chance.randint(SHORTEST_WATCH, LONGEST_WATCH)
        began = self._clock.monotonic()
        # A server or a balancer may forget us with the connection still up. It was told when to end the watch.
        tasks = (
            asyncio.create_task(self._follow(seconds)),
            asyncio.create_task(self._clock.sleep(seconds + OVERTIME)),
        )
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not tasks[0].done():
                raise Unreachable(f"the watch did not end after {seconds} seconds, as it was asked to")
            tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._clock.monotonic() - began >= HEALTHY:
                self._trouble.over()

    async def _follow(self, seconds: int) -> None:
        watch = self._client.watch(
            self.resource, self._namespace, labels=self._labels, fields=self._fields, revision=self._revision,
            timeout=seconds,
        )
        async with aclosing(watch) as events:
            async for event in events:
                self._take(event)
                self._trouble.over()

    def _take(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            changes = self.copy.drop(event.object)
        elif event.type == "BOOKMARK":
            changes = []
        else:
            changes = self.copy.take(_slim(event.object), at_least=self._revision)
        revision = revision_of(event.object)
        if revision and not older(revision, self._revision):
            self._revision = revision
        self._tell(changes, self._callbacks)

    def _tell(self, changes: Iterable[Change], callbacks: list[Callback]) -> None:
        for change in changes:
            for callback in callbacks:
                try:
                    callback(change.before, change.after)
                except Exception:  # one listener must not cost the others their news
                    log.exception("a callback failed", kind=self.resource.kind)


class _Trouble:
    """What went wrong in a row: how long to wait, and what to say once per episode."""

    def __init__(self, kind: str, heard: Callable[[KubeError], None] | None) -> None:
        self.refusals = 0
        self._kind, self._heard = kind, heard
        self._failures = 0
        self._forgotten = 0
        self._setbacks = 0
        self._told = ""

    def over(self) -> None:
        """News came, or a watch lived: all is well."""
        if self._told:
            log.info("watching again", kind=self._kind, failures=self._failures)
        self.refusals = self._failures = self._forgotten = self._setbacks = 0
        self._told = ""

    def ended(self) -> float:
        """The server ended the watch. Go on at once, unless it does nothing else."""
        self._failures += 1
        return _delay(self._failures - 1)

    def forgotten(self, error: Gone) -> float:
        """The revision is too old. Servers that are up answer so after a long break: list at once, the first time."""
        log.info("the server forgot our revision, listing again", kind=self._kind, cause=error)
        self._forgotten += 1
        return _delay(self._forgotten - 1)

    def failed(self, error: KubeError) -> float:
        self._failures += 1
        asked = 0.0
        if isinstance(error, ApiError):
            self.refusals += error.code in REFUSALS
            asked = error.retry_after or 0.0
        cause = f"{type(error).__name__} {getattr(error, 'code', '')}"
        if cause != self._told:
            self._told = cause
            if self._heard is not None:
                self._heard(error)
            else:
                log.warning("cannot watch, trying again", kind=self._kind, cause=error)
        return max(asked, _delay(self._failures))

    def from_the_past(self) -> bool:
        """A list was older than what we saw. One behind the others, or set back for good? Ask a few times."""
        self._setbacks += 1
        if self._setbacks <= PATIENCE:
            return True
        log.warning("the server was set back to an older state, starting over from it", kind=self._kind)
        return False


def _slim(thing: Object) -> Object:
    """Without the record of who owns which field: as large as the rest of the object, and no controller reads it."""
    (thing.get("metadata") or {}).pop("managedFields", None)
    return thing


def _delay(attempt: int) -> float:
    """Seconds before the next try: none for 0, then twice as long each time."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(attempt - 1, 20)) if attempt > 0 else 0.0
