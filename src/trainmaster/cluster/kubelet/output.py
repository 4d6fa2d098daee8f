"""Where a container's output goes: files of plain bytes, each with an index of times, of which the oldest are given up.

`7.log` holds what the container printed, as it printed it, so that a person can read it with anything; `7.idx` says
when and on which stream the bytes from an offset on were printed. One entry stands for a chunk, and chunks that follow
each other within a millisecond share one, so the work per line is nothing and a container that prints 100 MB/s costs
what copying costs. A file that is full is left for the next number and never touched again, which makes following
simple; only the last few are kept, as the kubelet does, so that a container cannot fill the disk by talking.
Rejected: the CRI's lines with a time in front of each, which cost 40 bytes and a copy per line; renaming full files,
because a reader could then open one file for another.

The index entry is written before the bytes, so whoever has read bytes finds their entry. Small standard modules only:
the shims carry this one.
"""

import os
import struct

STDOUT, STDERR = 1, 2
ENTRY = struct.Struct("<QQQ")       # offset, nanoseconds since the epoch, stream
LONGEST = 16384                     # bytes of a line that are kept back until its end comes, as containerd
# The kubelet's defaults for containerLogMaxSize and containerLogMaxFiles.
MOST_BYTES = 10 * 1024 * 1024
MOST_FILES = 5
_APART = 1_000_000                  # nanoseconds between two entries of one stream


class Lines:
    """Keeps back the beginning of a line until its end comes, so that two streams never mix inside one.

    A carriage return is an end too: a bar that redraws itself has no other for hours, and says how far it is.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """All whole lines that are complete now; a very long one in pieces."""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if end == 0 and len(self._rest) + len(data) < LONGEST:
            self._rest += data
            return b""
        whole, rest = self._rest + data[:end], data[end:]
        if len(rest) + (len(whole) if end == 0 else 0) >= LONGEST:
            whole, rest = whole + rest, b""
        self._rest = rest
        return whole

    def finish(self) -> bytes:
        """What came after the last newline."""
        rest, self._rest = self._rest, b""
        return rest


class Log:
    """The log of one attempt, in a directory of its own. `most_files` 0: all are kept, in one."""

    def __init__(self, directory: int, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self._directory = directory
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._number = 0
        self._last = (0, 0)             # stream and time of the last entry
        self._data, self._index, self._size = self._opened()
        self._lines = {STDOUT: Lines(), STDERR: Lines()}

    def feed(self, stream: int, data: bytes, now: int) -> int:
        """Take output, none for its end; how many bytes could not be kept. `now` in nanoseconds since the epoch."""
        lines = self._lines[stream]
        whole = lines.feed(data) if data else lines.finish()
        return self._write(stream, whole, now) if whole else 0

    def _write(self, stream: int, data: bytes, now: int) -> int:
        view = memoryview(data)
        # A full disk must neither stop the container (nobody would read its pipe) nor lose its exit code.
        try:
            if self._most_files and self._size + len(data) > self._most_bytes and self._size:
                self._next()
            if self._last[0] != stream or not 0 <= now - self._last[1] < _APART:
                os.write(self._index, ENTRY.pack(self._size, now, stream))
                self._last = (stream, now)
            while view:
                written = os.write(self._data, view)
                self._size += written
                view = view[written:]
        except OSError:
            pass
        return len(view)

    def _next(self) -> None:
        """Begin another file, and give up the oldest."""
        self._number += 1
        self._last = (0, 0)
        data, index = self._data, self._index
        self._data, self._index, self._size = self._opened()
        os.close(data)
        os.close(index)
        if self._number >= self._most_files:
            for name in names(self._number - self._most_files):
                os.unlink(name, dir_fd=self._directory)

    def _opened(self) -> tuple[int, int, int]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        # The index first: whoever sees the log finds it.
        data, index = names(self._number)
        index_fd = os.open(index, flags, 0o640, dir_fd=self._directory)
        try:
            data_fd = os.open(data, flags, 0o640, dir_fd=self._directory)
        except OSError:
            os.close(index_fd)
            raise
        return data_fd, index_fd, 0


def names(number: int) -> tuple[str, str]:
    """The log file of a number, and its index."""
    return f"{number}.log", f"{number}.idx"
