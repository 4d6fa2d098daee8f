"""B-42, opt-in: what one failed replica means for the others."""

import pytest
from tests.unit.engine.stories import job_of
from tests.unit.engine.world import World

from trainmaster.api.policy import ON_REPLICA_FAILURE
from trainmaster.engine.memory import recall, restarts

KINDS = ("PyTorchJob", "JAXJob", "PaddleJob", "TFJob")


def running(kind: str, said: str, restart: str = "OnFailure", **policy: object) -> World:
    thing = job_of(kind, roles={"Worker": (3, restart)}, policy=policy)
    thing["metadata"]["annotations"] = {ON_REPLICA_FAILURE: said}
    world = World(thing)
    world.settle()
    world.run()
    world.settle()
    return world


def uids(world: World) -> dict[str, str]:
    return {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_all_start_again_and_that_is_one_restart(kind: str) -> None:
    world = running(kind, "RestartAll")
    before = uids(world)
    world.evict("*-worker-1")
    world.settle()

    assert 3 == len(world.pods)
    assert not set(before.values()) & set(uids(world).values())
    assert 1 == restarts(recall(world.status))


def test_those_sent_away_count_for_nothing_however_they_end() -> None:
    world = running("JAXJob", "RestartAll", "ExitCode", backoffLimit=3)
    world.hold = True
    world.fail("*-worker-1", code=137)
    world.settle()
    world.fail("*", code=1)
    world.settle()
    world.vanish()
    world.settle()

    assert (3, 1) == (len(world.pods), restarts(recall(world.status)))
    assert not world.status.finished


def test_what_was_done_before_is_done_again() -> None:
    world = running("JAXJob", "RestartAll")
    world.succeed("*-worker-0")
    world.settle()
    world.evict("*-worker-1")
    world.settle()

    assert {"Pending"} == {(pod.get("status") or {}).get("phase", "Pending") for pod in world.pods.values()}
    assert 0 == world.status.replica_statuses["Worker"].succeeded


def test_two_failures_in_one_moment_are_two_restarts_of_one_gang() -> None:
    world = running("JAXJob", "RestartAll")
    world.evict("*-worker-1")
    world.evict("*-worker-2")
    world.settle()

    assert (3, 2) == (len(world.pods), restarts(recall(world.status)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_job_fails_with_the_first_and_nobody_goes_on_in_vain(kind: str) -> None:
    world = running(kind, "FailAll")
    world.evict("*-worker-1")
    world.settle()

    assert ("Failed", "True") == world.conditions()[-1]
    assert "Job mnist has failed because 1 Worker replica(s) failed and it is to fail with the first" == (
        world.status.conditions[-1].message)
    assert ["mnist-worker-1"] == list(world.pods)


def test_a_job_that_succeeds_keeps_its_pods_as_its_policy_says() -> None:
    world = running("PyTorchJob", "FailAll")
    world.succeed("*")
    world.settle()

    assert 3 == len(world.pods)


def test_without_a_word_one_restarts_alone() -> None:
    world = running("JAXJob", "")
    before = uids(world)
    world.evict("*-worker-1")
    world.settle()

    assert {"mnist-worker-0", "mnist-worker-2"} == {name for name in before if before[name] == uids(world)[name]}
