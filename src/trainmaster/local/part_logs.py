"""The log of a part of the cluster, kept short while it grows.

What a part prints goes to its log by its standard output and error, so that nothing is lost: lines of libraries and the
last words of a crash, too. Hence no handler of `logging` can turn the file over; the part itself puts a new file in the
place of the old one, and the two descriptors on it. Rejected: a pipe to a process that writes, which would have to
outlive the part, and one more thing to look after.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from trainmaster.runtime.clock import Clock

MOST_LOGGED = 16 << 20      # bytes of a log beyond which another is begun; the last one is kept beside it
LOOK_EVERY = 5.0            # seconds
PRINTED_TO = (1, 2)         # the descriptors of standard output and error


def set_aside(log: Path) -> bool:
    """Make room for another if it has grown; whether it had."""
    try:
        grown = log.stat().st_size > MOST_LOGGED
    except FileNotFoundError:
        return False
    if grown:
        log.replace(log.with_name(f"{log.name}.1"))
    return grown


class PartLog:
    """The log that this process prints to. If it prints elsewhere, such as to a terminal, nothing is done."""

    def __init__(self, log: Path, handles: Sequence[int] = PRINTED_TO) -> None:
        self._log = log
        self._handles: list[int] = []
        with suppress(OSError):      # there is no such file, or we have no such descriptor
            there = log.stat()
            self._handles = [handle for handle in handles if os.path.samestat(there, os.fstat(handle))]

    def tend(self) -> None:
        """Go on in another file if this one has grown, or was removed under us."""
        if not self._handles or not self._log.parent.exists():
            return
        if not set_aside(self._log) and self._log.exists():
            return
        new = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for handle in self._handles:
            os.dup2(new, handle)
        os.close(new)

    async def kept_short(self, clock: Clock) -> None:
        """For as long as the part lives. A disk that is full must not end it: the next look may do."""
        while True:
            with suppress(OSError):
                self.tend()
            await clock.sleep(LOOK_EVERY)
