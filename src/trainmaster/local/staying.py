"""Stay with a cluster until somebody says stop: for terminals, containers and whoever supervises processes.

The parts run as they always do, in the background and on their own; who stays only watches them and passes the word on.
Rejected: running them in this process, since then the death of the one would be the death of all.
"""

import os
import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trainmaster.local import parts
from trainmaster.local.home import Home

STOPS = (signal.SIGINT, signal.SIGTERM)


def stay(home: Home, ready: Callable[[], None]) -> str:
    """Returns when a signal says stop: then "". Or when a part of the cluster has ended by itself: then its name.

    `ready` is called once signals are heard.
    """
    with _told_to_stop() as told, _lives(home) as lives:
        ready()
        if not lives:
            return parts.control_plane(home).name
        poll = select.poll()
        for handle in (told, *lives):
            poll.register(handle, select.POLLIN)
        heard = {handle for handle, _ in poll.poll()}
        return "" if told in heard else next(name for handle, name in lives.items() if handle in heard)


@contextmanager
def _told_to_stop() -> Iterator[int]:
    """A descriptor that can be read once one of the signals has come."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before = {number: signal.signal(number, lambda *_: None) for number in STOPS}
    woken = signal.set_wakeup_fd(writer.fileno())
    try:
        yield reader.fileno()
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        reader.close()
        writer.close()


@contextmanager
def _lives(home: Home) -> Iterator[dict[int, str]]:
    """A descriptor of each part that lives, which can be read once it does not any more."""
    found: dict[int, str] = {}
    try:
        for part in (parts.control_plane(home), parts.node(home)):
            facts = part.facts()
            if facts:
                found[os.pidfd_open(facts["pid"])] = part.name
        yield found
    finally:
        for handle in found:
            os.close(handle)
