"""Suspend and resume."""

from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World

from trainmaster.engine.actions import normal


def running(*, hold: bool = False, restart: str = "Never", **changes: object) -> World:
    made = World(tfjob(roles={"Worker": (2, restart)}, **changes), hold=hold)
    made.settle()
    made.run()
    made.settle()
    return made


def suspend(it: World, suspend: bool = True) -> None:
    it.edit(runPolicy={"suspend": suspend})
    it.settle()


def test_a_job_made_suspended_has_nothing_and_has_not_begun() -> None:
    it = World(tfjob(policy={"suspend": True}))
    it.settle()

    assert ([("Created", "True"), ("Suspended", "True")], None) == (it.conditions(), it.status.start_time)
    assert not it.pods
    assert not it.services
    assert {} == it.status.replica_statuses


def test_a_running_job_loses_everything_whatever_the_clean_up_policy() -> None:
    it = running(policy={"cleanPodPolicy": "None"})
    suspend(it)

    assert not it.pods
    assert not it.services
    assert [("Created", "True"), ("Running", "False"), ("Suspended", "True")] == it.conditions()
    assert ["TFJobCreated", "TFJobSuspended", "TFJobSuspended"] == [found.reason for found in it.status.conditions]


def test_it_is_written_down_before_the_first_pod_goes() -> None:
    it = running()
    before = len(it.writes)
    suspend(it)

    assert "status" == it.writes[before]
    assert 1 == it.writes[before:].count("status")


def test_nobody_is_active_and_what_was_reached_stays() -> None:
    it = running(successPolicy="AllWorkers")
    it.succeed("*-1")
    it.settle()
    suspend(it)

    count = it.status.replica_statuses["Worker"]
    assert (0, 1, 0) == (count.active, count.succeeded, count.failed)


def test_it_is_told_once() -> None:
    """B-25: upstream tells it at every pass."""
    it = running(hold=True)
    suspend(it)
    it.vanish()
    it.settle()

    told = [event for event in it.events if event.reason == "TFJobSuspended"]
    assert [normal("TFJobSuspended", "TFJob mnist is suspended.")] == told


def test_a_resumed_job_begins_anew() -> None:
    it = running()
    began = it.status.start_time
    suspend(it)
    it.pass_time(60)
    suspend(it, False)

    assert ["mnist-worker-0", "mnist-worker-1"] == list(it.pods)
    assert [("Created", "True"), ("Running", "False"), ("Suspended", "False")] == it.conditions()
    assert began is not None
    assert it.status.start_time == it.now > began
    told = [event for event in it.events if event.reason == "TFJobResumed"]
    assert [normal("TFJobResumed", "TFJob mnist is resumed.")] == told


def test_a_resumed_job_that_runs_says_so_last() -> None:
    it = running()
    suspend(it)
    suspend(it, False)
    it.run()
    it.settle()

    assert [("Created", "True"), ("Suspended", "False"), ("Running", "True")] == it.conditions()


def test_replicas_that_had_succeeded_run_again() -> None:
    it = running(successPolicy="AllWorkers")
    it.succeed("*-1")
    it.settle()
    suspend(it)
    suspend(it, False)

    assert ["mnist-worker-0", "mnist-worker-1"] == list(it.pods)
    assert 0 == it.status.replica_statuses["Worker"].succeeded


def test_old_pods_that_are_still_ending_are_nobodys_failure() -> None:
    """B-66."""
    it = running(hold=True)
    suspend(it)
    suspend(it, False)
    assert [("Created", "True"), ("Running", "False"), ("Suspended", "False")] == it.conditions()

    it.fail("*-0", code=143)
    it.settle()
    it.vanish()
    it.settle()

    assert [("Created", "True"), ("Running", "False"), ("Suspended", "False")] == it.conditions()
    assert 4 == sum(write.startswith("create pod") for write in it.writes)


def test_pods_that_the_suspension_did_not_reach_go_when_it_ends() -> None:
    """We died after writing it down, and it was resumed before we came back."""
    it = running()
    it.edit(runPolicy={"suspend": True})
    record = it.plan().record
    assert record is not None
    it.write(record)
    it.edit(runPolicy={"suspend": False})
    it.settle()

    assert {"pod-uid-3", "pod-uid-4"}.isdisjoint(pod["metadata"]["uid"] for pod in it.pods.values())
    assert 2 == sum(write.startswith("delete pod") for write in it.writes)


def test_how_a_replica_ended_is_not_lost_with_a_suspension() -> None:
    it = running(restart="ExitCode")
    it.fail("*-1", code=137)
    suspend(it)

    assert it.status.post_mortem is not None
    assert 137 == it.status.post_mortem.ended[0].exit_code


def test_a_restart_under_way_stays_in_the_list() -> None:
    it = running(hold=True, restart="ExitCode")
    it.fail("*", code=137)
    it.settle()
    suspend(it)

    assert [("Created", "True"), ("Restarting", "True"), ("Suspended", "True")] == it.conditions()


def test_a_finished_job_does_not_care() -> None:
    it = running()
    it.succeed()
    it.settle()
    before = it.status
    suspend(it)

    assert before == it.status
    assert 2 == len(it.pods)
