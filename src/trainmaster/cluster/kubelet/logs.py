"""Reading containers' logs: all, the last lines, those since a moment, and what is still to come.

A log is read in chunks from where the answer begins, never as a whole, and a follower waits for the kernel to say that
the file has grown (`filewatch`).
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trainmaster.cluster.kubelet.criformat import LONGEST

_CHUNK = 1 << 16
_TIME = 30                              # "2026-11-15T21:44:24.087327005Z"
_TAG = _TIME + len(" stdout ")          # where F or P stands
_CONTENT = _TAG + len("F ")

# What the kubelet takes from a log for terminationMessagePolicy FallbackToLogsOnError.
_LAST_BYTES, _LAST_LINES = 2048, 80


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part of a log, in the words of the API."""

    follow: bool = False
    timestamps: bool = False
    tail: int | None = None         # tailLines
    since: bytes = b""              # a timestamp as the log has them; earlier lines are left out
    limit: int | None = None        # limitBytes


async def read(
    path: Path, wanted: Wanted, changed: Callable[[], Awaitable[None]], ended: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The wanted part of a log as its reader sees it.

    A follower is told everything until `ended()`; `changed()` returns when the file may have grown, or the end may have
    come, since it was last awaited.
    """
    left = wanted.limit if wanted.limit is not None else -1
    shown = _Shown(wanted)
    with path.open("rb") as file:
        file.seek(_start_of_tail(file, wanted.tail))
        while True:
            over = ended()              # asked before reading: what was written until then is in the file
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                text = shown.feed(chunk)
                if 0 <= left <= len(text):
                    yield text[:left]
                    return
                left -= len(text) if left >= 0 else 0
                if text:
                    yield text
            if over or not wanted.follow:
                return
            await changed()


def last_words(path: Path) -> str:
    """The end of a log without its stamps, as much as a termination message may hold."""
    try:
        with path.open("rb") as file:
            file.seek(_start_of_tail(file, _LAST_LINES))
            text = _Shown(Wanted()).feed(file.read(_LAST_LINES * (LONGEST + _CONTENT)))
    except OSError:
        return ""
    return text[-_LAST_BYTES:].decode(errors="replace")


class _Shown:
    """Turns raw log bytes, in chunks of any size, into what a reader sees."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._rest = b""
        self._inside = False            # the line before was a piece: this one continues it

    def feed(self, chunk: bytes) -> bytes:
        whole, newline, self._rest = (self._rest + chunk).rpartition(b"\n")
        return b"".join(self._lines(whole)) if newline else b""

    def _lines(self, whole: bytes) -> Iterator[bytes]:
        for line in whole.split(b"\n"):
            if self._wanted.since and line[:_TIME] < self._wanted.since:
                continue
            piece = line[_TAG:_TAG + 1] == b"P"
            if self._wanted.timestamps and not self._inside:
                yield line[:_TIME] + b" "
            yield line[_CONTENT:] if piece else line[_CONTENT:] + b"\n"
            self._inside = piece


def _start_of_tail(file: BinaryIO, lines: int | None) -> int:
    """Where the last `lines` lines begin; pieces of one line count as one."""
    if lines is None:
        return 0
    end = file.seek(0, os.SEEK_END)
    if lines <= 0:
        return end
    at, tail = end, b""
    while at > 0:
        size = min(_CHUNK, at)
        at -= size
        file.seek(at)
        tail = file.read(size) + tail
        # Complete lines of `tail`, except that its first may have begun earlier.
        starts = _line_starts(tail, whole_from_start=at == 0)
        full = [start for start in starts if tail[start + _TAG:start + _TAG + 1] == b"F"]
        if len(full) > lines:
            # The line after the last full one that is left out.
            cut = full[-lines - 1]
            return at + tail.index(b"\n", cut) + 1
    return 0


def _line_starts(data: bytes, *, whole_from_start: bool) -> list[int]:
    starts = [0] if whole_from_start else []
    position = data.find(b"\n")
    while 0 <= position < len(data) - 1:
        starts.append(position + 1)
        position = data.find(b"\n", position + 1)
    return starts
