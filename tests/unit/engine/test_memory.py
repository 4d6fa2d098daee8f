"""What is remembered about pods that are gone, and that it stays small."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.api import codec
from trainmaster.api.policy import JobStatus, PostMortem
from trainmaster.engine import memory
from trainmaster.engine.observed import Pod


def ended(index: int = 1, uid: str = "a", code: int | None = 137, **changes: Any) -> Pod:
    return Pod(f"mnist-worker-{index}", uid, "job-1", "worker", index, "Failed", exit_code=code, **changes)


def test_a_pod_is_written_down_once_however_often_it_is_looked_at() -> None:
    once = memory.note_end(PostMortem(), ended(), comes_back=True)

    assert once == memory.note_end(once, ended(), comes_back=True)
    assert 1 == memory.restarts(once)


def test_the_next_pod_of_the_same_index_is_another_restart() -> None:
    known = memory.note_end(PostMortem(), ended(uid="a"), comes_back=True)

    assert 2 == memory.restarts(memory.note_end(known, ended(uid="b"), comes_back=True))


def test_restarts_in_place_are_kept_when_their_pod_goes() -> None:
    assert 4 == memory.restarts(memory.note_end(PostMortem(), ended(restarts=3), comes_back=True))


def test_a_replica_that_does_not_come_back_is_no_restart() -> None:
    assert 0 == memory.restarts(memory.note_end(PostMortem(), ended(), comes_back=False))


def test_only_the_first_and_the_last_ends_are_kept_in_words() -> None:
    known = PostMortem()
    for number in range(100):
        known = memory.note_end(known, ended(uid=str(number)), comes_back=True)

    assert ["0", "1", "2", "3", "4", "95", "96", "97", "98", "99"] == [end.uid for end in known.ended]
    assert 100 == memory.restarts(known)


def test_last_words_are_cut_at_the_front() -> None:
    known = memory.note_end(PostMortem(), ended(last_words="x" * 10_000 + "the end"), comes_back=False)

    assert memory.LAST_WORDS == len(known.ended[0].last_words)
    assert known.ended[0].last_words.endswith("the end")


def test_a_status_with_nothing_to_remember_has_no_field_for_it() -> None:
    assert {} == codec.encode(memory.keep(JobStatus(), PostMortem()))


def test_memory_survives_being_stored() -> None:
    known = memory.note_end(PostMortem(), ended(last_words="Traceback", node="n1"), comes_back=True)
    known = memory.note_completed(known, "Worker", [0, 1, 2, 7])
    status = memory.keep(JobStatus(), known)

    assert status == codec.decode_status(codec.encode(status))


@pytest.mark.parametrize(("numbers", "text"), [
    pytest.param([], "", id="none"),
    pytest.param([3], "3", id="one"),
    pytest.param([0, 1], "0-1", id="a pair is a range"),
    pytest.param([7, 0, 2, 1, 3], "0-3,7", id="in any order"),
    pytest.param([0, 2, 4], "0,2,4", id="with gaps"),
])
def test_indexes_are_written_as_ranges(numbers: list[int], text: str) -> None:
    assert text == memory.ranges(numbers)
    assert frozenset(numbers) == memory.indexes(text)


def test_a_range_beyond_every_job_is_cut_short() -> None:
    assert 10_001 == len(memory.indexes("0-999999999999"))


@given(st.frozensets(st.integers(0, 500)))
@settings(deadline=None)
def test_ranges_lose_nothing(numbers: frozenset[int]) -> None:
    assert numbers == memory.indexes(memory.ranges(numbers))


@pytest.mark.parametrize(("code", "reason", "words"), [
    pytest.param(137, "OOMKilled", "killed: out of memory", id="the node ran out of memory"),
    pytest.param(137, "Error", "killed by SIGKILL", id="a signal is named"),
    pytest.param(143, "Error", "killed by SIGTERM", id="termination"),
    pytest.param(139, "Error", "killed by SIGSEGV", id="segmentation fault"),
    pytest.param(1, "Error", "exited with code 1", id="the program's own code"),
    pytest.param(127, "Error", "the command was not found", id="no such command"),
    pytest.param(255, "Error", "exited with code 255", id="beyond the signals"),
    pytest.param(None, "Evicted", "ended by its node: Evicted", id="evicted"),
    pytest.param(143, "Evicted", "ended by its node: Evicted", id="evicted while it ran: the signal is not the cause"),
    pytest.param(128, "StartError", "could not be started", id="it never ran"),
    pytest.param(None, "Error", "ended without an exit code", id="an end that says nothing"),
    pytest.param(None, "", "ended without an exit code", id="nobody knows"),
])
def test_exit_codes_in_words(code: int | None, reason: str, words: str) -> None:
    assert words == memory.in_words(code, reason)


def test_a_pod_deleted_while_it_ran_says_so() -> None:
    lost = Pod("mnist-worker-1", "a", "job-1", "worker", 1, "Running", deleting=True)

    assert "deleted while it ran" == memory.note_end(PostMortem(), lost, comes_back=True).ended[0].says
