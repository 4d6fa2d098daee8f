"""The normal case: what is created, deleted, started again, and what the job says of itself."""

from typing import Any

import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import World

from trainmaster.engine.actions import Event, normal, warning
from trainmaster.engine.memory import recall


def world(roles: dict[str, tuple[int, str]] | None = None, *, hold: bool = False, **changes: Any) -> World:
    """A job at rest, its pods made but not running."""
    made = World(tfjob(roles=roles or {"Worker": (2, "Never")}, **changes), hold=hold)
    made.settle()
    return made


def counts(it: World, role: str = "Worker") -> tuple[int, int, int]:
    found = it.status.replica_statuses[role]
    return found.active, found.succeeded, found.failed


def last(it: World) -> tuple[str, str]:
    return it.status.conditions[-1].type, it.status.conditions[-1].message


def end(it: World, ends: list[tuple[str, int]]) -> None:
    """All at once: pods by their names, and the exit code of each."""
    for pattern, code in ends:
        if code:
            it.fail(pattern, code=code)
        else:
            it.succeed(pattern)
    it.settle()


def events(it: World, *reasons: str) -> list[Event]:
    return [event for event in it.events if event.reason in reasons]


# Making and removing


def test_everything_is_made_role_by_role_lowest_index_first_names_before_pods() -> None:
    it = World(tfjob(roles={"Worker": (2, "Never"), "PS": (1, "Never")}))

    it.look()

    assert [
        "create service mnist-ps-0", "create service mnist-worker-0", "create service mnist-worker-1",
        "create pod mnist-ps-0", "create pod mnist-worker-0", "create pod mnist-worker-1", "status",
    ] == it.writes


@pytest.mark.parametrize(("replicas", "expected"), [
    pytest.param(3, ["create service mnist-worker-2", "create pod mnist-worker-2"], id="one more"),
    pytest.param(1, ["status", "delete service mnist-worker-1", "delete pod mnist-worker-1", "status"],
                 id="one less: the highest goes, after it was written down that it is us who send it away"),
    pytest.param(2, [], id="as many"),
])
def test_scaling_a_waiting_job(replicas: int, expected: list[str]) -> None:
    it = world()
    before = len(it.writes)
    it.edit(tfReplicaSpecs={"Worker": {"replicas": replicas}})

    it.settle()

    assert expected == it.writes[before:]


def test_a_pod_that_was_lost_is_made_again_and_only_that_one() -> None:
    it = world({"Worker": (3, "Never")})
    it.remove("*-1")
    before = len(it.writes)

    it.settle()

    assert ["create pod mnist-worker-1"] == it.writes[before:]


def test_a_service_that_was_lost_is_made_again() -> None:
    it = world()
    del it.services["mnist-worker-1"]
    before = len(it.writes)

    it.settle()

    assert ["create service mnist-worker-1"] == it.writes[before:]


def test_zero_replicas_are_no_pods() -> None:
    """B-01: upstream makes and deletes pod 0 for ever."""
    it = world({"PS": (0, "Never"), "Worker": (1, "Never")})

    assert ["mnist-worker-0"] == list(it.pods)


def test_a_job_whose_deciding_role_has_no_replicas_waits_and_is_not_a_success() -> None:
    """B-01: upstream calls it Succeeded in its first pass."""
    it = world({"Worker": (0, "Never"), "PS": (1, "Never")})

    assert [("Created", "True")] == it.conditions()


def test_a_gap_below_a_leftover_pod_is_not_filled_beyond_the_wanted_number() -> None:
    """B-05."""
    it = world({"Worker": (4, "Never")}, hold=True)
    it.remove("*-2")
    before = len(it.writes)
    it.edit(tfReplicaSpecs={"Worker": {"replicas": 2}})
    it.settle()

    assert not [write for write in it.writes[before:] if write.startswith("create")]


def test_scaling_down_a_running_job_does_not_fail_it() -> None:
    """B-07: upstream counts the pods on their way out as failed."""
    it = world({"Worker": (3, "Never")}, hold=True)
    it.run()
    it.settle()
    it.edit(tfReplicaSpecs={"Worker": {"replicas": 1}})
    it.settle()

    assert ("Running", (1, 0, 0)) == (last(it)[0], counts(it))


