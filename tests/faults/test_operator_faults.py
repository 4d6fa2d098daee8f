"""Lost answers, refused and repeated requests, old lists, torn watches: the same end as on a good day.

Seeds are in the names of the tests: a failing one is run again by its name. The few here are the fixed slice; the long
run is marked `faults`.
"""

import pytest
from tests.faults.test_operator_crashes import DELETING, STORIES, Story, a_lost_pod, deletion_at_once, hasty_pause
from tests.unit.operator.stage import Stage, stage

from trainmaster.api.meta import Object
from trainmaster.testing.faults import nothing, seeded

FEW, MANY = range(1, 3), range(3, 150)
# Longer than any back-off that builds up in a story.
PATIENCE = 20.0
# How these two end depends on when the operator looks: what it misses is gone, on a good day too.
DEPENDS_ON_TIME = (a_lost_pod, hasty_pause)


async def at_rest(thing: Object, story: Story, seed: int | None) -> tuple[int, Object]:
    """How much went wrong, and how everything is in the end."""
    collects = story in DELETING or "ttlSecondsAfterFinished" in thing["spec"]["runPolicy"]
    async with stage(collects=collects, pace=PATIENCE) as it:
        it.begin(plan=nothing if seed is None else seeded(seed, rate=0.25))
        await it.apply(thing)
        if story is not deletion_at_once:
            await it.settle()
        await story(it)
        await it.settle()
        await good_day(it)
        return len(it.lives[0].injected), await it.picture()


async def good_day(it: Stage) -> None:
    """Nothing goes wrong any more, and everything has time to be made good."""
    it.lives[-1].plan = nothing
    await it.clock.advance(minutes=40)
    await it.settle()


CASES = [case for case in STORIES if case.values[1] not in DEPENDS_ON_TIME]


@pytest.mark.parametrize("seed", FEW)
@pytest.mark.parametrize(("thing", "story"), CASES)
async def test_whatever_goes_wrong_the_end_is_the_same(thing: Object, story: Story, seed: int) -> None:
    _, clean = await at_rest(thing, story, None)
    injected, end = await at_rest(thing, story, seed)

    assert injected or story in DELETING
    assert clean == end


@pytest.mark.faults
@pytest.mark.parametrize("seed", MANY)
@pytest.mark.parametrize(("thing", "story"), CASES)
async def test_whatever_goes_wrong_for_long(thing: Object, story: Story, seed: int) -> None:
    """As above, many times: the cheap slice finds what is common, this what is rare."""
    _, clean = await at_rest(thing, story, None)
    _, end = await at_rest(thing, story, seed)

    assert clean == end
