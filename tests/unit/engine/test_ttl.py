"""When the finished job itself goes."""

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World

from trainmaster.engine.actions import normal


def ended(seconds: int | None, *, well: bool = True, **policy: object) -> World:
    given = policy if seconds is None else {"ttlSecondsAfterFinished": seconds, **policy}
    it = World(tfjob(roles={"Worker": (1, "ExitCode")}, policy=given))
    it.settle()
    if well:
        it.succeed()
    else:
        it.fail(code=1)
    it.look()
    return it


@pytest.mark.parametrize("well", [pytest.param(True, id="succeeded"), pytest.param(False, id="failed for good (B-09)")])
def test_it_goes_to_the_second(well: bool) -> None:
    it = ended(60, well=well)
    it.pass_time(59)
    assert "delete job" not in it.writes

    it.pass_time(1)
    assert it.gone
    assert normal("SuccessfulDeleteJob", "Deleted job: mnist") == it.events[-1]


def test_without_one_it_stays() -> None:
    it = ended(None)
    it.pass_time(10**8)

    assert not it.gone
    assert it.plan().look_again_at is None


def test_with_0_it_goes_at_once() -> None:
    it = ended(0)
    it.settle()

    assert it.gone


def test_it_can_be_set_when_the_job_is_over() -> None:
    it = ended(None)
    it.pass_time(100)
    it.edit(runPolicy={"ttlSecondsAfterFinished": 60})
    it.settle()

    assert it.gone


def test_a_running_job_does_not_age() -> None:
    it = World(tfjob(policy={"ttlSecondsAfterFinished": 1}))
    it.settle()
    it.pass_time(1000)

    assert not it.gone


def test_an_end_that_lies_in_the_future_is_waited_for() -> None:
    """The clock of whoever wrote it was ahead of ours."""
    it = ended(60)
    it.now = it.now.replace(hour=1)
    it.settle()

    assert not it.gone
