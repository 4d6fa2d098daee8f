"""What of this machine nobody but its owner may read, found so that no pod of his can.

A pod of root is root, and a pod of yours is you: left alone, it could read what you alone can. Lists of well-known
places (`rootfs`) know nothing of a key in /opt or a database in /srv. So pods see of the machine's files what any other
user of it would see: directories that others may not enter are empty, files that they may not read are empty, and
sockets and pipes lead to nobody. It is looked up every few minutes, not at every start: the walk costs a tenth of a
second.
"""

# ruff: noqa: PTH116  scandir gives strings

import asyncio
import os
import stat
from collections.abc import Collection, Iterator

from trainmaster.runtime.clock import Clock

# Made anew for each container, or programs and libraries, which are for everybody.
_NOT_LOOKED_AT = frozenset(
    {"proc", "sys", "dev", "run", "tmp", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}
)
# Package managers keep their own work closed to others, and pods of root may install packages into their own layer.
_NOT_PRIVATE = frozenset({"/var/lib/apt", "/var/lib/dpkg", "/var/cache", "/lost+found"})
_DEEP = {"/etc": 8, "/var": 4}
_DEPTH = 3
MOST_ENTRIES = 50_000       # looked at; beyond that the machine has something stranger than secrets there
FRESH_SECONDS = 300.0


class Privacy:
    """The private paths of this machine for one user, looked up before they are needed and then now and again."""

    def __init__(self, user: int, skipped: Collection[str] = ()) -> None:
        self._user = user
        self._skipped = skipped              # hidden anyway
        self._paths: list[str] | None = None
        self._looking = asyncio.Lock()

    async def paths(self) -> list[str]:
        if self._paths is None:
            await self._look()
        assert self._paths is not None
        return self._paths

    async def keep(self, clock: Clock) -> None:
        """Stay up to date until cancelled."""
        while True:
            await self._look()
            await clock.sleep(FRESH_SECONDS)

    async def _look(self) -> None:
        async with self._looking:
            self._paths = await asyncio.to_thread(lambda: list(private("/", self._user, self._skipped)))


def private(root: str, user: int, skipped: Collection[str] = ()) -> Iterator[str]:
    """The outermost paths below `root` that the user can read and others cannot, and what leads to other processes."""
    left = [MOST_ENTRIES]
    device = os.stat(root).st_dev
    for entry in _entries(root):
        if entry.name not in _NOT_LOOKED_AT:
            yield from _below(entry, user, skipped, _DEEP.get(entry.path, _DEPTH), device, left)


def _below(
    entry: os.DirEntry[str], user: int, skipped: Collection[str], depth: int, device: int, left: list[int]
) -> Iterator[str]:
    left[0] -= 1
    if left[0] < 0 or entry.path in skipped or entry.path in _NOT_PRIVATE:
        return
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return
    if _closed(seen, user):
        yield entry.path
    elif stat.S_ISDIR(seen.st_mode) and depth and seen.st_dev == device:     # another file system may be far away
        for inner in _entries(entry.path):
            yield from _below(inner, user, skipped, depth - 1, device, left)


def _closed(seen: os.stat_result, user: int) -> bool:
    if stat.S_ISSOCK(seen.st_mode) or stat.S_ISFIFO(seen.st_mode):
        return True
    if user and seen.st_uid != user:
        return False                       # not his either
    if stat.S_ISDIR(seen.st_mode):
        return not seen.st_mode & stat.S_IXOTH
    return stat.S_ISREG(seen.st_mode) and not seen.st_mode & stat.S_IROTH


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []
