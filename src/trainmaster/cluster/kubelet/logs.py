"""Reading containers' logs: all, the last lines, those since a moment, and what is still to come.

What `output` wrote is passed on in large pieces from where the answer begins, never read as a whole. Times are looked
up only for those who ask for them. A follower waits for the kernel to say that something was written (`filewatch`), and
goes from one file to the next; one that is so slow that its next file is gone goes on with the oldest there is.
"""

import os
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from trainmaster.cluster.kubelet.output import ENTRY, STDERR, STDOUT, names

_PIECE = 1 << 18
STREAMS = {"Stdout": STDOUT, "Stderr": STDERR}

# What the kubelet takes from a log for terminationMessagePolicy FallbackToLogsOnError.
_LAST_BYTES, _LAST_LINES = 2048, 80


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part of a log, in the words of the API."""

    follow: bool = False
    timestamps: bool = False
    tail: int | None = None         # tailLines
    since: int = 0                  # nanoseconds since the epoch; earlier lines are left out
    limit: int | None = None        # limitBytes
    stream: int = 0                 # only this one; 0: both


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes that were printed together."""

    stream: int
    when: int
    data: bytes


async def read(
    directory: Path, wanted: Wanted, changed: Callable[[], Awaitable[None]], ended: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The wanted part of a log as its reader sees it.

    A follower is told everything until `ended()`; `changed()` returns when something may have been written, or the end
    may have come, since it was last awaited.
    """
    left = wanted.limit if wanted.limit is not None else -1
    number, offset = _start(directory, wanted)
    # Who does not follow is told what there is now: a container may print faster than its reader reads.
    last = (1 << 62, 0) if wanted.follow else _start(directory, Wanted(tail=0))
    shown = _Shown(wanted)
    while True:
        segment = _opened(directory, number)
        offset = offset if segment.number == number else 0
        number = segment.number
        with segment:
            segment.seek(offset, last[1] if number == last[0] else None)
            while True:
                over = ended()          # asked before reading: what was written until then is in the file
                later = _later(directory, number) if number < last[0] else None
                for text in shown.of(segment):
                    if 0 <= left <= len(text):
                        yield text[:left]
                        return
                    left -= len(text) if left >= 0 else 0
                    if text:
                        yield text
                if later is not None:
                    break
                if over or not wanted.follow:
                    return
                await changed()
        number, offset = later, 0


def chunks(directory: Path) -> Iterator[Chunk]:
    """All that is kept of a log, with its streams and times."""
    for number in numbers(directory):
        with _Segment(directory, number) as segment:
            while found := segment.chunks():
                yield from found


def last_words(directory: Path) -> str:
    """The end of a log, as much as a termination message may hold."""
    try:
        number, offset = _start(directory, Wanted(tail=_LAST_LINES))
        with _Segment(directory, number) as segment:
            segment.seek(max(offset, segment.size() - _LAST_BYTES))
            return segment.bytes()[-_LAST_BYTES:].decode(errors="replace")
    except OSError:
        return ""


def numbers(directory: Path) -> list[int]:
    """The files of a log, oldest first."""
    try:
        found = [entry.removesuffix(".log") for entry in os.listdir(directory) if entry.endswith(".log")]  # noqa: PTH208
    except FileNotFoundError:
        return []
    return sorted(int(entry) for entry in found if entry.isdecimal())


def timestamp(now: int) -> bytes:
    """RFC 3339 in UTC with nanoseconds; always of the same length, so that times compare as text does."""
    seconds, nanoseconds = divmod(now, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanoseconds:09d}Z".encode()


class _Shown:
    """Turns what is read into what a reader sees."""

    def __init__(self, wanted: Wanted) -> None:
        self._timestamps = wanted.timestamps
        self._stream = wanted.stream
        self._since = wanted.since
        self._inside = 0                         # the stream whose last chunk ended in the middle of a line

    def of(self, segment: "_Segment") -> Iterator[bytes]:
        """Everything from where the segment stands to its present end."""
        if not self._timestamps and not self._stream:
            while data := segment.bytes():
                yield data
            return
        while found := segment.chunks():
            yield b"".join(self._chunk(chunk) for chunk in found)

    def _chunk(self, chunk: Chunk) -> bytes:
        if (self._stream and chunk.stream != self._stream) or chunk.when < self._since:
            return b""
        if not self._timestamps:
            return chunk.data
        stamp = timestamp(chunk.when) + b" "
        whole = chunk.data.endswith(b"\n")
        lines = (chunk.data[:-1] if whole else chunk.data).replace(b"\n", b"\n" + stamp)
        before, self._inside = self._inside, 0 if whole else chunk.stream
        # The line of another stream that has not ended, such as a bar, is left as it is: a time begins a line.
        start = b"" if before == chunk.stream else b"\n" + stamp if before else stamp
        return start + lines + (b"\n" if whole else b"")


class _Segment:
    """One file of a log and its index. Raises FileNotFoundError when it is gone."""

    def __init__(self, directory: Path, number: int) -> None:
        data, index = names(number)
        self._data = os.open(directory / data, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._index = os.open(directory / index, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(self._data)
            raise
        self.number = number
        self._at = 0
        self._end: int | None = None
        self._offsets: list[int] = []
        self._entries: list[tuple[int, int]] = []      # time and stream

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._data)
        os.close(self._index)

    def size(self) -> int:
        return os.fstat(self._data).st_size

    def seek(self, offset: int, end: int | None = None) -> None:
        """Where to read from, and where to stop if not at the present end."""
        self._at, self._end = offset, end

    def bytes(self, size: int = _PIECE) -> bytes:
        """The next bytes, none at the present end."""
        if self._end is not None:
            size = max(0, min(size, self._end - self._at))
        data = os.pread(self._data, size, self._at)
        self._at += len(data)
        return data

    def chunks(self) -> list[Chunk]:
        """The next bytes as what they were printed in, none at the present end."""
        begin = self._at
        data = self.bytes()
        if not data:
            return []
        self._learn()
        end, found = begin + len(data), []
        at = max(0, bisect_right(self._offsets, begin) - 1)
        while begin < end:
            until = min(end, self._offsets[at + 1]) if at + 1 < len(self._offsets) else end
            when, stream = self._entries[at] if self._entries else (0, STDOUT)      # a full disk lost the entry
            if until > begin:
                found.append(Chunk(stream, when, data[begin - end + len(data):until - end + len(data)]))
            begin, at = max(begin, until), at + 1
        return found

    def since(self, when: int) -> int:
        """Where what was printed at that moment or later begins."""
        self._learn()
        for offset, (printed, _) in zip(self._offsets, self._entries, strict=True):
            if printed >= when:
                return offset
        return self.size()

    def tail(self, lines: int, *, newest: bool) -> tuple[int, int]:
        """Where the last lines begin, and how many of them there are not."""
        at = self.size()
        if newest and at and os.pread(self._data, 1, at - 1) != b"\n":
            lines -= 1                     # a line without its end is one too; in an older file, the next has its end
        while at > 0:
            size = min(_PIECE, at)
            data = os.pread(self._data, size, at - size)
            count = data.count(b"\n")
            if count > lines:
                position = len(data)
                for _ in range(lines + 1):
                    position = data.rfind(b"\n", 0, position)
                return at - size + position + 1, 0
            lines -= count
            at -= size
        return 0, lines

    def _learn(self) -> None:
        """Read what was added to the index."""
        known = len(self._offsets) * ENTRY.size
        raw = os.pread(self._index, max(0, os.fstat(self._index).st_size - known), known)
        for offset, when, stream in ENTRY.iter_unpack(raw[:len(raw) // ENTRY.size * ENTRY.size]):
            self._offsets.append(offset)
            self._entries.append((when, stream))


def _opened(directory: Path, number: int) -> _Segment:
    """That file of a log, or the next that is still there."""
    while True:
        try:
            return _Segment(directory, number)
        except FileNotFoundError:
            later = _later(directory, number)
            if later is None:
                raise
            number = later


def _later(directory: Path, number: int) -> int | None:
    """The file after this one, if there is one; the oldest that is kept, if that is gone."""
    if (directory / names(number + 1)[0]).exists():
        return number + 1
    return next((each for each in numbers(directory) if each > number), None)


def _start(directory: Path, wanted: Wanted) -> tuple[int, int]:
    """The file and the offset where the answer begins. Raises FileNotFoundError when there is no log."""
    kept = numbers(directory)
    if not kept:
        raise FileNotFoundError(2, "there is no log", str(directory))
    start = (kept[0], 0)
    if wanted.tail is not None:
        start = max(start, _start_of_tail(directory, kept, wanted.tail))
    if wanted.since:
        start = max(start, _start_since(directory, kept, wanted.since))
    return start


def _start_of_tail(directory: Path, kept: list[int], lines: int) -> tuple[int, int]:
    offset = 0
    for number in reversed(kept):
        with suppress(FileNotFoundError), _Segment(directory, number) as segment:      # given up meanwhile
            if lines <= 0:
                return number, segment.size()
            offset, missing = segment.tail(lines, newest=number == kept[-1])
            if missing <= 0:
                return number, offset
            lines = missing
    return kept[0], 0


def _start_since(directory: Path, kept: list[int], when: int) -> tuple[int, int]:
    for number in kept:
        with suppress(FileNotFoundError), _Segment(directory, number) as segment:
            offset = segment.since(when)
            if offset < segment.size() or number == kept[-1]:
                return number, offset
    return kept[-1], 0
