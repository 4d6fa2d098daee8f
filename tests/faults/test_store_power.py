"""Pull the plug: what was not synced is lost, or kept, or torn, and still nothing acknowledged is missing.

The file operations of a whole story are recorded once. Then the disk is put together as it could look if the power had
failed before each of the syncs, and the store must open from it.
"""

import asyncio
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.faults.disk import OK, Disk, Operation
from tests.faults.store_child import story
from tests.faults.store_witness import Witness

SECTOR = 512
Acknowledged = tuple[int, str, str, int]


@dataclass
class Image:
    """One file: what certainly is on the disk, and what was written since."""

    durable: bytearray | None = None  # None: the file is not there
    unsynced: list[Operation] = field(default_factory=list)

    def sync(self) -> None:
        self.durable = self.content(lambda operation: operation)
        self.unsynced = []

    def content(self, survives: Callable[[Operation], Operation | None]) -> bytearray | None:
        found = None if self.durable is None else bytearray(self.durable)
        for operation in filter(None, map(survives, self.unsynced)):
            if operation.kind == "delete":
                found = None
                continue
            found = bytearray() if found is None else found
            if operation.kind == "truncate":
                del found[operation.size :]
                found.extend(bytes(operation.size - len(found)))
            else:
                end = operation.offset + len(operation.data)
                found.extend(bytes(max(0, end - len(found))))
                found[operation.offset : end] = operation.data
        return found


@dataclass
class Replay:
    """The disk as the recording goes on."""

    images: dict[str, Image] = field(default_factory=dict)
    old_log: bytearray | None = None  # a log is put aside at the end of a life and used again by the next

    def apply(self, operation: Operation) -> None:
        image = self.images.setdefault(operation.file, Image())
        if operation.file.endswith("-wal"):
            now = image.content(lambda change: change)
            if operation.kind == "delete":
                self.old_log = now
            elif now is None and self.old_log is not None:
                self._sync_folder()
                image.durable, image.unsynced = bytearray(32) + self.old_log[32:], []
                self.old_log = None
        if operation.kind == "sync":
            if image.durable is None:  # SQLite syncs the folder when it syncs a log or journal for the first time
                self._sync_folder()
            image.sync()
        else:
            image.unsynced.append(operation)

    def _sync_folder(self) -> None:
        for image in self.images.values():
            if any(operation.kind == "delete" for operation in image.unsynced):
                image.sync()

    def write(self, folder: Path, survives: Callable[[Operation], Operation | None]) -> None:
        folder.mkdir()
        for name, image in self.images.items():
            content = image.content(survives)
            if content is not None:
                (folder / name).write_bytes(content)


def nothing(_: Operation) -> Operation | None:
    return None


def everything(operation: Operation) -> Operation | None:
    return operation


def some(seed: int) -> Callable[[Operation], Operation | None]:
    chance = random.Random(seed)

    def survives(operation: Operation) -> Operation | None:
        if chance.random() < 0.5:
            return None
        if operation.kind != "write" or chance.random() < 0.5:
            return operation
        torn = chance.randrange(0, len(operation.data), SECTOR) if len(operation.data) > SECTOR else 0
        return Operation("write", operation.file, operation.offset, operation.data[:torn])

    return survives


def recording(path: Path, seed: int) -> list[Operation | Acknowledged]:
    events: list[Operation | Acknowledged] = []

    def before(operation: Operation) -> int:
        events.append(operation)
        return OK

    with Disk(before).installed():
        asyncio.run(story(path, seed, lambda *acknowledged: events.append(acknowledged)))
    return events


@pytest.mark.parametrize(
    ("seed", "share"),
    [
        pytest.param(1, 15, id="before some syncs of one story"),
        *(
            pytest.param(seed, 1, id=f"before every sync of story {seed}", marks=pytest.mark.faults)
            for seed in range(2, 6)
        ),
    ],
)
def test_power_fails(tmp_path: Path, seed: int, share: int) -> None:
    (tmp_path / "recorded").mkdir()
    events = recording(tmp_path / "recorded" / "cluster.db", seed)
    replay = Replay()
    witness = Witness(tmp_path / "cluster.db")
    syncs = 0
    for event in [*events, Operation("sync", "the end")]:
        if not isinstance(event, Operation):
            witness.hear(*event)
            continue
        if event.kind == "sync":
            syncs += 1
            if syncs % share == 0:
                for number, survives in enumerate([nothing, everything, some(syncs), some(-syncs)]):
                    folder = tmp_path / f"{syncs}-{number}"
                    replay.write(folder, survives)
                    witness.look(folder / "cluster.db")
                    shutil.rmtree(folder)
                    witness.floor = 0  # the next of these pasts has not seen what this one found
        replay.apply(event)
    assert syncs > 40
