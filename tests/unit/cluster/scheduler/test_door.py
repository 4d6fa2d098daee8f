"""Which queues and groups are refused, and what is filled in: by the functions, and by the server that asks them."""

import base64
from typing import Any

import orjson
import pytest

from trainmaster.api import groups
from trainmaster.api.core import NAMESPACES
from trainmaster.api.meta import Object, Resource, name_of
from trainmaster.cluster.scheduler import door
from trainmaster.kube.errors import Forbidden
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded
from trainmaster.testing.scheduling import gang, line


class There:
    """What is stored."""

    def __init__(self, *queues: Object, space: Object | None = None) -> None:
        self._queues, self._space = queues, space

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:  # noqa: ARG002
        if resource is NAMESPACES:
            return self._space
        return next((queue for queue in self._queues if name_of(queue) == name), None)

    def all(self, resource: Resource) -> list[Object]:  # noqa: ARG002
        return list(self._queues)


NOTHING = There()


def placed(names: str, weights: str, name: str = "q") -> Object:
    made = line(name)
    made["metadata"]["annotations"] = {"volcano.sh/hierarchy": names, "volcano.sh/hierarchy-weights": weights}
    return made


def message(answer: Object) -> str:
    return str(answer.get("status", {}).get("message", ""))


def patch(answer: Object) -> list[Any]:
    return list(orjson.loads(base64.b64decode(answer["patch"]))) if "patch" in answer else []


@pytest.mark.parametrize(("queue", "words"), [
    pytest.param(line("q", weight=3, guarantee={"gpu": 1}, deserved={"gpu": 2}, capability={"gpu": 2}), "",
                 id="what is guaranteed, deserved and possible fits together"),
    pytest.param(line("q", deserved={"gpu": 3}, capability={"gpu": 2}), "deserved should less equal than capability",
                 id="it deserves more than it may have"),
    pytest.param(line("q", guarantee={"gpu": 3}, deserved={"gpu": 2}), "guarantee should less equal than deserved",
                 id="it is guaranteed more than it deserves"),
    pytest.param(line("q", guarantee={"cpu": 3}, capability={"cpu": 2}), "guarantee should less equal than capability",
                 id="it is guaranteed more than it may have"),
    pytest.param(line("q", deserved={"gpu": 3}, capability={"cpu": 2}), "", id="they speak of different things"),
    pytest.param(placed("root/a/b", "1/2/4"), "", id="a place in the hierarchy"),
    pytest.param(placed("root/a/b", "1/2"), "must have the same length", id="a weight is missing"),
    pytest.param(placed("root/a", "1/x"), "numbers as weights", id="a weight is no number"),
    pytest.param(placed("root//b", "1/2/4"), "names between the slashes", id="a place has no name"),
    pytest.param(line("q", state="Ajar"), "state must be one of Open, Closed", id="a state that there is not"),
])
def test_what_is_let_in(queue: Object, words: str) -> None:
    answer = door.judge_queue({"uid": "1", "operation": "CREATE", "name": "q", "object": queue}, NOTHING)

    assert (not words, True) == (answer["allowed"], words in message(answer))


@pytest.mark.parametrize(("queue", "others", "words"), [
    pytest.param(line("q", parent="a"), [line("a")], "", id="a queue below another"),
    pytest.param(line("q", parent="root"), [], "", id="a queue below the root, which may be made later"),
    pytest.param(line("q", parent="a"), [], "there is no queue a to be its parent", id="a parent that is not there"),
    pytest.param(line("q", parent="q"), [line("q")], "cannot be below itself", id="a queue below itself"),
    pytest.param(line("q", parent="a"), [line("a", parent="q"), line("q")], "q is below a is below q",
                 id="two below each other"),
    pytest.param(line("q", parent="d"), [line("d", parent="c"), line("c", parent="b"), line("b", parent="root")], "",
                 id="five levels"),
    pytest.param(line("q", parent="e"), [line("e", parent="d"), line("d", parent="c"), line("c", parent="b"),
                                         line("b", parent="root")], "there may be 5", id="six levels"),
    pytest.param(placed("root/a", "1/2"), [placed("root/a/b", "1/2/4", "other")],
                 "root/a is not allowed to be in the sub path of root/a/b of queue other",
                 id="a place that has places below it"),
    pytest.param(placed("root/a/b", "1/2/4"), [placed("root/a", "1/2", "other")], "of queue other",
                 id="a place below a queue's place"),
    pytest.param(placed("root/ab", "1/2"), [placed("root/a", "1/2", "other")], "", id="a name that begins alike"),
])
def test_what_is_let_in_beside_others(queue: Object, others: list[Object], words: str) -> None:
    answer = door.judge_queue({"uid": "1", "operation": "CREATE", "name": "q", "object": queue}, There(*others))

    assert (not words, True) == (answer["allowed"], words in message(answer)), message(answer)


