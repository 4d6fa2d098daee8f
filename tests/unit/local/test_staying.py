"""Staying with a cluster: until a signal, or until a part ends by itself."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmaster.local.home import Home
from trainmaster.local.staying import stay

# A part that claims its place, says so, and lives until its standard input is closed.
PART = """
import sys
from trainmaster.local import parts
from trainmaster.local.home import Home
assert parts.Standing(parts.control_plane(Home.from_environment()), None).claim()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.make()
    return found


@pytest.fixture
def part(home: Home) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "TRAINMASTER_HOME": str(home.path)}
    with subprocess.Popen([sys.executable, "-c", PART], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        yield process
        process.kill()


def test_a_signal_ends_it_and_is_as_before_afterwards(home: Home, part: subprocess.Popen[str]) -> None:  # noqa: ARG001
    before = signal.getsignal(signal.SIGTERM)

    assert "" == stay(home, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert before == signal.getsignal(signal.SIGTERM)


def test_a_part_that_ends_by_itself_is_named(home: Home, part: subprocess.Popen[str]) -> None:
    assert part.stdin is not None
    part.stdin.close()

    assert "control-plane" == stay(home, lambda: None)
