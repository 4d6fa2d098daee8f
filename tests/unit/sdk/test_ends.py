"""Bad ends: which was first, and which followed from it."""

from datetime import UTC, datetime, timedelta

import pytest

from trainmaster.api.meta import Object
from trainmaster.api.policy import EndedReplica
from trainmaster.sdk.ends import End, ends_of, remedy, told

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def end(name: str, seconds: float = 0, code: int = 1, words: str = "") -> End:
    return End(name, code, "Error", at=NOON + timedelta(seconds=seconds), last_words=words)


@pytest.mark.parametrize(("other", "sentence"), [
    pytest.param(end("b", 30, 143),
                 "b failed 30 s later: exit code 143 (killed by SIGTERM); it was stopped, a consequence",
                 id="stopped by a signal"),
    pytest.param(end("b", 0.2, 1, "Connection reset by peer"),
                 "b failed in the same second: exit code 1; it lost its peers, a consequence", id="a lost connection"),
    pytest.param(end("b", 1800, 1, "NCCL WARN Timeout"),
                 "b failed 1800 s later: exit code 1; it lost its peers, a consequence", id="a collective, much later"),
    pytest.param(end("b", 5), "b failed 5 s later: exit code 1; perhaps a consequence", id="soon after"),
    pytest.param(end("b", 5000), "b failed 5000 s later: exit code 1", id="long after"),
])
def test_what_followed(other: End, sentence: str) -> None:
    assert sentence == list(told([end("a"), other]))[-1]


def test_the_first_is_told_with_its_last_words() -> None:
    words = "\n".join(f"line {number}" for number in range(20))

    assert ["a failed first: exit code 137 (killed by SIGKILL, often for lack of memory), OOMKilled, on node vm",
            "its last words:", *(f"  line {number}" for number in range(10, 20)),
            remedy("", "OOMKilled")] == list(
        told([End("a", 137, "OOMKilled", node="vm", last_words=words)]))


@pytest.mark.parametrize(("reason", "head"), [
    pytest.param("Error", "its last words:", id="a program that failed"),
    pytest.param("Evicted", "the node says:", id="a pod that was evicted"),
    pytest.param("StartError", "the node says:", id="a program that never ran"),
])
def test_who_speaks(reason: str, head: str) -> None:
    assert head == list(told([End("a", 143, reason, last_words="x")]))[1]


def test_an_evicted_pod_is_told_by_the_node_and_not_by_the_signal() -> None:
    pod = failed("a", 1, 143)
    pod["status"] |= {"reason": "Evicted", "message": "too much disk. "}

    assert ["a failed first: too much disk., Evicted, on node vm"] == list(told(ends_of([], [pod])))


def failed(name: str, seconds: int, code: int) -> Object:
    finished = f"2026-01-01T12:00:{seconds:02}Z"
    state = {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": finished}}
    return {"metadata": {"name": name, "uid": f"uid of {name}"}, "spec": {"nodeName": "vm"},
            "status": {"phase": "Failed", "containerStatuses": [{"name": "t", "state": state}]}}


def test_pods_that_are_gone_and_pods_that_are_there_are_put_in_order_and_none_is_counted_twice() -> None:
    gone = EndedReplica(pod="b", uid="uid of b", exit_code=2, finished_at=NOON + timedelta(seconds=5))
    found = ends_of([gone], [failed("c", 7, 3), failed("a", 1, 4), failed("b", 5, 2)])

    assert [("a", 4), ("b", 2), ("c", 3)] == [(each.pod, each.exit_code) for each in found]