@pytest.mark.parametrize(("name", "words"), [
    pytest.param("default", "`default` queue can not be deleted", id="that of all who name none"),
    pytest.param("root", "`root` queue can not be deleted", id="that above all"),
    pytest.param("a", "it has 2 child queues: b, c", id="one with others below it"),
    pytest.param("mine", "", id="any other"),
])
def test_what_may_be_deleted(name: str, words: str) -> None:
    there = There(line("a"), line("c", parent="a"), line("b", parent="a"))
    answer = door.judge_queue({"uid": "1", "operation": "DELETE", "name": name, "oldObject": line(name)}, there)

    assert (not words, True) == (answer["allowed"], words in message(answer))


@pytest.mark.parametrize(("queue", "expected"), [
    pytest.param(line("q"), [("/spec/parent", "root")], id="the root is above who names nobody"),
    pytest.param({"metadata": {"name": "q"}}, [("/spec", {"parent": "root"})], id="also without a spec"),
    pytest.param(line("q", parent="a"), [], id="a parent is left"),
    pytest.param(line("root"), [], id="nobody is above the root"),
    pytest.param(placed("a/b", "2/4"), [
        ("/spec/parent", "root"), ("/metadata/annotations/volcano.sh~1hierarchy", "root/a/b"),
        ("/metadata/annotations/volcano.sh~1hierarchy-weights", "1/2/4")], id="a hierarchy begins at the root"),
    pytest.param(placed("root/a", "1/4"), [("/spec/parent", "root")], id="one that begins there is left"),
])
def test_what_is_filled_in_of_queues(queue: Object, expected: list[tuple[str, Any]]) -> None:
    answer = door.complete_queue({"uid": "1", "operation": "CREATE", "object": queue}, NOTHING)

    assert expected == [(each["path"], each["value"]) for each in patch(answer)]


@pytest.mark.parametrize(("group", "annotation", "expected"), [
    pytest.param(gang("g", 1), "mine", "mine", id="a group that names no queue"),
    pytest.param(gang("g", 1, queue="default"), "mine", "mine", id="a group that names the default"),
    pytest.param(gang("g", 1, queue="other"), "mine", None, id="a group that names another"),
    pytest.param(gang("g", 1), "", None, id="a namespace that says nothing"),
])
def test_groups_go_into_the_queue_of_their_namespace(group: Object, annotation: str, expected: str | None) -> None:
    space: Object = {"metadata": {"name": "default"}}
    if annotation:
        space["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": annotation}
    answer = door.place_group({"uid": "1", "operation": "CREATE", "namespace": "default", "object": group},
                              There(space=space))

    assert ([expected] if expected else []) == [each["value"] for each in patch(answer)]


def of_a_job(group: Object) -> Object:
    group["metadata"]["ownerReferences"] = [{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "g",
                                             "uid": "1", "controller": True}]
    return group


@pytest.mark.parametrize(("state", "group", "allowed"), [
    pytest.param("Open", gang("g", 1, queue="q"), True, id="an open queue"),
    pytest.param("Closed", gang("g", 1, queue="q"), False, id="a closed queue"),
    pytest.param("Closing", gang("g", 1, queue="q"), False, id="a queue that is closing"),
    pytest.param("Closed", of_a_job(gang("g", 1, queue="q")), True, id="a job's group waits and says why"),
    pytest.param("Closed", gang("g", 1, queue="later"), True, id="a queue that may be made later"),
])
def test_closed_queues_take_no_groups(state: str, group: Object, allowed: bool) -> None:
    answer = door.judge_group({"uid": "1", "operation": "CREATE", "object": group}, There(line("q", state=state)))

    words = "" if allowed else f"can only submit PodGroup to queue with state `Open`, queue `q` status is `{state}`"
    assert (allowed, words) == (answer["allowed"], message(answer))


async def test_the_embedded_server_asks_at_every_door() -> None:
    async with embedded(VirtualClock(), judges=door.DOORS) as cluster:
        await cluster.install(groups.definitions())
        client, kind = cluster.client(), {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        queues = groups.VOLCANO_QUEUES
        await client.create(queues, {**kind, "metadata": {"name": "root"}})
        good: Object = {**kind, "metadata": {"name": "default"}, "spec": {"capability": {"cpu": "2"}}}
        assert "root" == (await client.create(queues, good))["spec"]["parent"]
        await client.create(queues, {**kind, "metadata": {"name": "low"}, "spec": {"parent": "default"}})

        with pytest.raises(Forbidden, match="deserved should less equal than capability"):
            await client.patch(queues, "default", "", {"spec": {"deserved": {"cpu": "3"}}})
        with pytest.raises(Forbidden, match="`default` queue can not be deleted"):
            await client.delete(queues, "default")

        await client.patch(NAMESPACES, "default", "", {
            "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "low"}}})
        mine = gang("g", 1)
        del mine["metadata"]["uid"], mine["metadata"]["creationTimestamp"]
        assert "low" == (await client.create(groups.VOLCANO_GROUPS, mine))["spec"]["queue"]
        await client.patch(queues, "low", "", {"status": {"state": "Closed"}}, subresource="status")
        mine["metadata"]["name"] = "late"
        with pytest.raises(Forbidden, match="queue `low` status is `Closed`"):
            await client.create(groups.VOLCANO_GROUPS, mine)
        await client.delete(queues, "low")
