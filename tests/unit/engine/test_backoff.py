"""How often replicas may be started again."""

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World

from trainmaster.engine.actions import normal

GIVEN_UP = "Job mnist has failed because it has reached the specified backoff limit"


def job(limit: int | None, restart: str = "OnFailure", **policy: object) -> World:
    given = policy if limit is None else {"backoffLimit": limit, **policy}
    made = World(tfjob(roles={"Worker": (2, restart)}, policy=given))
    made.settle()
    made.run()
    made.settle()
    return made


def given_up(it: World) -> bool:
    return GIVEN_UP == it.status.conditions[-1].message


@pytest.mark.parametrize(("limit", "restarts", "expected"), [
    pytest.param(None, 1000, False, id="no limit"),
    pytest.param(0, 0, False, id="0: nothing happened yet"),
    pytest.param(0, 1, True, id="0: the first restart"),
    pytest.param(1, 1, True, id="1 tolerates no restart at all, as upstream"),
    pytest.param(3, 2, False, id="3: two are fine"),
    pytest.param(3, 3, True, id="3: the third is one too many"),
])
def test_restarts_in_place(limit: int | None, restarts: int, expected: bool) -> None:
    it = job(limit)
    it.run("*-1", restarts=restarts)
    it.settle()

    assert expected == given_up(it)


def test_restarts_of_all_replicas_are_added_up() -> None:
    it = job(3)
    it.run("*-0", restarts=1)
    it.run("*-1", restarts=2)
    it.settle()

    assert given_up(it)


@pytest.mark.parametrize(("restart", "code"), [
    pytest.param("ExitCode", 137, id="by exit code"),
    pytest.param("OnFailure", 1, id="on failure, made anew"),
])
def test_replicas_made_anew_count_too(restart: str, code: int) -> None:
    """B-04: upstream starts from zero with every new pod and never gives up."""
    it = job(3, restart)
    for time in (1, 2, 3):
        assert not given_up(it), time
        it.fail("*-1", code=code)
        it.settle()
        it.run()
        it.settle()

    assert given_up(it)


def test_restarts_in_place_and_anew_are_added_up() -> None:
    it = job(4)
    it.run("*-1", restarts=2)
    it.settle()
    it.fail("*-1")
    it.settle()
    assert not given_up(it)

    it.run("*-0", restarts=1)
    it.settle()
    assert given_up(it)


@pytest.mark.parametrize(("restart", "code"), [
    pytest.param("Never", 1, id="Never"),
    pytest.param("OnFailure", 1, id="OnFailure"),
    pytest.param("ExitCode", 1, id="ExitCode, for good"),
    pytest.param("ExitCode", 137, id="ExitCode, worth another try"),
])
def test_with_a_limit_of_0_every_failure_is_the_limit(restart: str, code: int) -> None:
    """A.7."""
    it = job(0, restart)
    it.fail("*-1", code=code)
    it.settle()

    assert given_up(it)
    assert [normal("TFJobFailed", GIVEN_UP)] == [event for event in it.events if event.reason == "TFJobFailed"]


@pytest.mark.parametrize(("policy", "left"), [
    pytest.param("None", ["mnist-worker-0", "mnist-worker-1"], id="None keeps everything (B-06)"),
    pytest.param("Running", ["mnist-worker-1"], id="Running keeps what has ended"),
    pytest.param("All", [], id="All keeps nothing"),
])
def test_the_clean_up_afterwards(policy: str, left: list[str]) -> None:
    it = job(1, "ExitCode", cleanPodPolicy=policy)
    it.fail("*-1", code=137)
    it.settle()

    assert left == list(it.pods)
    assert 137 == it.status.post_mortem.ended[0].exit_code if it.status.post_mortem else None
