"""Commands in running containers, from the agent's side: for exec, for exec probes and for hooks.

The container's shim says what its commands have in common (`doorway`), the helper starts one more of them (`entering`),
and this end holds the descriptors it speaks through. Closing a `Running` ends the command if it has not ended, whatever
the reason for closing was.
"""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.cluster.kubelet import descriptors, doorway
from trainmaster.cluster.kubelet.command import Footing, resize
from trainmaster.cluster.kubelet.launcher import Launcher, received
from trainmaster.cluster.kubelet.records import Failed

# What is kept of a probe's or hook's output, as the kubelet.
MOST_KEPT = 10 * 1024
# After the command's end: for output that somebody it left behind is still about to write.
LAST_WORDS = 0.5
_ANSWER = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, and the beginning of what it said on both streams."""

    code: int
    output: bytes


class Running:
    """A command that was started in a container. -1 stands for a stream that was not asked for.

    With a terminal, `stdin` and `stdout` are the same descriptor: the terminal's.
    """

    def __init__(self, report: socket.socket, stdin: int, stdout: int, stderr: int, *, terminal: bool) -> None:
        self._report = report
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._terminal = terminal
        for fd in {stdin, stdout, stderr} - {-1}:
            os.set_blocking(fd, False)

    async def end(self) -> int:
        """Its exit code, 128 + N after signal N. Raises Failed when nobody is left to tell."""
        return int((await received(self._report, 0, "wait for the command", patience=None)).message["code"])

    def resize(self, columns: int, rows: int) -> None:
        if self._terminal:
            with contextlib.suppress(OSError):
                resize(self.stdout, columns, rows)

    def close_stdin(self) -> None:
        """Nothing more will be typed. A terminal has no such end; whoever wants one types it."""
        if self.stdin >= 0 and not self._terminal:
            os.close(self.stdin)
            self.stdin = -1

    def close(self) -> None:
        """Let go of it, and so end it."""
        self._report.close()
        for fd in {self.stdin, self.stdout, self.stderr} - {-1}:
            os.close(fd)
        self.stdin = self.stdout = self.stderr = -1


async def start_in(
    launcher: Launcher, attempt: Path, shim: int, argv: Sequence[str], *, stdin: bool = False, tty: bool = False,
    together: bool = False,
) -> Running:
    """Start a command in the container whose attempt and shim (a pidfd) these are. Raises Failed.

    `together`: both of its output streams in one.
    """
    footing = await footing_of(attempt)
    plan, shared = {"argv": list(argv), "footing": footing}, footing["host_network"]
    if tty:
        report, answer = await launcher.conversation({"do": "exec"}, plan, (shim,), host_network=shared)
        return Running(report, answer.fds[0], answer.fds[0], -1, terminal=True)
    theirs, ours = _pipes(stdin=stdin, together=together)
    try:
        report, _ = await launcher.conversation({"do": "exec"}, plan, (shim, *theirs), host_network=shared)
    except BaseException:
        for fd in ours:
            if fd >= 0:
                os.close(fd)
        raise
    finally:
        for fd in set(theirs):
            os.close(fd)
    return Running(report, *ours, terminal=False)


async def run_in(
    launcher: Launcher, attempt: Path, shim: int, argv: Sequence[str], *, timeout: float, most: int = MOST_KEPT
) -> Outcome:
    """Run a command in a container to its end. Raises Failed when it cannot be started, and TimeoutError after
    `timeout` seconds, when it is ended."""
    async with asyncio.timeout(timeout):
        running = await start_in(launcher, attempt, shim, argv, together=True)
        with contextlib.closing(running):
            said = bytearray()

            async def listen() -> None:
                while piece := await descriptors.read(running.stdout):
                    said.extend(piece[:most - len(said)])

            listening = asyncio.create_task(listen())
            try:
                code = await running.end()
                await asyncio.wait([listening], timeout=LAST_WORDS)
            finally:
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening
    return Outcome(code, bytes(said))


async def footing_of(attempt: Path) -> Footing:
    """What the commands of a container have in common. Raises Failed when its shim is gone or does not answer."""
    caller = await caller_of(attempt, {"do": "footing"})
    with caller:
        answer = await received(caller, 1, "ask the container's shim", patience=_ANSWER)
    memory = answer.fds[0]
    try:
        found: Footing = json.loads(os.pread(memory, os.fstat(memory).st_size, 0))
    finally:
        os.close(memory)
    return found


async def caller_of(attempt: Path, wish: dict[str, Any]) -> socket.socket:
    """A connection to a container's shim, on which it was told what is wanted. Raises Failed."""
    what = "ask the container's shim"
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    caller.setblocking(False)
    try:
        directory = os.open(attempt, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            async with asyncio.timeout(_ANSWER):
                await asyncio.get_running_loop().sock_connect(caller, f"/proc/self/fd/{directory}/{doorway.NAME}")
        finally:
            os.close(directory)
        caller.send(json.dumps(wish).encode())
    except BaseException as error:
        caller.close()
        if isinstance(error, FileNotFoundError):
            raise Failed(what, error.errno or 0, "it has no door, as those of earlier versions") from error
        if isinstance(error, OSError):      # a TimeoutError is one, too
            raise Failed(what, error.errno or 0, "the container is not running") from error
        raise
    return caller


def _pipes(*, stdin: bool, together: bool) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """The command's ends and ours of its three streams."""
    if stdin:
        theirs_in, ours_in = os.pipe2(os.O_CLOEXEC)
    else:
        theirs_in, ours_in = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1
    ours_out, theirs_out = os.pipe2(os.O_CLOEXEC)
    if together:
        return (theirs_in, theirs_out, theirs_out), (ours_in, ours_out, -1)
    ours_err, theirs_err = os.pipe2(os.O_CLOEXEC)
    return (theirs_in, theirs_out, theirs_err), (ours_in, ours_out, ours_err)
