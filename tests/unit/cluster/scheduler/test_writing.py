"""What is written about groups, and that nothing is written twice."""

from datetime import timedelta

from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.amounts import ONE
from trainmaster.cluster.scheduler.dialects import COSCHEDULING, T9K, VOLCANO
from trainmaster.cluster.scheduler.settings import Condition, Verdict
from trainmaster.cluster.scheduler.writing import queue_status, status_patch, t9k_queue_status
from trainmaster.testing.scheduling import NOW, decided, gang, line, machine, members, snapshot


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


def t9k_verdict(least: int, pods: int, gpus: int, status: Object | None = None) -> Verdict:
    raw = {**gang("a", least, dialect=T9K, phase=""), "status": status or {}}
    there = members("a", "w", pods, dialect=T9K, asks={"gpu": 1})
    (found,) = decided(snapshot([machine(gpu=gpus)], there, [raw], [], dialect=T9K)).verdicts
    return found


def said(status: Object) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_groups_of_t9k_say_whether_there_are_enough_and_whether_they_were_ever_scheduled() -> None:
    few = status_patch(t9k_verdict(2, 1, 4), T9K, NOW, "1")
    assert few is not None
    assert {"SufficientGroupMember": ("False", "InsufficientMemberPod")} == said(few["status"])

    started = status_patch(t9k_verdict(2, 2, 4, few["status"]), T9K, NOW, "2")
    assert started is not None
    assert {"SufficientGroupMember": ("True", "SufficientMemberPods"),
            "GroupScheduled": ("True", "PodGroupScheduled")} == said(started["status"])
    assert {"nvidia.com/gpu": "2"} == started["status"]["allocated"]

    lost = status_patch(t9k_verdict(2, 1, 4, {**few["status"], **started["status"]}), T9K, NOW, "3")
    assert lost is not None
    assert ("True", "PodGroupScheduled") == said(lost["status"])["GroupScheduled"]


def test_queues_of_t9k_say_what_they_have_and_when_it_is_nearly_all() -> None:
    queue, one = line("a"), t9k_verdict(1, 1, 4)
    calm = t9k_queue_status(queue, {"cpu": 9 * ONE}, {"cpu": 10 * ONE}, [one], NOW, "1")
    assert calm is not None
    assert {"QueueClosed": ("False", "QueueOpen"),
            "ResourcePressure": ("False", "QueueHasNoResourcePressure")} == said(calm["status"])
    assert ({"cpu": "9"}, {"total": 1}, 1) == (
        calm["status"]["allocated"], calm["status"]["podGroups"], calm["status"]["pods"]["pending"])

    queue["status"] = calm["status"]
    assert t9k_queue_status(queue, {"cpu": 9 * ONE}, {"cpu": 10 * ONE}, [one], NOW, "2") is None
    full = t9k_queue_status(queue, {"cpu": 10 * ONE}, {"cpu": 10 * ONE}, [one], NOW, "3")
    assert full is not None
    assert "True" == said(full["status"])["ResourcePressure"][0]


def test_a_closing_queue_is_closed_when_the_last_group_is_gone() -> None:
    assert queue_status(line("q", state="Closing"), {}, {"running": 1}) == {"status": {"running": 1}}
    assert queue_status(line("q", state="Closing"), {}, {}) == {"status": {"state": "Closed"}}


def test_groups_of_scheduler_plugins_say_whose_pods_they_have_and_when_they_wait_for_days() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "1"}
    pods = members("a", "w", 1, dialect=COSCHEDULING, asks={"gpu": 1})
    pods[0]["metadata"]["ownerReferences"] = [owner]
    raw = gang("a", 1, dialect=COSCHEDULING, phase="Scheduling")
    raw["status"]["scheduleStartTime"] = "2026-01-01T00:00:00Z"
    there = snapshot([machine()], pods, [raw], [], dialect=COSCHEDULING)

    (early,) = decided(there, now=NOW).verdicts
    (late,) = decided(there, now=NOW + timedelta(hours=36)).verdicts

    assert ([], ["schedule time longer than 48 hours"]) == (
        [each.message for each in early.events], [each.message for each in late.events])
    patch = status_patch(early, COSCHEDULING, NOW, "1")
    assert patch is not None
    assert "default/train" == patch["status"]["occupiedBy"]
