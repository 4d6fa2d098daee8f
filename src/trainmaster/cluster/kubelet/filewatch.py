"""Being told by the kernel that a file has grown or a record has come: inotify, by ctypes.

One inotify descriptor for the whole agent (a user may have 128), one watch per file that somebody follows. The
alternative, asking every so often, costs time at both ends: the reader waits and the machine never idles.
"""

import asyncio
import ctypes
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_MODIFY, _CLOSE_WRITE, _MOVED_TO, _MOVE_SELF, _DELETE_SELF = 0x2, 0x8, 0x80, 0x800, 0x400
_ALL = _MODIFY | _CLOSE_WRITE | _MOVED_TO | _MOVE_SELF | _DELETE_SELF
_IGNORED = 0x8000
_HEAD = struct.Struct("iIII")

_libc = ctypes.CDLL(None, use_errno=True)


class FileWatch:
    """Watches files for as long as somebody asks. Must be closed."""

    def __init__(self) -> None:
        self._fd = int(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"inotify_init1: {os.strerror(number)}")
        self._listeners: dict[int, set[asyncio.Event]] = {}
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    @asynccontextmanager
    async def watching(self, path: Path) -> AsyncIterator[asyncio.Event]:
        """An event that is set when the file changes, or something is moved into the directory; cleared by hand."""
        number = int(_libc.inotify_add_watch(self._fd, os.fsencode(path), _ALL))
        if number < 0:
            error = ctypes.get_errno()
            raise OSError(error, f"inotify_add_watch {path}: {os.strerror(error)}")
        changed = asyncio.Event()
        self._listeners.setdefault(number, set()).add(changed)
        try:
            yield changed
        finally:
            listeners = self._listeners.get(number, set())
            listeners.discard(changed)
            if not listeners and self._listeners.pop(number, None) is not None:
                _libc.inotify_rm_watch(self._fd, number)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        data = os.read(self._fd, 1 << 16)
        at = 0
        while at < len(data):
            number, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size + length
            for listener in self._listeners.get(number, ()):
                listener.set()
            if mask & _IGNORED:
                self._listeners.pop(number, None)