def test_a_pod_that_is_wanted_again_before_it_is_gone_is_not_a_failure() -> None:
    it = world({"Worker": (2, "Never")}, hold=True)
    it.run()
    it.edit(tfReplicaSpecs={"Worker": {"replicas": 1}})
    it.settle()
    it.edit(tfReplicaSpecs={"Worker": {"replicas": 2}})
    it.fail("*-1", code=143)
    it.settle()
    assert "Running" == last(it)[0]

    it.vanish()
    it.settle()

    assert "create pod mnist-worker-1" == it.writes[-2]
    assert () == recall(it.status).leaving


def test_a_role_that_is_taken_out_of_the_spec_is_taken_down() -> None:
    it = world({"Worker": (1, "Never"), "Evaluator": (1, "Never")})
    it.edit(tfReplicaSpecs={"Evaluator": None})
    it.settle()

    assert ["mnist-worker-0"] == list(it.pods)
    assert ["Worker"] == list(it.status.replica_statuses)


def test_a_replica_that_succeeded_is_not_run_again_when_its_pod_is_removed() -> None:
    """B-41."""
    it = world({"Worker": (3, "Never")})
    it.run()
    it.succeed("*-worker-2")
    it.settle()
    it.remove("*-worker-2")
    it.settle()

    assert "mnist-worker-2" not in it.pods
    assert (2, 1, 0) == counts(it)


def test_template_changes_do_not_touch_pods_that_are_there() -> None:
    it = world()
    before = len(it.writes)
    it.edit(tfReplicaSpecs={"Worker": {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "b"}]}}}})
    it.settle()

    assert before == len(it.writes)


# How it goes


def test_a_job_that_was_just_made_says_so_and_has_begun() -> None:
    it = world()

    assert [("Created", "True")] == it.conditions()
    assert it.now == it.status.start_time
    assert "TFJob mnist is created." == last(it)[1]


@pytest.mark.parametrize(("policy", "runs", "ends", "expected"), [
    pytest.param("Never", ["*-worker-1"], [], "Running", id="one of the workers runs: the job runs"),
    pytest.param("Never", ["*-ps-0"], [], "Created", id="a parameter server alone does not make it running"),
    pytest.param("Never", ["*"], [("*-worker-0", 0)], "Succeeded", id="worker 0 is done: the job is done"),
    pytest.param("Never", ["*"], [("*-worker-1", 0)], "Running", id="another worker is done: it goes on"),
    pytest.param("Never", ["*"], [("*-worker-1", 1)], "Failed", id="a worker fails: so does the job"),
    pytest.param("Never", ["*"], [("*-ps-0", 1)], "Failed", id="a parameter server fails: so does the job"),
    pytest.param("Never", ["*"], [("*-ps-0", 1), ("*-worker-0", 0)], "Failed",
                 id="a parameter server fails in the moment of success: failed"),
    pytest.param("Never", ["*"], [("*-worker-1", 1), ("*-worker-0", 0)], "Succeeded",
                 id="another worker fails in the moment of success: succeeded, and only that (B-12)"),
    pytest.param("ExitCode", ["*"], [("*-worker-1", 137), ("*-worker-0", 0)], "Succeeded",
                 id="another worker would come back in the moment of success: succeeded"),
    pytest.param("ExitCode", ["*"], [("*-worker-1", 137)], "Running", id="one comes back while others run: running"),
    pytest.param("ExitCode", ["*"], [("*-worker-*", 137)], "Restarting", id="all come back: restarting"),
    pytest.param("ExitCode", ["*"], [("*-worker-1", 1)], "Failed", id="an exit code that is for good"),
])
def test_what_a_job_without_chief_says(
    policy: str, runs: list[str], ends: list[tuple[str, int]], expected: str
) -> None:
    it = world({"PS": (1, policy), "Worker": (2, policy)})
    for pattern in runs:
        it.run(pattern)
    it.settle()
    end(it, ends)

    assert expected == last(it)[0]


