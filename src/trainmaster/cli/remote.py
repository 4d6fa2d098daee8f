"""The terminal's side of a command in a container: keys go in, bytes come out, the size of the window follows."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trainmaster.cli.output import FAILED, Told
from trainmaster.cli.replicas import Place
from trainmaster.kube.kubeconfig import Access
from trainmaster.kube.remote import STDERR, Command, NoStreams, Running, running

PIECE = 1 << 15


@dataclass(slots=True)
class Heard:
    """What a command printed, for those who want it as a whole."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)


def interactive(
    access: Access, place: Place, words: Sequence[str], *, stdin: bool, tty: bool, heard: Heard | None = None
) -> int:
    """Run it here and now; its exit code. What it prints is shown, or kept in `heard`. Raises Told where the cluster
    cannot."""
    command = Command(place.namespace, place.pod, words, place.container, stdin, tty)
    with _raw(tty):
        return guarded(_talk(access, command, heard))


def guarded(work: Coroutine[Any, Any, int]) -> int:
    """Run it on a loop of its own; a cluster that cannot is a sentence."""
    try:
        return asyncio.run(work)
    except NoStreams as problem:
        raise Told(f"This cluster does not take commands over a WebSocket, which Kubernetes does from 1.30 on: "
                   f"{problem}. `kubectl exec` and `kubectl cp` may know an older way.", FAILED) from problem


async def _talk(access: Access, command: Command, heard: Heard | None) -> int:
    async with running(access, command) as run:
        tasks = [asyncio.create_task(_keys(run))] if command.stdin else []
        if command.tty:
            _follow_size(run)
        try:
            async for channel, data in run.output():
                if heard is not None:
                    (heard.err if channel == STDERR else heard.out).extend(data)
                    continue
                to = sys.stderr.buffer if channel == STDERR else sys.stdout.buffer
                to.write(data)
                to.flush()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return run.exit_code


async def _keys(run: Running) -> None:
    """Standard input, without a thread that could not be stopped; a file cannot be waited for, and is just read."""
    loop, handle = asyncio.get_running_loop(), sys.stdin.fileno()
    ready = asyncio.Event()
    try:
        loop.add_reader(handle, ready.set)
        waits = True
    except PermissionError:      # epoll takes no plain files
        waits = False
    try:
        while True:
            if waits:
                await ready.wait()
                ready.clear()
            data = os.read(handle, PIECE)
            if not data:
                await run.end_input()
                return
            await run.write(data)
    finally:
        if waits:
            loop.remove_reader(handle)


def _follow_size(run: Running) -> None:
    loop = asyncio.get_running_loop()
    sending: set[asyncio.Task[None]] = set()

    def changed() -> None:
        size = os.get_terminal_size(sys.stdin.fileno())
        task = loop.create_task(run.resize(size.columns, size.lines))
        sending.add(task)
        task.add_done_callback(sending.discard)

    changed()
    loop.add_signal_handler(signal.SIGWINCH, changed)


@contextmanager
def _raw(tty: bool) -> Iterator[None]:
    """Every key goes to the other side, Ctrl-C too; the terminal is as before afterwards."""
    if not tty:
        yield
        return
    import termios
    from tty import setraw

    before = termios.tcgetattr(sys.stdin)
    try:
        setraw(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
