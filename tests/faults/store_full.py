"""Plays on a small file system of its own that is filled to the last byte; run by test_store_full.py in a namespace.

Whatever fills the disk goes on doing so: after every step the ballast takes what became free. Exit code 0 says that all
was as promised, SKIP that this machine does not let us mount anything.
"""

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

from trainmaster.cluster.store import Record, Refused, Store, Window, reserve

SKIP = 77
SIZE = 32 << 20
MANY = 150


def mount(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", bytes(folder), b"tmpfs", 0, f"size={SIZE},mode=700".encode()) != 0:
        print(f"cannot mount a tmpfs: {os.strerror(ctypes.get_errno())}")
        sys.exit(SKIP)


class Ballast:
    """Takes all that is free, to the last byte, whenever it is told to."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"

    def fill(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            block = bytes(1 << 16)
            while block:
                try:
                    file.write(block)
                except OSError:
                    block = block[: len(block) // 2]

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def content(size: int) -> Callable[[int], bytes]:
    return lambda revision: f"{revision} ".encode().ljust(size, b".")


def key(number: int) -> str:
    return f"/core/pods/default/{number}"


async def play(folder: Path, *, objects: int, size: int, restart: bool, together: int = 1) -> None:
    """Fill the disk after so many objects; everything can still be read and deleted, and then written again."""
    path, ballast = folder / "cluster.db", Ballast(folder)
    store = Store.open(path, window=Window(changes=1000))
    for number in range(objects):
        await store.create(key(number), content(size))
    ballast.fill()
    refused = await write_until_refused(store, ballast, size)
    assert "No space left" in refused.reason, refused.reason
    assert store.trouble == refused.reason
    there = store.scan("/core/pods/")
    assert store.revision == max(record.revision for record in there), "what was refused is not visible"
    if restart:
        await store.close()
        ballast.fill()
        store = Store.open(path, window=Window(changes=1000))
        assert there == store.scan("/core/pods/")
    await (delete_all(store, ballast, size) if together == 1 else delete_together(store, ballast, size, together))
    ballast.remove()
    assert (await store.create(key(0), content(size))).revision > there[-1].revision
    assert not store.trouble
    await store.close()
    store = Store.open(path)
    assert [key(0)] == [record.key for record in store.scan("/")]
    await store.close()
    path.unlink()
    path.with_name("cluster.db-reserve").unlink()


async def write_until_refused(store: Store, ballast: Ballast, size: int) -> Refused:
    """The pages that the file already has may still be used, but not for ever."""
    for number in range(1000, 3000):
        revision, count = store.revision, store.count("/")
        try:
            await store.create(key(number), content(size))
        except Refused as refused:
            assert (revision, count) == (store.revision, store.count("/"))
            assert store.latest(key(number)) is None
            return refused
        ballast.fill()
    raise AssertionError("the disk is full and nothing is refused")


async def delete_all(store: Store, ballast: Ballast, size: int) -> None:
    """In all the ways there are, while everything that becomes free is taken by somebody else."""
    for number, record in enumerate(store.scan("/core/pods/")):
        revision = record.revision
        if number % 3 == 0:  # a deletion with a finalizer is an update first
            revision = (await store.update(record.key, content(size), revision, urgent=True)).revision
        await store.delete(record.key, revision, content(size) if number % 2 else None)
        assert store.get(record.key) is None
        ballast.fill()
    assert store.count("/") == 0


async def delete_together(store: Store, ballast: Ballast, size: int, together: int) -> None:
    """Many at once, more than there is room for: with the past given up, each goes at the second try at the latest."""
    while left := store.scan("/core/pods/", limit=together):
        tries = (store.delete(record.key, record.revision, content(size)) for record in left)
        done = await asyncio.gather(*tries, return_exceptions=True)
        assert any(not isinstance(each, Exception) for each in done)
        assert all(isinstance(each, Record | Refused) for each in done), done
        ballast.fill()
    assert store.count("/") == 0


# Objects, bytes of each, and how many are deleted at once: more than fits into the pages for deletions.
LARGE = ((8, 1_300_000, 1), (5, 1_560_000, 1), (150, 60_000, 1), (150, 60_000, 64), (1000, 5200, 500))


def main() -> None:
    reserve.STEP = 256 << 10  # the disk is small; so are the steps
    folder = Path(sys.argv[1])
    step = int(sys.argv[2])
    mount(folder)
    for objects in range(1, MANY, step):
        for size in (200, 3000, 9000):
            for restart in (False, True):
                try:
                    asyncio.run(play(folder, objects=objects, size=size, restart=restart))
                except BaseException:
                    print(f"objects={objects} size={size} restart={restart}")
                    raise
    for objects, size, together in LARGE:
        for restart in (False, True):
            try:
                asyncio.run(play(folder, objects=objects, size=size, restart=restart, together=together))
            except BaseException:
                print(f"objects={objects} size={size} restart={restart} together={together}")
                raise


if __name__ == "__main__":
    main()
