"""Programs that run beside the tests: started with a log each, stopped in the opposite order, none left behind."""

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

READY_WITHIN = 120.0
STOP_WITHIN = 15.0
LOOK_EVERY = 0.05
SAID = 3000  # characters of a log that are shown


class NotReady(Exception):
    """A program ended, or did not do what was waited for; the message ends with what it said last."""


@dataclass(slots=True)
class Processes:
    folder: Path
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        with self.log(name).open("wb") as output:
            self._running[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
            )

    def wait(self, name: str, ready: Callable[[], bool]) -> None:
        """Return when it is ready; raise NotReady, with the program stopped, when it ended or took too long."""
        deadline = time.monotonic() + READY_WITHIN
        while self._running[name].poll() is None and time.monotonic() < deadline:
            if ready():
                return
            time.sleep(LOOK_EVERY)
        code = self._running[name].poll()
        self.stop(name)
        what = f"was not ready within {READY_WITHIN:.0f} s" if code is None else f"ended with {code}"
        raise NotReady(f"{name} {what}. It said last:\n{self.log(name).read_text(errors='replace')[-SAID:]}")

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def stop(self, name: str, *, kill: bool = False) -> None:
        process = self._running.pop(name)
        if kill:
            process.kill()
        else:
            process.terminate()
        try:
            process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop_all(self) -> None:
        for name in reversed(list(self._running)):
            self.stop(name)


@contextlib.contextmanager
def processes(folder: Path) -> Iterator[Processes]:
    folder.mkdir(parents=True, exist_ok=True)
    started = Processes(folder)
    try:
        yield started
    finally:
        started.stop_all()
