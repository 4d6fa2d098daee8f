"""Which replicas come back: the decision table for one pod that ended (A.7), and what a pod means for its job."""

import pytest
from msgspec.structs import replace

from trainmaster.api.policy import PostMortem, ReplicaMemory, ReplicaSpec, RestartPolicy
from trainmaster.engine.observed import Pod
from trainmaster.engine.restart import State, comes_back, state_of
from trainmaster.frameworks.framework import Role

NEVER, ON_FAILURE = RestartPolicy.NEVER, RestartPolicy.ON_FAILURE
ALWAYS, EXIT_CODE = RestartPolicy.ALWAYS, RestartPolicy.EXIT_CODE


def pod(phase: str = "Failed", code: int | None = None, *, deleting: bool = False) -> Pod:
    return Pod("mnist-worker-0", "a", "job-1", "worker", 0, phase, deleting=deleting, exit_code=code)


def worker(rule: RestartPolicy) -> Role:
    return Role("Worker", ReplicaSpec(replicas=1, restart_policy=rule))


@pytest.mark.parametrize(("rule", "code", "expected"), [
    pytest.param(NEVER, 1, False, id="Never: no code brings it back"),
    pytest.param(NEVER, 137, False, id="Never: not even one that another try could mend"),
    pytest.param(NEVER, None, False, id="Never: nor an eviction"),
    pytest.param(ON_FAILURE, 1, True, id="OnFailure: a pod that failed in spite of its kubelet"),
    pytest.param(ON_FAILURE, None, True, id="OnFailure: evicted"),
    pytest.param(ALWAYS, 1, True, id="Always: the same"),
    pytest.param(EXIT_CODE, 1, False, id="ExitCode: 1 is the program's own word"),
    pytest.param(EXIT_CODE, 127, False, id="ExitCode: 127 is the last that is for good"),
    pytest.param(EXIT_CODE, 128, True, id="ExitCode: 128 is the first worth another try"),
    pytest.param(EXIT_CODE, 130, True, id="ExitCode: 130 comes back"),
    pytest.param(EXIT_CODE, 138, True, id="ExitCode: 138 comes back"),
    pytest.param(EXIT_CODE, 255, True, id="ExitCode: 255 comes back"),
    pytest.param(EXIT_CODE, None, True, id="ExitCode: without a code it was not the program (B-45)"),
])
def test_which_failed_replicas_come_back(rule: RestartPolicy, code: int | None, expected: bool) -> None:
    assert expected == comes_back(pod(code=code), rule)


@pytest.mark.parametrize(("rule", "given", "expected"), [
    pytest.param(NEVER, pod("Pending"), State.WAITING, id="pending"),
    pytest.param(NEVER, pod("Unknown"), State.WAITING, id="its node does not answer"),
    pytest.param(NEVER, pod("Running"), State.ACTIVE, id="running"),
    pytest.param(NEVER, pod("Succeeded", 0), State.SUCCEEDED, id="ended well"),
    pytest.param(NEVER, pod("Succeeded", 0, deleting=True), State.SUCCEEDED, id="ended well, being removed"),
    pytest.param(NEVER, pod("Pending", deleting=True), State.WAITING, id="deleted before it ran: just made again"),
    pytest.param(NEVER, pod("Running", deleting=True), State.FAILED, id="deleted while it ran, Never: failed (B-08)"),
    pytest.param(ON_FAILURE, pod("Running", deleting=True), State.RESTARTING,
                 id="deleted while it ran, OnFailure: comes back (B-08)"),
    pytest.param(EXIT_CODE, pod("Running", deleting=True), State.RESTARTING,
                 id="deleted while it ran, ExitCode: comes back (B-08)"),
    pytest.param(EXIT_CODE, pod("Failed", 1, deleting=True), State.RESTARTING,
                 id="what a program says to SIGTERM is not its verdict"),
    pytest.param(EXIT_CODE, pod("Failed", 1), State.FAILED, id="failed for good"),
    pytest.param(EXIT_CODE, pod("Failed", 137), State.RESTARTING, id="failed, comes back"),
])
def test_what_a_pod_means(rule: RestartPolicy, given: Pod, expected: State) -> None:
    assert expected is state_of(given, worker(rule), PostMortem())


def test_a_pod_that_we_sent_away_means_nothing_however_it_ends() -> None:
    known = PostMortem(leaving=("a",))

    for phase in ("Running", "Failed", "Succeeded"):
        assert State.LEAVING is state_of(pod(phase), worker(NEVER), known)


def test_what_was_decided_once_stays_decided_while_the_pod_goes() -> None:
    """It was seen while it was deleted and counted as a restart; that it then ends with 0 does not undo that."""
    known = replace(PostMortem(), replicas={"worker-0": ReplicaMemory(uid="a", restarts=1)})

    assert State.RESTARTING is state_of(pod("Succeeded", 0, deleting=True), worker(EXIT_CODE), known)