@pytest.mark.parametrize(("ends", "expected"), [
    pytest.param([("*-chief-0", 0)], "Succeeded", id="the chief is done: so is the job"),
    pytest.param([("*-worker-*", 0)], "Running", id="all workers are done: the chief decides"),
    pytest.param([("*-chief-0", 1)], "Failed", id="the chief fails"),
    pytest.param([("*-chief-0", 0), ("*-worker-1", 1)], "Succeeded", id="the chief is done as a worker fails (B-12)"),
    pytest.param([("*-worker-1", 1)], "Failed", id="a worker fails although the chief runs"),
    pytest.param([("*-evaluator-0", 1)], "Failed", id="even an evaluator's failure fails the job (B-59)"),
])
def test_what_a_job_with_chief_says(ends: list[tuple[str, int]], expected: str) -> None:
    it = world({"Chief": (1, "Never"), "Worker": (2, "Never"), "Evaluator": (1, "Never")})
    it.run()
    it.settle()
    end(it, ends)

    assert expected == last(it)[0]
    assert 1 == sum(found.type in ("Succeeded", "Failed") for found in it.status.conditions) + (expected == "Running")


def test_with_all_workers_worker_0_alone_is_not_enough() -> None:
    it = world(successPolicy="AllWorkers")
    it.run()
    it.succeed("*-0")
    it.settle()
    assert ("Running", (1, 1, 0)) == (last(it)[0], counts(it))

    it.succeed("*-1")
    it.settle()
    assert ("Succeeded", (0, 2, 0)) == (last(it)[0], counts(it))


def test_a_dynamic_worker_may_fail() -> None:
    it = world({"PS": (1, "Never"), "Worker": (3, "Never")}, enableDynamicWorker=True)
    it.run()
    it.fail("*-worker-1")
    it.settle()
    assert ("Running", (2, 0, 1)) == (last(it)[0], counts(it))

    it.fail("*-ps-0")
    it.settle()
    assert ("Failed", "TFJob ns/mnist has failed because 1 PS replica(s) failed.") == last(it)


def test_in_a_job_that_succeeded_everybody_who_ran_has_succeeded() -> None:
    it = world({"PS": (2, "Never"), "Worker": (2, "Never")})
    it.run("*-worker-*")
    it.run("*-ps-0")
    it.succeed("*-worker-0")
    it.settle()

    assert ((0, 2, 0), (0, 1, 0)) == (counts(it), counts(it, "PS"))
    assert it.now == it.status.completion_time


def test_a_failed_job_keeps_its_counts_and_says_when_it_ended() -> None:
    it = world()
    it.run()
    it.fail("*-1")
    it.settle()

    assert (1, 0, 1) == counts(it)
    assert it.now == it.status.completion_time


# Starting again


def test_one_that_comes_back_is_deleted_and_made_again_when_it_is_gone() -> None:
    it = world({"Worker": (2, "ExitCode")}, hold=True)
    it.run()
    it.settle()
    it.fail("*-1", code=137)
    before = len(it.writes)
    it.settle()
    assert ["status", "delete pod mnist-worker-1"] == it.writes[before:]
    assert ("Restarting", "job mnist is restarting because Worker replica(s) failed.") == last(it)
    assert (1, 0, 1) == counts(it)

    it.vanish()
    it.settle()
    assert ["create pod mnist-worker-1", "status"] == it.writes[-2:]
    assert ("Running", (1, 0, 0)) == (last(it)[0], counts(it))


def test_what_the_replica_said_at_last_survives_its_pod() -> None:
    """B-67."""
    it = world({"Worker": (2, "ExitCode")})
    it.run()
    it.fail("*-1", code=137, reason="OOMKilled", message="Epoch 3\nKilled")
    it.settle()

    end = recall(it.status).ended[0]
    assert ("mnist-worker-1", 137, "OOMKilled") == (end.pod, end.exit_code, end.reason)
    assert ("killed: out of memory", "Epoch 3\nKilled") == (end.says, end.last_words)


def test_each_restart_is_counted_once() -> None:
    it = world({"Worker": (2, "ExitCode")}, hold=True)
    for _ in range(3):
        it.run()
        it.settle()
        it.fail("*-1", code=137)
        it.settle()
        it.settle()
        it.vanish()
        it.settle()

    assert 3 == recall(it.status).replicas["worker-1"].restarts


