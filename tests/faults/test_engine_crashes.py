"""Die after any write, start again, arrive at the same end: every kind and story, in the engine alone.

The writes are those of a clean run, so there is no list to keep. `test_operator_crashes` does the same with the whole
operator, for fewer points: this is many times faster, that shows that the hands keep the order of the plan.
"""

import pytest
from tests.faults.job_stories import CASES, Case, OnPaper
from tests.unit.operator.stage import plain

from trainmaster.api.meta import Object

# All stories of all kinds together have more; a story that is lost by mistake is noticed here.
POINTS = 3000


async def at_rest(case: Case, dies_after: int | None = None) -> tuple[int, Object]:
    """How much was written, and how everything is in the end."""
    it = OnPaper(case, dies_after)
    if case.story.__name__ != "deletion_at_once":
        await it.settle()
    else:
        it.world.look()
    await case.story(it)
    await it.settle()
    world = it.world
    written = len(world.writes)
    if not world.gone:
        assert not world.look(), "at rest, nothing is written"
    return written, {
        "job": None if world.gone else plain(world.thing),
        "pods": {name: plain(pod) for name, pod in world.pods.items()},
        "services": {name: plain(service) for name, service in world.services.items()},
        "beside": {resource.kind: plain(found) for (resource, _), found in world.beside.items()},
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.thing['kind']}: {case.name}")
async def test_dying_after_any_write_ends_in_the_same_state(case: Case) -> None:
    written, clean = await at_rest(case)

    for number in range(1, written + 1):
        _, end = await at_rest(case, number)
        assert clean == end, f"died after write {number}"


async def test_there_are_as_many_points_as_promised() -> None:
    assert POINTS <= sum([(await at_rest(case))[0] for case in CASES])
