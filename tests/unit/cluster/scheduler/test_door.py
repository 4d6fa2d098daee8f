"""Which queues are refused: by the function, and by the embedded API server that asks it."""

from typing import Any

import pytest

from trainmaster.api import groups
from trainmaster.api.meta import Object
from trainmaster.cluster.scheduler import door
from trainmaster.kube.errors import Forbidden
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded
from trainmaster.testing.scheduling import line


def placed(names: str, weights: str) -> Object:
    made = line("q")
    made["metadata"]["annotations"] = {"volcano.sh/hierarchy": names, "volcano.sh/hierarchy-weights": weights}
    return made


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
    answer = door.judged({"uid": "1", "operation": "CREATE", "name": "q", "object": queue})

    assert (not words, True) == (answer["allowed"], words in answer.get("status", {}).get("message", ""))


@pytest.mark.parametrize(("name", "allowed"), [
    pytest.param("default", False, id="that of all who name none"), pytest.param("root", False, id="that above all"),
    pytest.param("mine", True, id="any other"),
])
def test_what_may_be_deleted(name: str, allowed: bool) -> None:
    answer: dict[str, Any] = door.judged({"uid": "1", "operation": "DELETE", "name": name, "oldObject": line(name)})

    assert allowed == answer["allowed"]


async def test_the_embedded_server_asks_at_every_door() -> None:
    async with embedded(VirtualClock(), judges=[(door.CONFIGURATION, door.judged)]) as cluster:
        await cluster.install(groups.definitions())
        client, kind = cluster.client(), {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        good: Object = {**kind, "metadata": {"name": "default"}, "spec": {"capability": {"cpu": "2"}}}
        await client.create(groups.VOLCANO_QUEUES, good)

        with pytest.raises(Forbidden, match="deserved should less equal than capability"):
            await client.patch(groups.VOLCANO_QUEUES, "default", "", {"spec": {"deserved": {"cpu": "3"}}})
        with pytest.raises(Forbidden, match="`default` queue can not be deleted"):
            await client.delete(groups.VOLCANO_QUEUES, "default")