def test_what_would_have_come_back_is_no_restart_if_the_job_is_over() -> None:
    it = world({"Worker": (2, "ExitCode")})
    it.run()
    it.fail("*-1", code=137)
    it.succeed("*-0")
    it.settle()

    assert ("Succeeded", 0) == (last(it)[0], recall(it.status).replicas["worker-1"].restarts)


def test_an_evicted_pod_comes_back_on_failure() -> None:
    it = world({"Worker": (2, "OnFailure")}, hold=True)
    it.run()
    it.evict("*-1")
    it.settle()

    assert "Restarting" == last(it)[0]
    assert "ended by its node: Evicted" == recall(it.status).ended[0].says


def test_a_restart_of_one_role_does_not_hide_the_failure_of_another() -> None:
    """B-61: upstream takes what is left of the first for the second."""
    it = world({"PS": (1, "Never"), "Worker": (1, "ExitCode")}, hold=True)
    it.run()
    it.fail("*-worker-0", code=137)
    it.settle()
    assert "Restarting" == last(it)[0]

    it.fail("*-ps-0")
    it.settle()
    assert "Failed" == last(it)[0]


def test_a_pod_that_somebody_deletes_while_it_runs_fails_a_job_that_never_restarts() -> None:
    it = world(hold=True)
    it.run()
    it.settle()
    it.mark("*-1")
    it.settle()

    assert ("Failed", "TFJob ns/mnist has failed because 1 Worker replica(s) failed.") == last(it)


def test_a_pod_that_somebody_deletes_while_it_runs_is_a_restart_otherwise() -> None:
    """B-08."""
    it = world({"Worker": (2, "OnFailure")}, hold=True)
    it.run()
    it.settle()
    it.mark("*-1")
    it.settle()
    assert "Restarting" == last(it)[0]

    it.succeed("*-1")  # it took the signal for the end of its work; we know better
    it.vanish()
    it.settle()
    assert ("Running", (1, 0, 0)) == (last(it)[0], counts(it))
    assert 1 == recall(it.status).replicas["worker-1"].restarts


# What is told


def test_an_exit_code_is_told_once() -> None:
    """B-25: upstream tells it at every pass."""
    it = world({"Worker": (3, "ExitCode")}, hold=True)
    it.run()
    it.succeed("*-2")
    it.settle()
    it.fail("*-1", code=137)
    it.settle()
    it.run()
    it.settle()

    assert [
        normal("ExitedWithCode", "Pod: ns.mnist-worker-2 exited with code 0"),
        normal("ExitedWithCode", "Pod: ns.mnist-worker-1 exited with code 137"),
    ] == events(it, "ExitedWithCode")


def test_a_restart_is_told_as_a_warning() -> None:
    it = world({"Worker": (2, "ExitCode")})
    it.run()
    it.fail("*-1", code=137)
    it.settle()

    told = warning("TFJobRestarting", "job mnist is restarting because Worker replica(s) failed.")
    assert [told] == events(it, "TFJobRestarting")


def test_a_permanent_exit_code_is_told_in_both_ways_and_no_restart_is() -> None:
    """As upstream, whose engine and TFJob step both speak; but B-09: nothing about a restart that never comes."""
    it = world({"Worker": (2, "ExitCode")})
    it.run()
    it.fail("*-1", code=1)
    it.settle()

    assert [
        warning("TFJobFailed", 'job "mnist" is failing because "Worker" replica(s) failed.'),
        normal("TFJobFailed", "TFJob ns/mnist has failed because 1 Worker replica(s) failed."),
    ] == events(it, "TFJobFailed", "TFJobRestarting")
    assert 'job "mnist" is failing because "Worker" replica(s) failed.' == last(it)[1]
    assert it.status.completion_time is not None


def test_success_is_told() -> None:
    it = world()
    it.run()
    it.succeed("*-0")
    it.settle()

    assert [normal("TFJobSucceeded", "TFJob ns/mnist successfully completed.")] == events(it, "TFJobSucceeded")


def test_the_deadline_is_when_to_look_again() -> None:
    it = world(policy={"activeDeadlineSeconds": 30})

    todo = it.plan()

    assert todo.look_again_at is not None
    assert 30 == (todo.look_again_at - it.now).total_seconds()
