"""The log format of the CRI: `TIME STREAM F line`, or `P` for a piece of a line that was too long or came too slowly.

Written by the shim and read by the log server, so both sides of the format are here. Output is moved in chunks: all
lines of a chunk share its time, and the work per byte is done by C code, so that a container that prints 100 MB/s costs
what copying costs. Small standard modules only: the shims carry this one.
"""

import time

LONGEST = 16384     # as containerd: a longer line is cut into pieces


class Stamper:
    """Turns the bytes of one stream into log lines."""

    def __init__(self, stream: bytes) -> None:
        self._stream = stream
        self._rest = b""

    def feed(self, data: bytes, now: int) -> bytes:
        """Log lines for all whole lines that `data` completes; `now` in nanoseconds since the epoch."""
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        stamp = timestamp(now) + b" " + self._stream
        lines = b""
        if newline:
            full = stamp + b" F "
            lines = full + whole.replace(b"\n", b"\n" + full) + b"\n"
            if len(whole) > LONGEST and any(len(line) > LONGEST for line in whole.split(b"\n")):
                lines = b"".join(_cut(line, stamp) for line in whole.split(b"\n"))
        pieces = []
        while len(rest) >= LONGEST:
            pieces.append(stamp + b" P " + rest[:LONGEST] + b"\n")
            rest = rest[LONGEST:]
        self._rest = rest
        return lines + b"".join(pieces)

    def finish(self, now: int) -> bytes:
        """The log line for what came after the last newline, if anything did."""
        rest, self._rest = self._rest, b""
        return timestamp(now) + b" " + self._stream + b" F " + rest + b"\n" if rest else b""


def timestamp(now: int) -> bytes:
    """RFC 3339 in UTC with nanoseconds; always of the same length, so that times compare as text does."""
    seconds, nanoseconds = divmod(now, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanoseconds:09d}Z".encode()


def _cut(line: bytes, stamp: bytes) -> bytes:
    end = max(0, (len(line) - 1) // LONGEST) * LONGEST      # where the last piece begins
    pieces = [stamp + b" P " + line[at:at + LONGEST] + b"\n" for at in range(0, end, LONGEST)]
    return b"".join(pieces) + stamp + b" F " + line[end:] + b"\n"
