"""How the list of conditions changes."""

from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.unit.engine.world import NOON

from trainmaster.api.policy import Condition, ConditionType, JobStatus
from trainmaster.engine.conditions import put

CREATED, RUNNING, RESTARTING = ConditionType.CREATED, ConditionType.RUNNING, ConditionType.RESTARTING
SUCCEEDED, FAILED, SUSPENDED = ConditionType.SUCCEEDED, ConditionType.FAILED, ConditionType.SUSPENDED
LATER = NOON + timedelta(minutes=1)


def said(*kinds: ConditionType) -> JobStatus:
    status = JobStatus()
    for kind in kinds:
        status = put(status, kind, f"TFJob{kind.value}", "", NOON)
    return status


def words(status: JobStatus) -> list[str]:
    return [f"{found.type}={found.status}" for found in status.conditions]


@pytest.mark.parametrize(("before", "new", "expected"), [
    pytest.param([], CREATED, ["Created=True"], id="the first one"),
    pytest.param([CREATED], RUNNING, ["Created=True", "Running=True"], id="a new one is appended"),
    pytest.param([CREATED, RUNNING], RESTARTING, ["Created=True", "Restarting=True"], id="restarting replaces running"),
    pytest.param([CREATED, RESTARTING], RUNNING, ["Created=True", "Running=True"], id="running replaces restarting"),
    pytest.param([CREATED, RUNNING], SUCCEEDED, ["Created=True", "Running=False", "Succeeded=True"],
                 id="success makes running false and leaves it in the list"),
    pytest.param([CREATED, RUNNING], FAILED, ["Created=True", "Running=False", "Failed=True"],
                 id="failure makes running false and leaves it in the list"),
    pytest.param([CREATED], SUCCEEDED, ["Created=True", "Succeeded=True"], id="a fast job may skip running"),
    pytest.param([CREATED, RESTARTING], FAILED, ["Created=True", "Restarting=True", "Failed=True"],
                 id="failure leaves restarting as it is"),
    pytest.param([CREATED, FAILED], RUNNING, ["Created=True", "Failed=True"], id="nothing changes after a failure"),
    pytest.param([CREATED, SUCCEEDED], FAILED, ["Created=True", "Succeeded=True"], id="nor after a success (B-12)"),
])
def test_what_the_list_becomes(before: list[ConditionType], new: ConditionType, expected: list[str]) -> None:
    assert expected == words(put(said(*before), new, f"TFJob{new.value}", "", LATER))


def test_saying_the_same_again_changes_nothing_not_even_the_message() -> None:
    before = put(JobStatus(), RUNNING, "TFJobRunning", "one", NOON)

    assert before == put(before, RUNNING, "TFJobRunning", "two", LATER)


def test_another_reason_with_the_same_status_keeps_the_time_of_transition() -> None:
    before = put(JobStatus(), SUSPENDED, "A", "", NOON)

    after = put(before, SUSPENDED, "B", "", LATER).conditions[0]

    assert (LATER, NOON) == (after.last_update_time, after.last_transition_time)


def test_another_status_is_a_transition_and_moves_to_the_end() -> None:
    before = said(CREATED, SUSPENDED, RUNNING)

    after = put(before, SUSPENDED, "TFJobResumed", "", LATER, true=False)

    assert ["Created=True", "Running=True", "Suspended=False"] == words(after)
    assert LATER == after.conditions[-1].last_transition_time


def test_the_end_leaves_the_times_of_running_alone() -> None:
    after = put(said(RUNNING), FAILED, "TFJobFailed", "", LATER)

    assert replace(said(RUNNING).conditions[0], status="False") == after.conditions[0]


def test_a_condition_that_is_not_true_does_not_end_a_job() -> None:
    assert not JobStatus(conditions=(Condition(type="Failed", status="False"),)).finished
