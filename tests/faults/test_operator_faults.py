"""Lost answers, refused and repeated requests, old lists, torn watches: the same end as on a good day.

Seeds are in the names of the tests: a failing one is run again by its name. The few here are the fixed slice; the long
run is marked `faults`; with FULL=1 it injects more than 100,000 faults, or fails. How many is said at its end.
"""

import os
from collections.abc import Callable

import pytest
from tests.faults.conftest import FAULTS, PROMISED, Injected, is_short
from tests.faults.job_stories import CASES, DEPENDS_ON_TIME, Case, deletion_at_once
from tests.faults.test_operator_crashes import settings
from tests.unit.operator.stage import Stage, stage

from trainmaster.api.meta import Object
from trainmaster.testing.faults import nothing, seeded

STEADY = [case for case in CASES if case.story not in DEPENDS_ON_TIME]
# One seed for each story in the fast tier, for every few of them; others in the long run.
FEW, MANY = range(1, 2), range(2, 44 if os.environ.get("FULL") == "1" else 4)
# The part of all requests that go wrong, in turn: few and many find different things.
RATES = (0.25, 0.4, 0.5)
# Longer than any back-off that builds up in a story.
PATIENCE = 20.0


async def at_rest(case: Case, seed: int | None) -> tuple[int, Object]:
    """How much went wrong, and how everything is in the end."""
    async with stage(settings(case), collects=case.deletes, pace=PATIENCE) as it:
        it.begin(plan=nothing if seed is None else seeded(seed, rate=RATES[(seed - 1) % len(RATES)]))
        await it.apply(case.thing)
        if case.story is not deletion_at_once:
            await it.settle()
        await case.story(it)
        await it.settle()
        await good_day(it)
        return sum(len(life.injected) for life in it.lives), await it.picture()


async def good_day(it: Stage) -> None:
    """Nothing goes wrong any more, and everything has time to be made good."""
    it.lives[-1].plan = nothing
    await it.clock.advance(minutes=40)
    await it.settle()


CLEAN: dict[str, Object] = {}


async def on_a_good_day(case: Case) -> Object:
    """How it ends; asked for with every seed, and always the same."""
    if named(case) not in CLEAN:
        _, CLEAN[named(case)] = await at_rest(case, None)
    return CLEAN[named(case)]


def in_time(clean: Object, end: Object, case: Case) -> Object:
    """What a good day may have that a bad one lacks: a deadline can come before the job was ever seen to run."""
    def conditions(picture: Object) -> list[Object]:
        return picture["job"]["status"]["conditions"] if picture["job"] else []

    if not case.name.startswith("deadline") or any(each["type"] == "Running" for each in conditions(end)):
        return clean
    lacking = [each for each in conditions(clean) if each["type"] != "Running"]
    return {**clean, "job": {**clean["job"], "status": {**clean["job"]["status"], "conditions": lacking}}}


def named(case: Case) -> str:
    return f"{case.thing['kind']}: {case.name}"


@pytest.mark.parametrize("seed", FEW)
@pytest.mark.parametrize("case", STEADY[::3], ids=named)
async def test_whatever_goes_wrong_the_end_is_the_same(case: Case, seed: int) -> None:
    clean = await on_a_good_day(case)
    injected, end = await at_rest(case, seed)

    assert injected or case.deletes
    assert in_time(clean, end, case) == end


@pytest.mark.faults
@pytest.mark.parametrize("seed", MANY)
@pytest.mark.parametrize("case", STEADY, ids=named)
async def test_whatever_goes_wrong_for_long(case: Case, seed: int, record_property: Callable[[str, str], None]) -> None:
    """As above, many times: the cheap slice finds what is common, this what is rare."""
    clean = await on_a_good_day(case)
    injected, end = await at_rest(case, seed)
    record_property(FAULTS, Injected(seed, injected, len(STEADY) * len(MANY)).text)

    assert in_time(clean, end, case) == end


@pytest.mark.parametrize(("found", "full", "short"), [
    pytest.param([Injected(2, PROMISED, 2), Injected(3, 1, 2)], True, False, id="as much as was promised"),
    pytest.param([Injected(2, 1, 2), Injected(3, 1, 2)], True, True, id="less"),
    pytest.param([Injected(2, 1, 2)], True, False, id="less, by a part of the runs"),
    pytest.param([Injected(2, 1, 1)], False, False, id="less, and nobody promised anything"),
    pytest.param([], True, False, id="no run at all"),
])
def test_the_long_run_fails_if_too_little_went_wrong(found: list[Injected], full: bool, short: bool) -> None:
    assert short == is_short(found, full=full)
