"""The protocol on disk: records appear whole, a name is taken once, a process is never mistaken for another."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet import records
from trainmaster.cluster.kubelet.records import Failed, Step


def myself() -> records.Identity:
    proc = os.open("/proc", os.O_RDONLY)
    try:
        return records.identity_of_caller(proc)
    finally:
        os.close(proc)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    records.write(str(tmp_path), "x.json", {"code": 3})

    assert {"code": 3} == records.read(str(tmp_path), "x.json")
    assert ["x.json"] == [entry.name for entry in tmp_path.iterdir()]


@pytest.mark.parametrize("content", [
    pytest.param(None, id="there is none"),
    pytest.param("", id="it is empty"),
    pytest.param("{", id="it is torn"),
    pytest.param("[]", id="it is something else"),
])
def test_what_is_no_record_is_none(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "x.json").write_text(content)

    assert records.read(str(tmp_path), "x.json") is None


def test_a_name_is_claimed_once(tmp_path: Path) -> None:
    assert (True, False) == tuple(records.claim(str(tmp_path), "x.json", {"who": who}) for who in (1, 2))
    assert {"who": 1} == records.read(str(tmp_path), "x.json")


def test_a_claim_in_a_directory_that_is_gone_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        records.claim(str(tmp_path / "gone"), "x.json", {})


def test_a_living_process_is_found_by_its_record() -> None:
    pidfd = records.open_process(dict(myself()))

    assert pidfd is not None
    os.close(pidfd)


@pytest.mark.parametrize("change", [
    pytest.param({"start": 1}, id="the pid was given to another since"),
    pytest.param({"boot": "another"}, id="the machine was started again since"),
    pytest.param({"pid": "x"}, id="no record of ours"),
    pytest.param({"pid": 2**22 + 7}, id="no such process"),
])
def test_another_process_is_not_mistaken_for_it(change: dict[str, object]) -> None:
    assert records.open_process({**myself(), **change}) is None


def test_a_process_that_ended_is_not_found(sleeper: subprocess.Popen[bytes]) -> None:
    proc = os.open("/proc", os.O_RDONLY)
    record = {**myself(), "pid": sleeper.pid, "start": records._start_time(sleeper.pid, proc)}
    os.close(proc)
    alive = records.open_process(record)
    assert alive is not None
    os.close(alive)

    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)      # a zombie: ended, not yet collected

    assert records.open_process(record) is None


def test_a_step_says_during_what_the_kernel_refused() -> None:
    with pytest.raises(Failed) as caught, Step("make the bridge"):
        raise OSError(95, "Operation not supported")

    assert ("make the bridge", 95) == (caught.value.step, caught.value.number)
    assert str(caught.value) == str(Failed.from_message(caught.value.as_message()))
