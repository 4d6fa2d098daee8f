"""Who owns what after ordinary writes, as a client sees it."""

from typing import Any

import pytest
from tests.unit.cluster.apiserver.api import (
    DEFINITIONS,
    JOBS,
    MAPS,
    MERGE,
    PODS,
    Answer,
    Api,
    config_map,
    definition,
    job,
    pod,
)

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import shapes
from trainmaster.cluster.apiserver.mergeable import Unmergeable

ONE, MNIST = f"{MAPS}/m", f"{JOBS}/mnist"


def owners(thing: Object) -> dict[str, Any]:
    """The sets of an object by who owns them, how, and through which subresource."""
    return {" ".join(filter(None, (entry["manager"], entry["operation"], entry.get("subresource")))): entry["fieldsV1"]
            for entry in thing["metadata"].get("managedFields", ())}


async def patch(api: Api, path: str, body: Object, manager: str, **more: Any) -> Answer:
    answer = await api.send("PATCH", path, body, media=MERGE, query=f"fieldManager={manager}", **more)
    assert answer.code == 200, answer.body
    return answer


async def test_a_creation_owns_what_it_sends_and_the_defaults(api: Api) -> None:
    made = (await api.post(MAPS, config_map(a="1", labels={"x": "y"}), "fieldManager=me")).json

    entry = made["metadata"]["managedFields"][0]
    assert entry == {"manager": "me", "operation": "Update", "apiVersion": "v1",
                     "time": made["metadata"]["creationTimestamp"], "fieldsType": "FieldsV1", "fieldsV1": {
                         "f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {".": {}, "f:x": {}}}}}


async def test_a_pod_has_its_defaults_owned_and_not_what_admission_adds(api: Api) -> None:
    made = (await api.post(PODS, pod(), "fieldManager=me")).json

    spec = owners(made)["me Update"]["f:spec"]
    assert spec["f:containers"]['k:{"name":"c"}'].keys() == {
        ".", "f:name", "f:image", "f:imagePullPolicy", "f:resources", "f:terminationMessagePath",
        "f:terminationMessagePolicy"}
    assert "f:restartPolicy" in spec
    assert "f:priority" not in spec
    assert "f:status" not in owners(made)["me Update"]


@pytest.mark.parametrize(("agent", "query", "name"), [
    pytest.param("kubectl/v1.36.3 (linux/amd64)", "", "kubectl", id="the program, without one of its own"),
    pytest.param("kubectl/v1.36.3", "fieldManager=me", "me", id="the name that was given"),
    pytest.param("", "", "unknown", id="nobody knows"),
    pytest.param("x" * 200 + "/1", "", "x" * 128, id="a long name is cut"),
])
async def test_a_writer_has_a_name(api: Api, agent: str, query: str, name: str) -> None:
    made = (await api.post(MAPS, config_map(a="1"), query, headers={"user-agent": agent})).json

    assert list(owners(made)) == [f"{name} Update"]


async def test_a_long_name_is_refused(api: Api) -> None:
    answer = await api.post(MAPS, config_map(), "fieldManager=" + "x" * 129)

    assert (answer.code, answer.message) == (
        422, 'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes')


async def test_a_change_takes_what_it_changes_and_what_is_gone_is_nobodys(api: Api) -> None:
    await api.post(MAPS, config_map(a="1", b="1", c="1"), "fieldManager=first")
    changed = (await patch(api, ONE, {"data": {"a": "2", "b": None}}, "second")).json

    assert owners(changed) == {"first Update": {"f:data": {".": {}, "f:c": {}}},
                               "second Update": {"f:data": {"f:a": {}}}}


async def test_a_write_that_changes_nothing_changes_no_owner_and_no_revision(api: Api) -> None:
    made = (await api.post(MAPS, config_map(a="1"), "fieldManager=first")).json
    again = (await patch(api, ONE, {"data": {"a": "1"}}, "second")).json

    assert made == again


async def test_spec_and_status_are_owned_apart(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.post(JOBS, {**job(a=1), "status": {"x": 1}}, "fieldManager=user")
    found = (await patch(api, f"{MNIST}/status", {"spec": {"a": 2}, "status": {"y": 1}}, "operator")).json

    assert owners(found) == {"user Update": {"f:spec": {".": {}, "f:a": {}}},
                             "operator Update status": {"f:status": {".": {}, "f:y": {}}}}


@pytest.mark.parametrize("empty", [pytest.param([], id="no entry"), pytest.param([{}], id="an empty entry")])
async def test_entries_can_be_taken_away_and_stay_away(api: Api, empty: list[Object]) -> None:
    await api.post(MAPS, config_map(a="1"), "fieldManager=me")

    cleared = (await patch(api, ONE, {"metadata": {"managedFields": empty}}, "other")).json
    changed = (await patch(api, ONE, {"data": {"a": "2"}}, "other")).json

    assert (owners(cleared), owners(changed)) == ({}, {})


async def test_a_client_that_knows_nothing_of_entries_does_not_lose_them(api: Api) -> None:
    made = (await api.post(MAPS, config_map(a="1"), "fieldManager=me")).json
    bare = {**made, "metadata": {key: value for key, value in made["metadata"].items() if key != "managedFields"}}

    assert (await api.put(ONE, bare)).json == made


async def test_a_client_may_write_the_entries_itself(api: Api) -> None:
    made = (await api.post(MAPS, config_map(a="1"), "fieldManager=me")).json
    made["metadata"]["managedFields"][0]["manager"] = "you"

    assert owners((await api.put(ONE, made)).json) == {"you Update": {"f:data": {".": {}, "f:a": {}}}}


async def test_the_oldest_of_more_than_ten_writers_become_one(api: Api) -> None:
    await api.post(MAPS, config_map(w0="0"), "fieldManager=w0")
    for number in range(1, 13):
        await api.clock.advance(1)
        found = (await patch(api, ONE, {"data": {f"w{number}": "x"}}, f"w{number}")).json

    assert list(owners(found)) == ["ancient-changes Update", *(f"w{number} Update" for number in range(4, 13))]
    assert owners(found)["ancient-changes Update"] == {
        "f:data": {".": {}, "f:w0": {}, "f:w1": {}, "f:w2": {}, "f:w3": {}}}


def test_an_item_without_a_key_costs_the_object_its_entries() -> None:
    """As in Kubernetes: a write must not fail because nobody can say who owns it."""
    kind_schema = {"type": "object", "properties": {"items": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}}}}}}
    shape = shapes.custom(kind_schema)

    with pytest.raises(Unmergeable):
        shape.compare({}, {"items": [{"other": 1}]})
