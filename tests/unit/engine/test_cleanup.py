"""What happens to pods and services once the job has ended."""

from typing import Any

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World


def ended(policy: str, *, well: bool = True, hold: bool = False, **changes: Any) -> World:
    """PS 1 waits, PS 0 and worker 1 run, worker 2 is done, worker 0 decides."""
    roles = {"PS": (2, "Never"), "Worker": (3, "Never")}
    it = World(tfjob(roles=roles, policy={"cleanPodPolicy": policy}, **changes), hold=hold)
    it.settle()
    it.run("*-ps-0")
    it.run("*-worker-*")
    it.succeed("*-worker-2")
    it.settle()
    if well:
        it.succeed("*-worker-0")
    else:
        it.fail("*-worker-0")
    it.settle()
    return it


ALL = ["mnist-ps-0", "mnist-ps-1", "mnist-worker-0", "mnist-worker-1", "mnist-worker-2"]
DONE = ["mnist-worker-0", "mnist-worker-2"]


@pytest.mark.parametrize("well", [pytest.param(True, id="succeeded"), pytest.param(False, id="failed")])
@pytest.mark.parametrize(("policy", "left"), [
    pytest.param("None", ALL, id="None: everything stays"),
    pytest.param("Running", DONE, id="Running: what runs or waits goes"),
    pytest.param("All", [], id="All: everything goes"),
])
def test_what_stays(policy: str, left: list[str], well: bool) -> None:
    it = ended(policy, well=well)

    assert left == sorted(it.pods)
    assert left == sorted(it.services)


def test_services_go_before_their_pods() -> None:
    """They are found through them: the other way round, dying in between would leave them."""
    it = ended("All")
    deletions = [write for write in it.writes if write.startswith("delete")]

    assert sorted(deletions, key=lambda write: "pod" in write) == deletions


def test_the_verdict_is_stored_before_the_evidence_goes() -> None:
    it = ended("All")
    first = next(number for number, write in enumerate(it.writes) if write.startswith("delete"))

    assert "status" == it.writes[first - 1]


def test_the_policy_can_be_changed_when_it_is_over() -> None:
    it = ended("None")
    it.edit(runPolicy={"cleanPodPolicy": "All"})
    it.settle()

    assert not it.pods


def test_pods_that_are_on_their_way_out_are_not_deleted_again() -> None:
    it = ended("All", hold=True)  # the world refuses a second deletion

    it.settle()

    assert ALL == sorted(it.pods)


def test_the_active_of_a_failed_job_go_down_with_its_pods() -> None:
    """B-50: upstream leaves the last numbers for ever."""
    it = ended("Running", well=False)

    counts = {role: (found.active, found.succeeded, found.failed)
              for role, found in it.status.replica_statuses.items()}
    assert {"PS": (0, 0, 0), "Worker": (0, 1, 1)} == counts


def test_a_pod_that_fails_after_the_end_leaves_its_last_words() -> None:
    it = ended("None")
    it.fail("*-worker-1", code=139)
    it.edit(runPolicy={"cleanPodPolicy": "All"})
    it.settle()

    assert it.status.post_mortem is not None
    assert "killed by SIGSEGV" == it.status.post_mortem.ended[0].says
