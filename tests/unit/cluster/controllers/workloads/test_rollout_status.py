"""What a Deployment says of itself: available, in progress, stuck, paused; and since when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainmaster.api.meta import Object, timestamp
from trainmaster.cluster.controllers.workloads.rollout import Sizes
from trainmaster.cluster.controllers.workloads.rollout_status import look_again_at, status

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EARLIER = NOON - timedelta(seconds=30)
LIMIT = 60
SAID = 'ReplicaSet "web-new" has successfully progressed.'


def deployment(said: tuple[str, str] | None = None, since: datetime = EARLIER, counts: tuple[int, int, int] = (0, 0, 0),
               **spec: Any) -> Object:
    """With what its condition Progressing said last: truth and reason. Counts are all, new, and available pods."""
    conditions = [{"type": "Progressing", "status": said[0], "reason": said[1], "message": SAID,
                   "lastUpdateTime": timestamp(since), "lastTransitionTime": timestamp(since)}] if said else []
    return {"metadata": {"name": "web", "generation": 1},
            "spec": {"replicas": 4, "progressDeadlineSeconds": LIMIT, **spec},
            "status": {"conditions": conditions, "replicas": counts[0], "updatedReplicas": counts[1],
                       "readyReplicas": counts[2], "availableReplicas": counts[2]}}


def one(name: str, size: int, available: int, **status: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"replicas": size},
            "status": {"replicas": size, "readyReplicas": available, "availableReplicas": available, **status}}


def step(found: Object, new: int = 4, available: int = 4, old: int = 0, *, creates: bool = False) -> Sizes:
    made = one("web-new", new, available)
    return Sizes(found, made, [one("web-old", old, old)] if old else [], made if creates else None)


def progressing(taken: Sizes, failure: str = "") -> tuple[str, str, str] | None:
    found = [each for each in status(taken, NOON, failure)["conditions"] if each["type"] == "Progressing"]
    return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else None


MOVES = ("True", "ReplicaSetUpdated", 'ReplicaSet "web-new" is progressing.')
DONE = ("True", "NewReplicaSetAvailable", SAID)
LATE = ("False", "ProgressDeadlineExceeded", 'ReplicaSet "web-new" has timed out progressing.')


@pytest.mark.parametrize(("expected", "taken"), [
    pytest.param(("True", "NewReplicaSetCreated", 'Created new replica set "web-new"'),
                 step(deployment(), 0, 0, creates=True), id="its set was just made"),
    pytest.param(("True", "FoundNewReplicaSet", 'Found new replica set "web-new"'), step(deployment(), 0, 0),
                 id="its set is there, and whoever made it died before he could say so"),
    pytest.param(MOVES, step(deployment(("True", "NewReplicaSetCreated")), 2, 1), id="more pods are there than before"),
    pytest.param(MOVES, step(deployment(("True", "ReplicaSetUpdated"), counts=(5, 2, 4)), 2, 2, old=2),
                 id="fewer old ones are there than before"),
    pytest.param(("True", "ReplicaSetUpdated", SAID),
                 step(deployment(("True", "ReplicaSetUpdated"), counts=(2, 2, 1)), 2, 0),
                 id="nothing moves, and there is time left"),
    pytest.param(LATE, step(deployment(("True", "ReplicaSetUpdated"), NOON - timedelta(seconds=LIMIT + 1), (2, 2, 1)),
                            2, 1), id="nothing moves, and the time is up"),
    pytest.param(MOVES, step(deployment(("False", "ProgressDeadlineExceeded"), counts=(2, 2, 1)), 3, 1),
                 id="late, and it moves again"),
    pytest.param(DONE, step(deployment(("True", "ReplicaSetUpdated"))), id="all are new and available"),
    pytest.param(DONE, step(deployment(("True", "NewReplicaSetAvailable"), counts=(4, 4, 4)), 4, 3),
                 id="one that was done stays so when a pod is lost"),
    pytest.param(("Unknown", "DeploymentPaused", "Deployment is paused"),
                 step(deployment(("True", "ReplicaSetUpdated"), paused=True), 2, 1), id="it is paused"),
    pytest.param(("Unknown", "DeploymentResumed", "Deployment is resumed"),
                 step(deployment(("Unknown", "DeploymentPaused"), counts=(2, 2, 1)), 2, 1), id="it goes on"),
    pytest.param(None, step(deployment(("True", "ReplicaSetUpdated"), progressDeadlineSeconds=2**31 - 1)),
                 id="without a deadline nothing is said"),
])
def test_how_a_rollout_goes(expected: tuple[str, str, str] | None, taken: Sizes) -> None:
    assert expected == progressing(taken)


def test_a_set_that_could_not_be_made_is_told_with_the_reason() -> None:
    assert ("False", "ReplicaSetCreateError", 'Failed to create new replica set "web-new": no room') == progressing(
        step(deployment(), 0, 0, creates=True), "no room")


@pytest.mark.parametrize(("expected", "available"), [
    pytest.param("True", 3, id="one of four may be missing"),
    pytest.param("False", 2, id="two may not"),
])
def test_whether_it_is_available(expected: str, available: int) -> None:
    found = status(step(deployment(), available=available), NOON)["conditions"]

    assert expected == next(each["status"] for each in found if each["type"] == "Available")


def test_a_failure_of_a_set_is_passed_on_and_forgotten_with_it() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    fails = Sizes(deployment(), one("web-new", 4, 0, conditions=[failure]), [])
    told = {**deployment(), "status": status(fails, EARLIER)}

    assert ("FailedCreate", "quota") == next(
        (each["reason"], each["message"]) for each in told["status"]["conditions"] if each["type"] == "ReplicaFailure")
    assert "ReplicaFailure" not in {each["type"] for each in status(step(told), NOON)["conditions"]}


def test_the_truth_keeps_its_time_when_only_the_reason_changes() -> None:
    found = next(each for each in status(step(deployment(("True", "ReplicaSetUpdated"))), NOON)["conditions"]
                 if each["type"] == "Progressing")

    assert (timestamp(EARLIER), timestamp(NOON)) == (found["lastTransitionTime"], found["lastUpdateTime"])


@pytest.mark.parametrize(("expected", "found"), [
    pytest.param(EARLIER + timedelta(seconds=LIMIT + 1), deployment(("True", "ReplicaSetUpdated")),
                 id="under way: a second after it would be late"),
    pytest.param(None, deployment(("True", "NewReplicaSetAvailable")), id="done"),
    pytest.param(None, deployment(("False", "ProgressDeadlineExceeded")), id="late already"),
    pytest.param(None, deployment(("Unknown", "DeploymentPaused")), id="paused"),
    pytest.param(None, deployment(("True", "ReplicaSetUpdated"), progressDeadlineSeconds=None), id="no deadline"),
    pytest.param(None, deployment(), id="nothing was said yet"),
])
def test_when_to_look_again(expected: datetime | None, found: Object) -> None:
    assert expected == look_again_at(found, found["status"])
