"""Which ended containers come back, and when: the kubelet's table."""

from datetime import UTC, datetime, timedelta

import pytest

from trainmaster.cluster.kubelet.observed import Attempt, Exit
from trainmaster.cluster.kubelet.restarts import comes_back, delay, due, next_level

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("expected", "policy", "code"), [
    pytest.param(True, "Always", 0, id="Always restarts success"),
    pytest.param(True, "Always", 1, id="Always restarts failure"),
    pytest.param(False, "OnFailure", 0, id="OnFailure leaves success alone"),
    pytest.param(True, "OnFailure", 137, id="OnFailure restarts a kill"),
    pytest.param(False, "Never", 1, id="Never restarts nothing"),
])
def test_which_ends_come_back(expected: bool, policy: str, code: int) -> None:
    assert expected is comes_back(policy, code)


@pytest.mark.parametrize(("expected", "level"), [
    pytest.param(0, 1, id="the first restart is immediate"),
    pytest.param(10, 2, id="the second waits ten seconds"),
    pytest.param(20, 3, id="then twice as long"),
    pytest.param(160, 6, id="and again"),
    pytest.param(300, 7, id="but no more than five minutes"),
    pytest.param(300, 5000, id="however often it fails"),
])
def test_the_wait_doubles(expected: int, level: int) -> None:
    assert timedelta(seconds=expected) == delay(level)


@pytest.mark.parametrize(("expected", "minutes", "level"), [
    pytest.param(1, 1, 0, id="a first quick end counts one"),
    pytest.param(5, 9, 4, id="nine minutes are still quick"),
    pytest.param(0, 11, 4, id="eleven minutes make all good"),
])
def test_a_long_run_resets_the_count(expected: int, minutes: int, level: int) -> None:
    ended = Attempt(3, NOON, Exit(1, NOON + timedelta(minutes=minutes)), level)

    assert expected == next_level(ended)


def test_the_wait_begins_at_the_end_not_at_the_start() -> None:
    ended = Attempt(1, NOON, Exit(1, NOON + timedelta(seconds=30)), level=1)

    assert NOON + timedelta(seconds=40) == due(ended)
