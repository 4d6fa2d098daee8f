"""The active deadline."""

from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World

OVER = "Job mnist has failed because it was active longer than specified deadline"


def job(seconds: int, **policy: object) -> World:
    made = World(tfjob(policy={"activeDeadlineSeconds": seconds, **policy}))
    made.settle()
    made.run()
    made.settle()
    return made


def over(it: World) -> bool:
    return OVER == it.status.conditions[-1].message


def test_it_fires_to_the_second_although_nothing_happens() -> None:
    """B-02: upstream notices at the next event, or after ten hours."""
    it = job(30)
    it.pass_time(29)
    assert not over(it)

    it.pass_time(1)
    assert over(it)


def test_a_deadline_of_0_fails_at_once() -> None:
    it = World(tfjob(policy={"activeDeadlineSeconds": 0}))
    it.settle()

    assert over(it)


def test_time_before_a_resume_does_not_count() -> None:
    it = job(30)
    it.pass_time(20)
    it.edit(runPolicy={"suspend": True})
    it.settle()
    it.pass_time(1000)
    it.edit(runPolicy={"suspend": False})
    it.settle()
    it.pass_time(29)
    assert not over(it)

    it.pass_time(1)
    assert over(it)


def test_a_suspended_job_has_no_deadline() -> None:
    it = job(30)
    it.edit(runPolicy={"suspend": True})
    it.settle()

    assert it.plan().look_again_at is None


def test_a_deadline_can_be_moved_while_the_job_runs() -> None:
    it = job(30)
    it.edit(runPolicy={"activeDeadlineSeconds": 60})
    it.pass_time(59)
    assert not over(it)

    it.pass_time(1)
    assert over(it)


def test_a_job_that_succeeded_while_nobody_looked_has_succeeded() -> None:
    it = job(30)
    it.succeed("*-0")
    it.now = it.now.replace(hour=23)
    it.settle()

    assert "Succeeded" == it.status.conditions[-1].type


def test_pods_go_by_the_clean_up_policy() -> None:
    """B-06."""
    kept, cleaned = job(30), job(30, cleanPodPolicy="Running")
    kept.pass_time(30)
    cleaned.pass_time(30)

    assert (2, 0) == (len(kept.pods), len(cleaned.pods))
