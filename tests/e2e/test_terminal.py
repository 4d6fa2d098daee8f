"""`run` on a terminal: the live view, Ctrl-C, and a control plane that goes away and comes back."""

import contextlib
import fcntl
import os
import pty
import select
import subprocess
import termios
import time

import pytest
from tests.e2e.person import Person

TICKS = """
import time
for tick in range(2000):
    print(f"tick {tick}/2000", flush=True)
    time.sleep(0.1)
"""
SHORT = TICKS.replace("2000", "60")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, person: Person, *arguments: str) -> None:
        self._screen, theirs = pty.openpty()
        environment = {**person.environment, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        self.process = subprocess.Popen(
            [*person.prefix, str(person.command), *arguments], stdin=theirs, stdout=theirs, stderr=theirs,
            env=environment, cwd=person.home, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),       # its controlling terminal
        )
        os.close(theirs)
        self.seen = ""

    def until(self, text: str, seconds: float = 120) -> str:
        deadline = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < deadline:
            if not select.select([self._screen], [], [], 1)[0]:
                continue
            try:
                self.seen += os.read(self._screen, 65536).decode(errors="replace")
            except OSError:
                break
        assert text in self.seen, self.seen[-3000:]
        return self.seen

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def close(self) -> int:
        with contextlib.suppress(OSError):
            while select.select([self._screen], [], [], 60)[0] and (more := os.read(self._screen, 65536)):
                self.seen += more.decode(errors="replace")
        code = self.process.wait(60)
        os.close(self._screen)
        return code


@pytest.fixture
def folder_of(person: Person) -> str:
    return str(person.folder("work", {"ticks.py": TICKS, "short.py": SHORT}))


def test_ctrl_c_asks_and_the_job_goes_on_or_is_stopped(person: Person, folder_of: str) -> None:
    detached = Terminal(person, "run", f"{folder_of}/ticks.py", "--workers", "2")
    detached.until("tick 3/2000")
    detached.until("REPLICA")
    detached.type("\x03")
    detached.until("[d]etach")
    detached.type("d\n")

    assert 130 == detached.close()
    assert "the job goes on" in detached.seen

    stopped = Terminal(person, "run", f"{folder_of}/ticks.py", "--workers", "2")
    stopped.until("runs already")
    stopped.until("tick 3/2000")
    stopped.type("\x03")
    stopped.until("[d]etach")
    stopped.type("s\n")

    assert 130 == stopped.close()
    assert "stopped and removed" in stopped.seen
    assert "deleted before it ended" not in stopped.seen

    twice = Terminal(person, "run", f"{folder_of}/ticks.py")
    twice.until("tick 3/2000")
    twice.type("\x03")
    twice.until("[d]etach")
    twice.type("\x03")

    assert 130 == twice.close()
    assert "stopped and removed" in twice.seen


def test_who_reads_only_the_first_lines_is_not_kept(person: Person, folder_of: str) -> None:
    said = person.run("sh", "-c", f"{person.command} run {folder_of}/ticks.py | head -n 2", timeout=110)
    after = person.trainmaster("get", "jobs").stdout

    assert ["[worker-0] tick 0/2000", "[worker-0] tick 1/2000"] == said.stdout.splitlines()
    assert "ticks" in after
    assert "bug" not in said.stderr


def test_a_control_plane_that_comes_back_costs_two_sentences_and_no_line(person: Person, folder_of: str) -> None:
    person.trainmaster("up")
    running = subprocess.Popen(
        [*person.prefix, str(person.command), "run", f"{folder_of}/short.py", "--workers", "2"], bufsize=0,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=person.environment, cwd=person.home)
    assert running.stdout is not None
    first = running.stdout.readline()      # without a buffer, in which `communicate` would not look for what follows
    person.kill("control-plane")
    assert 0 == person.trainmaster("up").returncode

    out, err = (each.decode() for each in running.communicate(timeout=300))

    assert 0 == running.returncode, err
    away = "· the control plane does not answer; the replicas go on without it, and are shown again when it is back"
    noted = [line for line in err.splitlines() if "control plane" in line]
    assert noted in ([], [away, "· the control plane is back"])      # a quick one is back before it is missed
    assert "cannot watch" not in err
    lines = (first.decode() + out).splitlines()
    for worker in ("worker-0", "worker-1"):
        assert [f"[{worker}] tick {tick}/60" for tick in range(60)] == [
            line for line in lines if line.startswith(f"[{worker}]")]
