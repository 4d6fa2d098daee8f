"""How long a burst of news is waited for."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from trainmaster.operator.pace import LONGEST, NOW, SHORTEST, Pace
from trainmaster.testing.clock import VirtualClock


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([], SHORTEST, id="nothing is known: not to be noticed"),
        pytest.param([0.002] * 50, SHORTEST, id="an idle server: the same"),
        pytest.param([0.04] * 100, timedelta(seconds=0.2), id="a busy server: as long as a few of its answers"),
        pytest.param([10.0] * 100, LONGEST, id="a server in trouble: not for ever"),
        pytest.param([1.0] * 50 + [0.001] * 50, SHORTEST, id="it is over"),
        pytest.param([0.002] * 50 + [0.1], timedelta(seconds=0.108), id="one slow answer counts for a part"),
    ],
)
def test_a_moment(answers: Sequence[float], expected: timedelta) -> None:
    pace = Pace()
    for seconds in answers:
        pace.answered(seconds)

    assert abs(pace.moment - expected) < timedelta(milliseconds=1)


async def test_an_idle_server_is_written_to_at_once() -> None:
    pace, clock = Pace(), VirtualClock()

    assert [NOW, NOW] == [pace.until_due("job", clock), pace.until_due("job", clock, slight=True)]


async def test_a_busy_server_is_written_to_once_in_a_moment() -> None:
    pace, clock = Pace(), VirtualClock()
    for _ in range(100):
        pace.answered(0.04)    # a moment is 0.2 seconds

    def waits() -> list[float]:
        return [round(pace.until_due("job", clock, slight=slight).total_seconds(), 2) for slight in (False, True)]

    seen = waits()              # both begin to wait
    await clock.advance(0.2)
    seen += waits()
    pace.wrote("job", clock)
    seen += waits()
    await clock.advance(5)
    seen += waits()

    assert [0.2, 0.2, 0, 0, 0.2, 0.2, 0, 0] == seen


@pytest.mark.parametrize(("others", "expected"), [
    pytest.param(0, 0.2, id="alone: as everything else"),
    pytest.param(20, 0.2, id="few others: the same"),
    pytest.param(120, 4.0, id="many: as long as writing those beyond a few takes"),
    pytest.param(5000, 15.0, id="very many: not for ever"),
])
async def test_slight_changes_of_many_jobs_take_turns(others: int, expected: float) -> None:
    pace, clock = Pace(), VirtualClock()
    for _ in range(100):
        pace.answered(0.04)
    for number in range(others):
        pace.until_due(f"job-{number}", clock, slight=True)

    waits = pace.until_due("job", clock, slight=True).total_seconds()
    for number in range(others):
        pace.settled(f"job-{number}")

    assert (expected, 0.2) == (round(waits, 2), pace.until_due("job", clock, slight=True).total_seconds())
