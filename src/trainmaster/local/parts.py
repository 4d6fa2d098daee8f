"""The cluster's own processes: start one in the background, know whether it lives, stop it.

A part holds a lock on its file in `run/` for as long as it lives; the kernel lets go of it whatever way it ends. So
"is it up" needs no guess from process numbers, which may have been given to somebody else since.
"""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.local.home import Home
from trainmaster.local.part_logs import set_aside
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger
from trainmaster.sdk import embedded

TAIL_LINES = 12   # of a part's log, shown when it could not start
LITTLE = 1 << 16  # bytes: without these on its disk a part cannot say what is wrong with it
LOOK_EVERY = 2.0  # seconds between two looks whether the home is still there


class StartError(Exception):
    """A part of the cluster did not come up; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the cluster, by its place on disk."""

    name: str         # "control-plane", "node"
    module: str       # what `python -m` runs
    run: Path
    logs: Path

    @property
    def lock(self) -> Path:
        return self.run / f"{self.name}.lock"

    @property
    def log(self) -> Path:
        return self.logs / f"{self.name}.log"

    def facts(self) -> dict[str, Any] | None:
        """What the living part says of itself (at least its pid), or None if it does not live."""
        return embedded.facts(self.lock)

    def start(self, *arguments: str, environment: Mapping[str, str]) -> "Starting":
        """Start it in the background; `Starting.ready` waits for it."""
        set_aside(self.log)
        reader, writer = os.pipe()
        command = [sys.executable, "-P", "-m", self.module, *arguments, "--ready-fd", str(writer)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/", pass_fds=[writer],
                start_new_session=True, env={**os.environ, **environment},
            )
        os.close(writer)
        return Starting(self, process, reader)

    def stop(self, seconds: float) -> bool:
        """Ask it to end, wait, and make it end. Whether it ended by itself."""
        facts = self.facts()
        if not facts:
            return True
        try:
            handle = os.pidfd_open(facts["pid"])
        except ProcessLookupError:
            return True
        try:
            if self.facts() != facts:
                return True  # it ended while we looked: the number may be somebody else's by now
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            if _ended(handle, seconds):
                return True
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            _ended(handle, seconds)
            return False
        except ProcessLookupError:
            return True
        finally:
            os.close(handle)
            with suppress(ChildProcessError):
                os.waitpid(facts["pid"], os.WNOHANG)


class Starting:
    """A part between its start and the word that it is ready."""

    def __init__(self, part: Part, process: subprocess.Popen[bytes], reader: int) -> None:
        self._part, self._process, self._reader = part, process, reader

    def go(self) -> None:
        """Tell a part that loaded its code in advance that what it needs is there now."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def ready(self, seconds: float = 60.0) -> dict[str, Any]:
        """Wait until it serves. Raises StartError."""
        self.go()
        try:
            said = _read_all(self._reader, seconds)
        finally:
            os.close(self._reader)
        answer: dict[str, Any] = json.loads(said) if said else {}
        if "ready" not in answer:
            self.give_up()
            raise StartError(answer.get("problem") or self._why(said is None, seconds))
        return answer

    def give_up(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _why(self, late: bool, seconds: float) -> str:
        lines = self._part.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        if not lines and not _room(self._part.log.parent):      # it could not even say so
            return f"no space is left on the disk of {self._part.log.parent}. Make room, and try again."
        what = f"was not ready after {seconds:.0f} s" if late else "ended while it was starting"
        return "\n".join([
            f"the {self._part.name} {what}; the end of {self._part.log}:", *(f"  {line}" for line in lines)
        ])


def _room(folder: Path) -> bool:
    """Whether a person like us can write a little there."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize >= LITTLE


def control_plane(home: Home) -> Part:
    return Part("control-plane", "trainmaster.local.control_plane", home.run, home.logs)


def node(home: Home) -> Part:
    return Part("node", "trainmaster.local.node", home.run, home.logs)


class Standing:
    """Held by a part while it lives: the lock, and the word to whoever waits for it."""

    def __init__(self, part: Part, ready_fd: int | None) -> None:
        self._part = part
        self._ready_fd = ready_fd
        if ready_fd is not None:
            os.set_inheritable(ready_fd, False)      # whoever we start must not keep the other end waiting
        self._lock = os.open(part.lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def claim(self) -> bool:
        """Be the one process of this part. False if another one lives."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.say({"pid": os.getpid()})
        return True

    @property
    def lost(self) -> bool:
        """Whether the lock that we hold is no longer the one on disk: somebody removed the home under us."""
        return os.fstat(self._lock).st_nlink == 0

    def say(self, facts: dict[str, Any]) -> None:
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps(facts).encode(), 0)

    def ready(self, **facts: Any) -> None:
        self.say({"pid": os.getpid(), **facts})
        self._answer({"ready": True, **facts})

    def problem(self, message: str) -> None:
        self._answer({"problem": message})

    def _answer(self, answer: dict[str, Any]) -> None:
        if self._ready_fd is not None:
            with suppress(BrokenPipeError):
                os.write(self._ready_fd, json.dumps(answer).encode())
            os.close(self._ready_fd)
            self._ready_fd = None


async def until_lost(standing: Standing, clock: Clock) -> None:
    """Return when the home is gone. A cluster without one can neither be found nor stopped, so it has to end."""
    while not standing.lost:
        await clock.sleep(LOOK_EVERY)
    logger("home").warning("the home of the cluster was removed, so it ends")


def _read_all(reader: int, seconds: float) -> bytes | None:
    """Everything until the other end is closed; None if that took too long."""
    said = b""
    poll = select.poll()
    poll.register(reader, select.POLLIN | select.POLLHUP)
    while poll.poll(seconds * 1000):
        piece = os.read(reader, 65536)
        if not piece:
            return said
        said += piece
    return None


def _ended(pidfd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def arguments_without_ready_fd(arguments: Sequence[str]) -> tuple[list[str], int | None]:
    """What a part was started with, and where it says that it is ready."""
    rest = list(arguments)
    if "--ready-fd" not in rest:
        return rest, None
    at = rest.index("--ready-fd")
    handle = int(rest[at + 1])
    del rest[at:at + 2]
    return rest, handle
