"""A job in one word, and why: read from the object as it came."""

import pytest

from trainmaster.api.core import BATCH_JOBS
from trainmaster.api.meta import Object, Resource
from trainmaster.sdk.jobs import Job, Role, is_job

TFJOBS = Resource("kubeflow.org", "v1", "tfjobs", "TFJob")


def tfjob(*conditions: tuple[str, str], waits: str = "", trouble: str = "", **status: object) -> Job:
    said = [{"type": kind, "status": "True", "message": message} for kind, message in conditions]
    roles = {"PS": {"replicas": 2}, "Worker": {}}
    return Job(TFJOBS, {"metadata": {"name": "a", "namespace": "b"}, "spec": {"tfReplicaSpecs": roles},
                        "status": {"conditions": said, **status}}, waits, trouble)


def batch(**status: object) -> Job:
    return Job(BATCH_JOBS, {"metadata": {"name": "a"}, "spec": {"parallelism": 3, "completions": 2}, "status": status})


FIRST = {"ended": [{"pod": "a-worker-1", "exitCode": 137, "says": "killed for lack of memory"}]}


@pytest.mark.parametrize(
    ("job", "state", "why"),
    [
        pytest.param(tfjob(), "Waiting", "", id="nothing is known yet: it waits"),
        pytest.param(tfjob(("Created", "made")), "Waiting", "", id="a job that was only created waits"),
        pytest.param(tfjob(("Created", "made"), waits="2 of 3 fit"), "Waiting", "2 of 3 fit",
                     id="why it waits is what the scheduler says"),
        pytest.param(tfjob(("Created", "made"), ("Running", "runs")), "Running", "", id="it runs: nothing to explain"),
        pytest.param(tfjob(("Running", "runs"), trouble="worker-0: exit code 3"), "Running", "worker-0: exit code 3",
                     id="it should run, and its replicas do not"),
        pytest.param(tfjob(("Created", "made"), waits="2 of 3 fit", trouble="no image"), "Waiting", "2 of 3 fit",
                     id="the scheduler is asked first"),
        pytest.param(tfjob(("Failed", "1 failed"), trouble="no image"), "Failed", "1 failed",
                     id="what is wrong with those that are left does not matter at the end"),
        pytest.param(tfjob(replicaStatuses={"Worker": {"active": 1}}), "Running", "",
                     id="a replica that is active is enough to run"),
        pytest.param(tfjob(("Restarting", "again")), "Restarting", "again", id="restarting says why"),
        pytest.param(tfjob(("Suspended", "asleep")), "Suspended", "asleep", id="suspended"),
        pytest.param(tfjob(("Running", "runs"), ("Succeeded", "done")), "Succeeded", "", id="the end wins"),
        pytest.param(tfjob(("Failed", "1 failed")), "Failed", "1 failed", id="failed, with the words of the condition"),
        pytest.param(tfjob(("Failed", "1 failed"), postMortem=FIRST), "Failed", "worker-1: killed for lack of memory",
                     id="failed, with the replica that failed first where it is known"),
        pytest.param(batch(), "Waiting", "", id="a plain Job waits"),
        pytest.param(batch(active=1), "Running", "", id="a plain Job runs"),
        pytest.param(batch(conditions=[{"type": "Complete", "status": "True"}]), "Succeeded", "",
                     id="a plain Job is called complete"),
        pytest.param(Job(TFJOBS, {"metadata": {"name": "a"}, "spec": None, "status": None}), "Waiting", "",
                     id="an object without anything"),
    ],
)
def test_state(job: Job, state: str, why: str) -> None:
    assert (state, why) == (job.state, job.why)


def test_roles_are_counted() -> None:
    job = tfjob(replicaStatuses={"PS": {"active": 2}, "Worker": {"failed": 1}})

    assert [Role("PS", 2, active=2), Role("Worker", 1, failed=1)] == job.roles()
    assert [Role("pod", 2, succeeded=1)] == batch(succeeded=1).roles()
    assert (3, 2, 1) == (job.summary()["replicas"], job.summary()["active"], job.summary()["failed"])


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param(TFJOBS, True, id="a kind of kubeflow whose name ends in Job"),
        pytest.param(BATCH_JOBS, True, id="a plain Job"),
        pytest.param(Resource("kubeflow.org", "v1", "notebooks", "Notebook"), False, id="another kind of kubeflow"),
        pytest.param(Resource("batch", "v1", "cronjobs", "CronJob"), False, id="another kind of batch"),
    ],
)
def test_what_a_job_is(resource: Resource, expected: bool) -> None:
    assert expected is is_job(resource)


def test_the_launcher_of_an_mpi_job_is_a_part_of_it() -> None:
    owner: Object = {"kind": "MPIJob", "name": "a", "uid": "1", "controller": True}

    assert Job(BATCH_JOBS, {"metadata": {"name": "a", "ownerReferences": [owner]}}).owned
    assert not batch().owned


