"""Die after any write, start again, arrive at the same end: the whole operator, on the embedded server.

The writes are those of a clean run, so there is no list to keep. Nothing may be there twice, left over, lost or counted
twice, and an operator at rest writes nothing. Events are left out: they are courtesy, told again or not at all, and
dying after one is dying after the write before it. By default every few writes of each story, others in the next one;
all of them with FULL=1, and always in the engine alone (`test_engine_crashes`).
"""

import os

import pytest
from tests.faults.job_stories import CASES, Case, deletion_at_once
from tests.unit.operator.stage import Stage, stage

from trainmaster.api.meta import Object
from trainmaster.operator.config import Settings
from trainmaster.testing.faults import Write

STEP = 1 if os.environ.get("FULL") == "1" else 8


def settings(case: Case) -> Settings:
    return Settings(kinds=(case.thing["kind"],), site=case.site)


async def at_rest(case: Case, dies_after: int | None) -> tuple[list[Write], Object]:
    """What the first life wrote, and how everything is in the end."""
    async with stage(settings(case), collects=case.deletes) as it:
        it.begin(dies_after)
        await it.apply(case.thing)
        if case.story is not deletion_at_once:
            await it.settle()
        await case.story(it)
        await it.settle()
        picture = await it.picture()
        await quiet(it)
        return it.writes, picture


async def quiet(it: Stage) -> None:
    """An operator at rest writes nothing, and neither does one that is started then."""
    before = len(it.lives[-1].writes)
    await it.clock.advance(minutes=5)
    assert before == len(it.lives[-1].writes), it.lives[-1].writes[before:]
    await it.end()
    it.begin()
    await it.clock.advance(5)
    assert [] == it.lives[-1].writes


@pytest.mark.parametrize(("case", "first"), [
    pytest.param(case, number % STEP, id=f"{case.thing['kind']}: {case.name}") for number, case in enumerate(CASES)
])
async def test_dying_after_any_write_ends_in_the_same_state(case: Case, first: int) -> None:
    writes, clean = await at_rest(case, None)

    points = [number for number, write in enumerate(writes, start=1) if "/events" not in write.path]
    for number in points[first::STEP]:
        _, end = await at_rest(case, number)
        assert clean == end, f"died after write {number}: {writes[number - 1]}"
