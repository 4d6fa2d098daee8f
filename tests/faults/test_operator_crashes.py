"""Die after any write, start again, arrive at the same end.

The writes are those of a clean run, so there is no list to keep. Nothing may be there twice, left over, lost or counted
twice, and an operator at rest writes nothing. Events are left out: they are courtesy, told again or not at all, and
dying after one is dying after the write before it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import Stage, stage

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object
from trainmaster.testing.faults import Write

Story = Callable[[Stage], Awaitable[None]]


async def success(it: Stage) -> None:
    await it.run()
    await it.settle()
    await it.succeed("*-worker-*")


async def failure(it: Stage) -> None:
    await it.run()
    await it.settle()
    await it.fail("*-worker-1", code=1, message="ValueError: shapes do not match")


async def failure_that_comes_back(it: Stage) -> None:
    await it.run()
    await it.settle()
    await it.fail("*-worker-1", code=137, message="Killed")
    await it.settle()
    await it.run()
    await it.settle()
    await it.fail("*-worker-1", code=143)
    await it.settle()
    await it.run()
    await it.settle()
    await it.succeed()


async def failures_until_the_limit(it: Stage) -> None:
    for _ in range(4):
        await it.run()
        await it.settle()
        await it.fail("*-worker-1", code=137)
        await it.settle()


async def pause(it: Stage) -> None:
    await it.run()
    await it.settle()
    await it.patch(runPolicy={"suspend": True})
    await it.settle()
    await it.patch(runPolicy={"suspend": False})
    await it.settle()
    await it.run()
    await it.settle()
    await it.succeed("*-worker-*")


async def hasty_pause(it: Stage) -> None:
    """Resumed before the old pods are gone."""
    await it.run()
    await it.settle()
    it.hold = True
    await it.patch(runPolicy={"suspend": True})
    await it.settle()
    await it.patch(runPolicy={"suspend": False})
    await it.settle()
    it.hold = False
    await it.settle()
    await it.run()


async def deletion(it: Stage) -> None:
    await it.run()
    await it.settle()
    await it.delete()


async def deletion_at_once(it: Stage) -> None:
    await it.delete()


async def a_long_time(it: Stage) -> None:
    await it.run()
    await it.settle()
    await it.clock.advance(minutes=10)


async def success_and_a_long_time(it: Stage) -> None:
    await success(it)
    await it.settle()
    await it.clock.advance(minutes=10)


async def growth(it: Stage) -> None:
    await it.run()
    await it.settle()
    await it.patch(tfReplicaSpecs={"Worker": {"replicas": 4}})
    await it.settle()
    await it.run()
    await it.settle()
    await it.patch(tfReplicaSpecs={"Worker": {"replicas": 1}})


async def a_lost_pod(it: Stage) -> None:
    """Somebody deletes a running pod."""
    await it.run()
    await it.settle()
    await it.client.delete(PODS, "mnist-worker-1", "default")
    await it.settle()
    await it.run()


DELETING = (deletion, deletion_at_once)


def job(restart: str = "Never", **policy: Any) -> Object:
    return tfjob(roles={"PS": (1, restart), "Worker": (2, restart)}, policy=policy)


STORIES = [
    pytest.param(job(), success, id="success, everything stays"),
    pytest.param(job(cleanPodPolicy="Running"), success, id="success, what runs goes"),
    pytest.param(job(cleanPodPolicy="All"), success, id="success, everything goes"),
    pytest.param(job(), failure, id="failure, everything stays"),
    pytest.param(job(cleanPodPolicy="All"), failure, id="failure, everything goes"),
    pytest.param(job("ExitCode"), failure, id="exit code that is for good"),
    pytest.param(job("ExitCode"), failure_that_comes_back, id="exit codes that are worth another try"),
    pytest.param(job("OnFailure"), failure_that_comes_back, id="on failure"),
    pytest.param(job("Always"), failure_that_comes_back, id="always"),
    pytest.param(job("ExitCode", backoffLimit=3), failures_until_the_limit, id="back-off limit"),
    pytest.param(job("ExitCode", backoffLimit=3, cleanPodPolicy="All"), failures_until_the_limit,
                 id="back-off limit, everything goes"),
    pytest.param(job(), pause, id="suspend and resume"),
    pytest.param(job(), hasty_pause, id="resume before the old pods are gone"),
    pytest.param(job(), deletion, id="deleted while it runs"),
    pytest.param(job(), deletion_at_once, id="deleted while it is made"),
    pytest.param(job(activeDeadlineSeconds=60, cleanPodPolicy="Running"), a_long_time, id="deadline"),
    pytest.param(job(ttlSecondsAfterFinished=60), success_and_a_long_time, id="time to live"),
    pytest.param(job(ttlSecondsAfterFinished=0, cleanPodPolicy="All"), success, id="gone at once"),
    pytest.param(job(), growth, id="scaled up and down"),
    pytest.param(job("ExitCode"), a_lost_pod, id="a running pod is deleted, and comes back"),
    pytest.param(job(), a_lost_pod, id="a running pod is deleted, and that is a failure"),
]


async def at_rest(thing: Object, story: Story, dies_after: int | None) -> tuple[list[Write], Object]:
    """What the first life wrote, and how everything is in the end."""
    async with stage(collects=story in DELETING or "ttlSecondsAfterFinished" in thing["spec"]["runPolicy"]) as it:
        it.begin(dies_after)
        await it.apply(thing)
        if story is not deletion_at_once:
            await it.settle()
        await story(it)
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


@pytest.mark.parametrize(("thing", "story"), STORIES)
async def test_dying_after_any_write_ends_in_the_same_state(thing: Object, story: Story) -> None:
    writes, clean = await at_rest(thing, story, None)

    for number, write in enumerate(writes, start=1):
        if "/events" not in write.path:
            _, end = await at_rest(thing, story, number)
            assert clean == end, f"died after write {number}: {write}"
