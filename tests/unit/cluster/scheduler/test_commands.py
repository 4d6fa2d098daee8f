"""Orders about queues: what they come to, and that they are carried out once and told."""

import pytest
from tests.unit.cluster.scheduler.test_loop import gang, scheduling

from trainmaster.api import groups
from trainmaster.api.core import EVENTS
from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler.commands import CLOSED_BY_PARENT, Change, about_queue, changes
from trainmaster.kube.client import Client
from trainmaster.testing.scheduling import line


def below(name: str, parent: str, *, state: str = "Open", by_parent: bool = False) -> Object:
    made = line(name, state=state, parent=parent)
    if by_parent:
        made["metadata"]["annotations"] = {CLOSED_BY_PARENT: "true"}
    return made


@pytest.mark.parametrize(("action", "queues", "busy", "expected"), [
    pytest.param("CloseQueue", [line("q")], [], [Change("q", "Closed")], id="a queue without groups is closed at once"),
    pytest.param("CloseQueue", [line("q")], ["q"], [Change("q", "Closing")], id="a queue with groups is closing"),
    pytest.param("CloseQueue", [line("q", state="Closed")], [], [], id="what is closed stays closed"),
    pytest.param("OpenQueue", [line("q", state="Closed")], [], [Change("q", "Open")], id="a closed queue is opened"),
    pytest.param("OpenQueue", [line("q", state="Closing")], ["q"], [Change("q", "Open")], id="and one that is closing"),
    pytest.param("OpenQueue", [line("q")], [], [], id="what is open stays open"),
    pytest.param("CloseQueue", [line("q"), below("a", "q"), below("b", "a")], ["b"],
                 [Change("q", "Closed"), Change("a", "Closed", True), Change("b", "Closing", True)],
                 id="those below are closed with it, down to the last"),
    pytest.param("OpenQueue", [line("q", state="Closed"), below("a", "q", state="Closed", by_parent=True),
                               below("b", "q", state="Closed")], [],
                 [Change("q", "Open"), Change("a", "Open", False)],
                 id="those that were closed with it are opened with it, others not"),
    pytest.param("CloseQueue", [below("q", "a"), below("a", "q")], [],
                 [Change("q", "Closed"), Change("a", "Closed", True)], id="a circle has an end"),
    pytest.param("SyncQueue", [line("q")], [], [], id="another word is a look"),
])
def test_what_an_order_comes_to(action: str, queues: list[Object], busy: list[str], expected: list[Change]) -> None:
    there = [{"metadata": {"name": f"g{number}"}, "spec": {"queue": name}} for number, name in enumerate(busy)]

    assert (expected, "") == changes(action, "q", queues, there)


@pytest.mark.parametrize(("action", "name", "words"), [
    pytest.param("CloseQueue", "root", "cannot be closed", id="the queue above all"),
    pytest.param("OpenQueue", "inner", "open that one first", id="a queue below a closed one"),
    pytest.param("OpenQueue", "nowhere", "there is no queue nowhere", id="a queue that is not there"),
])
def test_orders_that_cannot_be_followed_say_why(action: str, name: str, words: str) -> None:
    queues = [line("root"), line("outer", state="Closed"), below("inner", "outer", state="Closed")]

    done, problem = changes(action, name, queues, [])

    assert ([], True) == (done, words in problem)


@pytest.mark.parametrize(("target", "ours"), [
    pytest.param({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q"}, True, id="a queue"),
    pytest.param({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"}, False, id="a job"),
    pytest.param({"apiVersion": "scheduler.tensorstack.dev/v1beta1", "kind": "Queue"}, False, id="somebody else's"),
    pytest.param("q", False, id="a word"),
])
def test_only_orders_about_queues_are_ours(target: object, ours: bool) -> None:
    assert ours == about_queue({"action": "CloseQueue", "target": target})


def order(action: str, queue: str) -> Object:
    return {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "action": action,
            "metadata": {"generateName": f"{queue}-{action.lower()}-", "namespace": "default"},
            "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue}}


async def state(client: Client, name: str) -> str:
    return str((await client.get(groups.VOLCANO_QUEUES, name))["status"]["state"])


async def test_an_order_is_carried_out_deleted_and_told() -> None:
    async with scheduling() as (clock, _, client):
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {}}
        await client.create(groups.VOLCANO_QUEUES, queue)
        mine = gang("g", 1)
        mine["spec"]["queue"] = "q"
        await client.create(groups.VOLCANO_GROUPS, mine)
        await clock.settle()
        await client.create(groups.VOLCANO_COMMANDS, order("CloseQueue", "q"))
        await clock.settle()

        assert "Closing" == await state(client, "q")
        assert [] == (await client.list(groups.VOLCANO_COMMANDS, "default")).items
        said = [(event["reason"], event["message"]) for event in (await client.list(EVENTS, "default")).items
                if event["involvedObject"]["kind"] == "Queue"]
        begun = ("Start to execute command CloseQueue, and clean it up to make sure executed not more than once.")
        assert [("CloseQueue", "Close queue succeed"), ("CommandIssued", begun)] == sorted(said)

        await client.delete(groups.VOLCANO_GROUPS, "g", "default")
        await clock.settle()
        assert "Closed" == await state(client, "q")

        await client.create(groups.VOLCANO_COMMANDS, order("OpenQueue", "q"))
        await clock.settle()
        assert "Open" == await state(client, "q")


async def test_an_order_about_a_job_is_left_to_others() -> None:
    async with scheduling() as (clock, _, client):
        about_job = order("AbortJob", "j")
        about_job["target"] |= {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
        await client.create(groups.VOLCANO_COMMANDS, about_job)
        await clock.settle()

        assert 1 == len((await client.list(groups.VOLCANO_COMMANDS, "default")).items)
