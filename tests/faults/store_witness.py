"""Hears every acknowledgement and compares with what is found after a crash."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.store_child import CLIENTS, KEYS, WINDOW

from trainmaster.cluster.store import Change, Store


@dataclass
class Witness:
    """Remembers what was acknowledged and compares it with what is found."""

    path: Path
    last: dict[str, tuple[int, str]] = field(default_factory=dict)  # key -> newest acknowledged write
    acknowledged: dict[int, tuple[str, str, int]] = field(default_factory=dict)  # revision -> key, verb, decided on
    floor: int = 0  # newest revision that anybody has seen
    lives: int = 0

    def hear(self, revision: int, key: str, verb: str, expected: int) -> None:
        assert revision > self.floor, "a revision was used again"
        assert revision not in self.acknowledged
        self.acknowledged[revision] = (key, verb, expected)
        if revision > self.last.get(key, (0, ""))[0]:
            self.last[key] = (revision, verb)

    def look(self, path: Path) -> None:
        """What was acknowledged must be in this file, and the file must be usable."""
        self.lives += 1
        asyncio.run(self._look(path))

    async def _look(self, path: Path) -> None:
        store = Store.open(path, window=WINDOW)
        newest = max(self.acknowledged, default=0)
        assert store.revision >= max(newest, self.floor), "revisions went back"
        changes = await history(store)
        for key in KEYS:
            self._compare(key, store, changes)
        for revision, (key, verb, expected) in self.acknowledged.items():
            if revision > store.oldest:
                assert (key, verb == "delete") == (changes[revision].key, changes[revision].value is None)
                between = [c for c in changes.values() if c.key == key and expected < c.revision < revision]
                assert not between or (verb == "create" and between[-1].value is None), "decided on the past"
        unheard = changes.keys() - self.acknowledged.keys()
        assert len(unheard) <= CLIENTS * self.lives, "more was written than was ever on its way"
        self.floor = store.revision
        await store.create("/core/checks/after", lambda _: b"it can be written to")
        await store.close()

    def _compare(self, key: str, store: Store, changes: dict[int, Change]) -> None:
        record = store.get(key)
        revision, verb = self.last.get(key, (0, "delete"))
        if record is not None:
            assert record.value.startswith(f"{key} {record.revision} ".encode())
            assert record.revision > revision or (record.revision == revision and verb != "delete")
        elif verb != "delete":  # then somebody deleted it without living to say so
            gone = [change for change in changes.values() if change.key == key and change.revision > revision]
            assert (gone and gone[-1].value is None) or store.oldest > revision, f"{key}@{revision} is lost"


async def history(store: Store) -> dict[int, Change]:
    subscription = store.subscribe("/", store.oldest)
    changes: list[Change] = []
    while subscription.progress < store.revision:
        changes += await subscription.next()
    assert sorted({change.revision for change in changes}) == [change.revision for change in changes]
    return {change.revision: change for change in changes}
