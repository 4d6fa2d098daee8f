"""The store against a model of a few lines, in stories that Hypothesis makes up.

The model keeps every state of the past in full. Writes go in groups that run concurrently, because the interesting
states are those in which some writes are still on their way; the answers then say in which order they took effect.
"""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from trainmaster.cluster.store import (
    Change,
    Compacted,
    Create,
    Delete,
    Lagged,
    Record,
    Stale,
    Step,
    Store,
    Subscription,
    Update,
    Window,
)

KEYS = ["/core/pods/a/x", "/core/pods/a/y", "/core/pods/b/x", "/core/nodes/n", "/core/nodes/na", "/apps/d/a/x"]
PREFIXES = ["", "/", "/core/", "/core/pods/", "/core/pods/a/", "/core/pods/b/x", "/core/nodes/", "/core/nodes/n"]
Past = dict[str, Record]

keys = st.sampled_from(KEYS)
prefixes = st.sampled_from(PREFIXES)
choices = st.tuples(keys, st.sampled_from(["create", "update", "delete", "bury", "stale"]))


class Stories(RuleBasedStateMachine):
    watchers: "Bundle[Watcher]" = Bundle("watchers")

    @initialize(on_disk=st.booleans(), window=st.sampled_from([3, 10, 1000]))
    def start(self, on_disk: bool, window: int) -> None:
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "cluster.db" if on_disk else None
        self.window = Window(changes=window)
        self.past: dict[int, Past] = {0: {}, 1: {}}  # every revision -> everything that was there
        self.changes: list[Change] = []
        self.oldest = 0
        self.store = self.run(self._open())

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.store.close())
            self.runner.close()
            self.folder.cleanup()

    def run(self, story: Any) -> Any:
        return self.runner.run(story)

    async def _open(self) -> Store:
        return Store.open(self.path, window=self.window)

    @property
    def now(self) -> Past:
        return self.past[max(self.past)]

    @rule(group=st.lists(choices, min_size=1, max_size=6), together=st.booleans())
    def write(self, group: list[tuple[str, str]], together: bool) -> None:
        """Several clients at once, or one transaction."""
        steps = [self._step(key, verb) for key, verb in group]
        if together:
            steps = list({step.key: step for step in steps}.values())
            answers = self.run(self._all([self.store.transact(*steps)]))
        else:
            answers = self.run(self._all([self.store.transact(step) for step in steps]))
        taken = [
            (record.revision, step, record)
            for group_steps, answer in zip([steps] if together else [[step] for step in steps], answers, strict=True)
            if isinstance(answer, list)
            for step, record in zip(group_steps, answer, strict=True)
        ]
        fresh = max(self.past)
        for revision, step, record in sorted(taken, key=lambda item: item[0]):
            assert revision > fresh, "a revision was used before"
            fresh = revision
            self._apply(revision, step, record)
        if len(taken) < len(steps) and together:
            assert not taken, "a transaction was done in part"
            assert any(not _fits(step, self.now) for step in steps)
        self.oldest = max(self.oldest, self._oldest_by_window())

    @rule(back=st.integers(0, 8))
    def compact(self, back: int) -> None:
        self.run(self.store.compact(max(self.past) - back))
        self.oldest = max(self.oldest, max(self.past) - back)

    @rule()
    def restart(self) -> None:
        if self.path is not None:
            self.run(self.store.close())
            self.store = self.run(self._open())

    @rule(
        prefix=prefixes,
        after=st.sampled_from(["", *KEYS, "/core/pods/a/xx"]),
        limit=st.integers(0, 4),
        back=st.integers(0, 9),
    )
    def read(self, prefix: str, after: str, limit: int, back: int) -> None:
        at = max(1, max(self.past) - back)
        if back and at < self.oldest:
            try:
                self.store.scan(prefix, at=at)
            except Compacted:
                return
            raise AssertionError("a forgotten revision was read")
        then = self.past[_nearest(self.past, at)]
        expected = [then[key] for key in sorted(then) if key.startswith(prefix) and key > after]

        asked = at if back else 0
        assert (expected[:limit] if limit else expected) == self.store.scan(prefix, after=after, limit=limit, at=asked)
        assert len(expected) == self.store.count(prefix, after=after, at=asked)

    @rule(target=watchers, prefix=prefixes, back=st.integers(0, 9))
    def watch(self, prefix: str, back: int) -> Any:
        after = max(self.past) - back
        if after < 0:
            return multiple()
        try:
            subscription = self.store.subscribe(prefix, after)
        except Compacted:
            assert after < self.oldest
            return multiple()
        assert after >= self.oldest
        return Watcher(self.store, subscription, prefix, after)

    @rule(watcher=watchers)
    def hear(self, watcher: "Watcher") -> None:
        if watcher.store is not self.store:
            return
        due = [c for c in self.changes if c.revision > watcher.heard and c.key.startswith(watcher.prefix)]
        if not due:
            assert max(self.past) == watcher.subscription.progress
            return
        try:
            heard = self.run(watcher.subscription.next())
        except Lagged:
            assert due[0].revision <= self.oldest
            watcher.heard = max(self.past)
            watcher.store = None
            return
        assert due == heard
        watcher.heard = due[-1].revision

    @rule(watcher=consumes(watchers))
    def stop(self, watcher: "Watcher") -> None:
        watcher.subscription.close()

    @invariant()
    def the_present_is_the_same(self) -> None:
        if hasattr(self, "store"):
            assert (max(self.past), self.oldest) == (self.store.revision, self.store.oldest)
            for key in KEYS:
                assert self.now.get(key) == self.store.get(key) == self.store.latest(key)

    async def _all(self, calls: list[Any]) -> list[Any]:
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Stale):
                raise answer
        return list(answers)

    def _step(self, key: str, verb: str) -> Step:
        current = self.now.get(key)
        revision = current.revision if current else 1
        match verb:
            case "create":
                return Create(key, _content(key))
            case "update":
                return Update(key, _content(key), revision)
            case "delete":
                return Delete(key, revision)
            case "bury":
                return Delete(key, revision, _content(key))
            case _:
                return Update(key, _content(key), revision - 1)

    def _apply(self, revision: int, step: Step, record: Record) -> None:
        before = self.now.get(step.key)
        then = dict(self.now)
        if isinstance(step, Create):
            assert before is None
            assert record == Record(step.key, step.encode(revision), revision, revision)
        else:
            assert before is not None
            assert before.revision == step.expected
            value = before.value if step.encode is None else step.encode(revision)
            assert record == Record(step.key, value, revision, before.created)
        if isinstance(step, Delete):
            del then[step.key]
            self.changes.append(Change(revision, step.key, None, record.value))
        else:
            then[step.key] = record
            self.changes.append(Change(revision, step.key, record.value, before.value if before else None))
        self.past[revision] = then

    def _oldest_by_window(self) -> int:
        surplus = len(self.changes) - self.window.changes
        return self.changes[surplus - 1].revision if surplus > 0 else 0


class Watcher:
    def __init__(self, store: Store, subscription: Subscription, prefix: str, heard: int) -> None:
        self.store: Store | None = store
        self.subscription = subscription
        self.prefix = prefix
        self.heard = heard


def _content(key: str) -> Callable[[int], bytes]:
    return lambda revision: f"{key}@{revision}".encode()


def _fits(step: Step, now: Past) -> bool:
    current = now.get(step.key)
    if isinstance(step, Create):
        return current is None
    return current is not None and current.revision == step.expected


def _nearest(past: dict[int, Past], at: int) -> int:
    return max((revision for revision in past if revision <= at), default=0)


TestStories = Stories.TestCase
TestStories.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
