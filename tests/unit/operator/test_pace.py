"""How long a burst of news is waited for."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from trainmaster.operator.pace import LONGEST, SHORTEST, Pace


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([], SHORTEST, id="nothing is known: not to be noticed"),
        pytest.param([0.002] * 50, SHORTEST, id="an idle server: the same"),
        pytest.param([0.1] * 100, timedelta(seconds=0.5), id="a busy server: as long as a few of its answers"),
        pytest.param([10.0] * 100, LONGEST, id="a server in trouble: not for ever"),
        pytest.param([1.0] * 50 + [0.001] * 50, SHORTEST, id="it is over"),
        pytest.param([0.002] * 50 + [0.5], timedelta(seconds=0.508), id="one slow answer counts for a part"),
    ],
)
def test_a_moment(answers: Sequence[float], expected: timedelta) -> None:
    pace = Pace()
    for seconds in answers:
        pace.answered(seconds)

    assert abs(pace.moment - expected) < timedelta(milliseconds=1)
