"""The log of a part that runs for long."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmaster.local import part_logs
from trainmaster.local.part_logs import LOOK_EVERY, PartLog
from trainmaster.testing.clock import VirtualClock


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_logs, "MOST_LOGGED", 10)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "node.log"


@pytest.fixture
def handles(log: Path) -> Iterator[list[int]]:
    """Standard output and error, as they are handed to a part."""
    made = [os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)]
    made.append(os.dup(made[0]))
    yield made
    for handle in made:
        os.close(handle)


def test_a_log_that_grows_is_turned_over_while_its_part_runs(log: Path, handles: list[int]) -> None:
    kept = PartLog(log, handles)
    for number in range(5):
        for handle in handles:
            os.write(handle, b"line %d\n" % number)
        kept.tend()
    os.write(handles[0], b"line 5\n")

    assert {"node.log": "line 5\n", "node.log.1": "line 4\nline 4\n"} == {
        path.name: path.read_text() for path in log.parent.iterdir()}


def test_one_that_is_small_stays(log: Path, handles: list[int]) -> None:
    os.write(handles[0], b"line\n")
    PartLog(log, handles).tend()

    assert ["node.log"] == [path.name for path in log.parent.iterdir()]


def test_one_that_somebody_removed_is_there_again(log: Path, handles: list[int]) -> None:
    kept = PartLog(log, handles)
    log.unlink()
    kept.tend()
    os.write(handles[1], b"line\n")

    assert "line\n" == log.read_text()


def test_a_part_that_prints_elsewhere_has_no_log_to_turn_over(handles: list[int], tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.write_text("longer than it may be")
    PartLog(other, handles).tend()
    PartLog(tmp_path / "none.log", handles).tend()

    assert {"node.log", "other.log"} == {path.name for path in tmp_path.iterdir()}


async def test_it_is_looked_at_again_and_again(log: Path, handles: list[int]) -> None:
    clock = VirtualClock()
    tending = asyncio.create_task(PartLog(log, handles).kept_short(clock))
    await clock.settle()
    for _ in range(3):
        os.write(handles[0], b"longer than it may be\n")
        await clock.advance(LOOK_EVERY)
        assert b"" == log.read_bytes()
    tending.cancel()
