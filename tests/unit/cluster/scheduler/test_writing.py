"""What is written about groups, and that nothing is written twice."""

from datetime import timedelta

from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.dialects import VOLCANO
from trainmaster.cluster.scheduler.settings import Condition, Verdict
from trainmaster.cluster.scheduler.writing import status_patch
from trainmaster.testing.scheduling import NOW, gang


def verdict(raw: dict[str, object], message: str) -> Verdict:
    condition = Condition("Unschedulable", "NotEnoughResources", message)
    return Verdict(dialects.read_group(raw, VOLCANO), "Inqueue", condition=condition)


def test_a_condition_is_written_once_and_again_only_when_it_says_something_new() -> None:
    raw = gang("a", 2)
    first = status_patch(verdict(raw, "2 short"), VOLCANO, NOW, "decision-1")
    assert first is not None
    raw["status"].update(first["status"])

    later = NOW + timedelta(minutes=5)
    assert status_patch(verdict(raw, "2 short"), VOLCANO, later, "decision-2") is None
    again = status_patch(verdict(raw, "1 short"), VOLCANO, later, "decision-3")
    assert again is not None
    assert ["1 short"] == [each["message"] for each in again["status"]["conditions"]]
