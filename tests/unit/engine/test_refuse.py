"""Jobs that cannot be run as they are written."""

from tests.unit.engine.stories import tfjob
from tests.unit.engine.world import NOON, World

from trainmaster.api.kubeflow_v1 import TF_JOB
from trainmaster.api.policy import Condition, JobStatus
from trainmaster.engine.actions import DeletePod, DeleteService, warning
from trainmaster.engine.refuse import refused, unmakeable

WRONG = ["spec.tfReplicaSpecs[Worker].template.spec.containers[0].image: Required value: must be required"]
SAID = f"TFJob failed validation because {WRONG[0]}"


def test_a_job_that_never_started_fails_and_says_why() -> None:
    todo = refused(TF_JOB, "mnist", "job-1", JobStatus(), WRONG, NOON)

    assert ["Created", "Failed"] == [found.type for found in todo.status.conditions]
    assert ("TFJobFailedValidation", SAID) == (todo.status.conditions[1].reason, todo.status.conditions[1].message)
    assert (warning("TFJobFailedValidation", SAID),) == todo.events
    assert NOON == todo.status.completion_time


def test_several_things_that_are_wrong_are_one_sentence() -> None:
    todo = refused(TF_JOB, "mnist", "job-1", JobStatus(), ["a: b", "c: d"], NOON)

    assert todo.events[0].message.endswith("because [a: b, c: d]")


def test_a_job_that_runs_goes_on_and_is_warned() -> None:
    status = JobStatus(start_time=NOON, conditions=(Condition(type="Running", status="True"),))

    todo = refused(TF_JOB, "mnist", "job-1", status, WRONG, NOON)

    assert (status, ()) == (todo.status, todo.actions)
    assert ["TFJobFailedValidation"] == [event.reason for event in todo.events]


def test_a_job_that_is_over_is_left_alone() -> None:
    status = JobStatus(conditions=(Condition(type="Failed", status="True"),))

    todo = refused(TF_JOB, "mnist", "job-1", status, WRONG, NOON)

    assert (status, ()) == (todo.status, todo.events)


def test_a_job_whose_pods_can_never_be_made_fails_and_says_why() -> None:
    world = World(tfjob(policy={"cleanPodPolicy": "All"}))
    world.settle()
    todo = unmakeable(world.job, world.seen, world.now, "mnist-worker-1", "spec.containers[0].image: Required value")

    assert todo is not None
    said = "Job mnist has failed because pod mnist-worker-1 cannot be made: spec.containers[0].image: Required value"
    assert ("Failed", said) == (todo.status.conditions[-1].type, todo.status.conditions[-1].message)
    assert todo.status.completion_time is not None
    assert [DeleteService] * 2 + [DeletePod] * 2 == [type(action) for action in todo.actions]


def test_what_runs_is_not_stopped_because_one_more_cannot_be_made() -> None:
    world = World(tfjob())
    world.settle()
    world.run("*-0")

    assert unmakeable(world.job, world.seen, world.now, "mnist-worker-1", "no") is None
