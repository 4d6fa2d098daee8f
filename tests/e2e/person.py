"""Somebody who types commands: real processes, with a home and a user of their own."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], holds: Callable[[T], bool], seconds: float = 120) -> T:
    """What is seen as soon as it is as it should be; else the last that was seen, for the assertion to show.

    For what comes a moment after what could be waited for: the first word of a process that runs, say.
    """
    deadline = time.monotonic() + seconds
    while not holds(seen := look()) and time.monotonic() < deadline:
        os.sched_yield()
    return seen


@dataclass(frozen=True)
class Person:
    """Somebody with a home of their own, and Trainmaster installed."""

    name: str
    home: Path
    command: Path
    prefix: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return Path(self.environment["TRAINMASTER_HOME"])

    def run(self, *command: str | Path, timeout: float = 120, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.prefix, *map(str, command)], env=self.environment, cwd=self.home, text=True, capture_output=True,
            timeout=timeout, input=text, check=False,
        )

    def trainmaster(self, *arguments: str, timeout: float = 120, text: str = "") -> subprocess.CompletedProcess[str]:
        return self.run(self.command, *arguments, timeout=timeout, text=text)

    def folder(self, name: str, files: dict[str, str]) -> Path:
        """A folder of theirs, with files in it."""
        made = self.home / name
        for file, text in files.items():
            (made / file).parent.mkdir(parents=True, exist_ok=True)
            (made / file).write_text(text)
        owner = self.home.stat()
        for path in (made, *made.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)
        return made

    def kubectl(self, *arguments: str, timeout: float = 120, text: str = "") -> str:
        done = self.run("kubectl", *arguments, timeout=timeout, text=text)
        assert 0 == done.returncode, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def kill(self, part: str) -> None:
        """SIGKILL to a process of the cluster; returns when it is gone."""
        pid = json.loads((self.state / "run" / f"{part}.lock").read_text())["pid"]
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            assert select.select([handle], [], [], 60)[0], f"the {part} does not die"
        finally:
            os.close(handle)
