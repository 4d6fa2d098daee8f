"""What a command leaves on the machine is found, by its sort; what others do meanwhile is not taken for its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.testing import census

ROOT = Path(__file__).parents[3]
COUNTED = """
import pathlib, sys
sys.path.insert(0, {tools!r})
import counted
counted.PATIENCE, counted.LOOK_EVERY = {patience}, 0.05
holder = counted.census.holder
def seen(*asked):
    found = holder(*asked)
    pathlib.Path({seen!r}).touch() if found else None
    return found
counted.census.holder = seen
sys.exit(counted.main(sys.argv[1:]))
"""
LISTEN = "import socket, time; s = socket.create_server(({host!r}, 0)); time.sleep(0.5)"
OPEN = """
import os, socket, time
door = socket.create_server(("0.0.0.0", 0))
while not os.path.exists({seen!r}): time.sleep(0.02)
"""
HOLD = """
import os, socket, time
door = socket.create_server(("127.0.0.1", 0))
os.fork() or time.sleep(60)
"""


def counted(
    *command: str, patience: float = 10.0, within: tuple[str, ...] = (), seen: Path = Path(os.devnull)
) -> tuple[int, str]:
    """Its code and what it said; the file `seen` is made as soon as it knows who holds a door."""
    program = COUNTED.format(tools=str(ROOT / "tools"), patience=patience, seen=str(seen))
    done = subprocess.run([*within, sys.executable, "-c", program, *command], capture_output=True, text=True,
                          timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", [
    pytest.param(("true",), id="one that does nothing"),
    pytest.param(("sh", "-c", "sleep 0.2 & exit 0"), id="a child that ends in time"),
    pytest.param(("sh", "-c", "mkdir $TMPDIR/pytest-of-x"), id="what pytest keeps"),
    pytest.param((sys.executable, "-c", LISTEN.format(host="127.0.0.1")), id="a listener of this machine alone"),
])
def test_a_command_that_leaves_nothing(command: tuple[str, ...]) -> None:
    code, said = counted(*command)

    assert (0, True) == (code, said.startswith("Nothing is left behind")), said


@pytest.mark.parametrize(("sort", "command"), [
    pytest.param("processes", ("sh", "-c", "setsid sleep 60 > /dev/null 2>&1 & exit 0"), id="a daemon"),
    pytest.param("temporary files", ("sh", "-c", "touch $TMPDIR/tmpx"), id="a temporary file"),
    pytest.param("sockets", (sys.executable, "-c", HOLD), id="a socket that somebody holds"),
])
def test_a_command_that_leaves_something(sort: str, command: tuple[str, ...]) -> None:
    code, said = counted(*command, patience=0.5)

    assert (1, True) == (code, sort in said), said


def test_an_open_door_is_told_though_it_is_closed_in_the_end(tmp_path: Path) -> None:
    # In a network of its own: no other machine is there, and the count around this very run does not see the door.
    seen = tmp_path / "seen"
    program = OPEN.format(seen=str(seen))
    code, said = counted(sys.executable, "-c", program, within=("unshare", "-rn"), seen=seen)

    assert (1, True) == (code, "listeners that other machines can reach" in said), said


def test_what_others_start_meanwhile_is_theirs(tmp_path: Path) -> None:
    go = tmp_path / "go"
    other = subprocess.Popen(["sh", "-c", f"while ! test -e {go}; do sleep 0.05; done; exec sleep 60"])
    try:
        code, said = counted("touch", str(go))
    finally:
        other.kill()
        other.wait()

    assert 0 == code, said


def test_the_code_of_the_command_is_passed_on() -> None:
    assert 3 == counted("sh", "-c", "exit 3")[0]


def test_groups_that_go_away_meanwhile_are_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census, "GROUPS", tmp_path)
    (tmp_path / "above" / "trainmaster-a" / "trainmaster-b").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    found = []
    for group in census._groups():
        found.append(Path(group).name)
        shutil.rmtree(group)

    assert ["trainmaster-a"] == found
