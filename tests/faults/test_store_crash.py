"""Kill a process that writes to a store, again and again: nothing acknowledged is lost, no revision comes twice.

Only a real process can show this; a few kills are in the fast tier, the many in the tier of faults.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.store_witness import Witness

ROOT = Path(__file__).parents[2]


class Victims:
    """Children that write until they die."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.store_child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._reports = self._process.stdin, self._process.stdout

    def start(self, **order: object) -> int:
        self._orders.write(json.dumps(order, default=str) + "\n")
        self._orders.flush()
        word, pid = self._reports.readline().split()
        assert word == "pid"
        return int(pid)

    def reports(self) -> Iterator[list[str]]:
        """What the child says, to its end."""
        for line in self._reports:
            words = line.split()
            yield words
            if words[0] == "end":
                return

    def close(self) -> None:
        """A test that failed may have left a child that writes on; it is in the same process group."""
        self._orders.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=60)
        self._reports.close()


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    victims = Victims()
    yield victims
    victims.close()


def look_at_copy(witness: Witness) -> None:
    """Open a copy, so that the next victim meets the file as the last one left it."""
    copy = witness.path.parent.with_name("copy")
    shutil.copytree(witness.path.parent, copy)
    try:
        witness.look(copy / witness.path.name)
    finally:
        shutil.rmtree(copy)


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(25, id="a few times"),
        pytest.param(600, id="many times", marks=pytest.mark.faults),
        pytest.param(2500, id="as often as the design asks for", marks=[pytest.mark.faults, pytest.mark.full]),
    ],
)
def test_killed_at_any_moment(victims: Victims, tmp_path: Path, kills: int) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    folder = tmp_path / "home"
    folder.mkdir()
    witness = Witness(folder / "cluster.db")
    for number in range(kills):
        pid = victims.start(path=witness.path, seed=chance.randrange(1 << 32))
        patience = chance.choice([0, 0, 1, 5, 20, 60])  # acknowledgements before the kill: none is while it opens
        if not patience:
            os.kill(pid, signal.SIGKILL)
        for words in victims.reports():
            if words[0] == "end":
                assert words[1] == str(-signal.SIGKILL), f"life {number} ended by itself"
                break
            witness.hear(int(words[1]), words[2], words[3], int(words[4]))
            patience -= 1
            if patience == 0:
                os.kill(pid, signal.SIGKILL)
        look_at_copy(witness)


@pytest.mark.parametrize(
    "share",
    [
        pytest.param(12, id="some of them"),
        pytest.param(1, id="all of them", marks=pytest.mark.faults),
    ],
)
def test_killed_at_every_step(victims: Victims, tmp_path: Path, share: int) -> None:
    """Every step by name, at its first, middle and last time, before it happens and when half of it has."""
    folder = tmp_path / "clean"
    folder.mkdir()
    victims.start(path=folder / "cluster.db", seed=1, story=True)
    reports = list(victims.reports())
    assert ["end", "0"] == reports[-1]
    steps = {" ".join(words[2:]): int(words[1]) for words in reports if words[0] == "step"}
    deaths = [
        {"step": step, "occurrence": occurrence, "torn": torn}
        for step, count in sorted(steps.items())
        for occurrence in sorted({1, 2, count // 2, count - 1, count})
        for torn in (False, True)
        if 0 < occurrence and ("write" in step or not torn)
    ]
    for number, death in enumerate(deaths):
        if number % share:
            continue
        folder = tmp_path / f"home-{number}"
        folder.mkdir()
        witness = Witness(folder / "cluster.db")
        victims.start(path=witness.path, seed=1, story=True, death=death)
        for words in victims.reports():
            if words[0] == "ack":
                witness.hear(int(words[1]), words[2], words[3], int(words[4]))
        look_at_copy(witness)
        shutil.rmtree(folder)
