"""One set of events, seen through the core group and through events.k8s.io."""

import pytest
from tests.unit.cluster.apiserver.api import TABLE, Api

from trainmaster.api.meta import Json, Object

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
REGARDING = {"kind": "Pod", "namespace": "default", "name": "p"}


def new_event(**more: Json) -> Object:
    return {"metadata": {"name": "e"}, "eventTime": "2024-01-01T00:00:00.123456Z", "action": "A", "reason": "R",
            "reportingController": "example.com/c", "reportingInstance": "i", "type": "Normal", "note": "hello",
            "regarding": REGARDING, **more}


async def test_a_new_event_is_an_old_one_too(api: Api) -> None:
    await api.made(NEW, new_event())
    found = (await api.get(f"{CORE}/e")).json

    assert ("v1", "hello", REGARDING) == (found["apiVersion"], found["message"], found["involvedObject"])
    assert ("example.com/c", None) == (found["reportingComponent"], found["firstTimestamp"])
    assert not {"note", "regarding", "reportingController"} & found.keys()


async def test_an_old_event_is_a_new_one_too(api: Api) -> None:
    await api.made(CORE, {"metadata": {"name": "e"}, "involvedObject": REGARDING, "message": "hello", "count": 2,
                          "source": {"component": "c"}})
    found = (await api.get(NEW)).json

    assert ("EventList", "events.k8s.io/v1") == (found["kind"], found["apiVersion"])
    assert [("hello", 2, {"component": "c"})] == [
        (item["note"], item["deprecatedCount"], item["deprecatedSource"]) for item in found["items"]]


async def test_a_change_through_one_is_seen_through_the_other(api: Api) -> None:
    made = await api.made(NEW, new_event())
    async with api.watch(CORE, f"resourceVersion={made['metadata']['resourceVersion']}") as watch:
        series = {"count": 2, "lastObservedTime": "2024-01-01T00:00:01.000000Z"}
        answer = await api.patch(f"{NEW}/e", {"series": series})
        event = await watch.next()

    assert (200, "events.k8s.io/v1") == (answer.code, answer.json["apiVersion"])
    assert event is not None
    assert ("MODIFIED", "v1", series) == (event["type"], event["object"]["apiVersion"], event["object"]["series"])


@pytest.mark.parametrize(("path", "selector", "expected"), [
    pytest.param(NEW, "regarding.name=p", ["e"], id="the name it has there"),
    pytest.param(NEW, "reportingController=example.com/c", ["e"], id="who told it"),
    pytest.param(CORE, "involvedObject.name=p", ["e"], id="the same field in the core group"),
    pytest.param(NEW, "regarding.name=q", [], id="about something else"),
])
async def test_selecting(api: Api, path: str, selector: str, expected: list[str]) -> None:
    await api.made(NEW, new_event())

    assert expected == (await api.get(path, f"fieldSelector={selector}")).names


async def test_fields_of_the_other_group_cannot_be_selected(api: Api) -> None:
    assert 400 == (await api.get(NEW, "fieldSelector=involvedObject.name=p")).code


async def test_the_table_is_the_same(api: Api) -> None:
    await api.made(NEW, new_event())
    tables = [(await api.get(path, accept=TABLE)).json for path in (CORE, NEW)]

    assert tables[0]["rows"][0]["cells"] == tables[1]["rows"][0]["cells"]
    assert "hello" in tables[0]["rows"][0]["cells"]


async def test_deleting_through_one_deletes_the_other(api: Api) -> None:
    await api.made(NEW, new_event())
    await api.delete(f"{CORE}/e")

    assert 404 == (await api.get(f"{NEW}/e")).code
