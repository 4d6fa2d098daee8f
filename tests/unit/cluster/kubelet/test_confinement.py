"""Memory watched by the shim, where the kernel cannot be asked to."""

import os
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet.confinement import Confinement, counts_processes, kills, memory_of_all, pause

MEBI = 1 << 20


@pytest.mark.parametrize(("expected", "room"), [
    pytest.param(0.5, 64 << 30, id="much room: seldom"),
    pytest.param(0.25, 256 * MEBI, id="less room: before it can be filled"),
    pytest.param(0.05, 1 * MEBI, id="hardly any: often"),
    pytest.param(0.05, -1, id="none: the same"),
])
def test_how_long_nothing_can_happen(expected: float, room: int) -> None:
    assert expected == pause(room)


@pytest.mark.parametrize(("expected", "release"), [
    pytest.param(True, "6.14.0-29-generic", id="the first that has it"),
    pytest.param(True, "7.0", id="a later one"),
    pytest.param(False, "6.8.0-31-generic", id="Ubuntu 24.04"),
    pytest.param(False, "5.15.167.4-microsoft-standard-WSL2", id="an old one"),
    pytest.param(False, "strange", id="nothing known"),
])
def test_kernels_that_count_processes_in_namespaces(expected: bool, release: str) -> None:
    assert expected is counts_processes(release)


def test_a_look_is_taken_when_it_is_due_and_tells_an_excess_once() -> None:
    watched = Confinement({"groups": [], "watch": 100 * MEBI, "score": 0, "processes": 0})
    seen = iter([10 * MEBI, 101 * MEBI])

    def used(_enough: int) -> int:
        return next(seen)

    assert 0.0 == watched.wait(7.0)
    assert not watched.exceeded(7.0, used)
    assert pytest.approx(90 / 1024) == watched.wait(7.0)
    assert not watched.exceeded(7.05, used), "it is not time yet"
    assert watched.exceeded(8.0, used)
    assert (None, False, True) == (watched.wait(9.0), watched.exceeded(9.0, used), watched.killed())


def test_without_a_limit_nothing_is_looked_at() -> None:
    free = Confinement({"groups": [], "watch": 0, "score": 0, "processes": 0})

    assert (None, False, False) == (free.wait(0.0), free.exceeded(0.0), free.killed())


@pytest.mark.parametrize(("expected", "text"), [
    pytest.param(1, b"low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\noom_group_kill 1\n", id="the second version"),
    pytest.param(2, b"oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", id="the first version"),
    pytest.param(0, b"oom_kill_disable 0\nunder_oom 0\n", id="a kernel that does not count"),
])
def test_kills_are_counted(expected: int, text: bytes) -> None:
    assert expected == kills(text)


def test_memory_is_bounded_cheaply_and_measured_when_it_matters() -> None:
    """The bound counts what processes share once for each of them, so it is never below the measure."""
    own = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    assert memory_of_all(1 << 60) >= memory_of_all(0) > 0
    assert memory_of_all(1 << 60) > own
