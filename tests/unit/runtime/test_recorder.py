"""Events: what is written, what is counted up, and that nobody fails because of them."""

import asyncio
from typing import Any

import orjson
import pytest

from trainmaster.api.meta import Object, is_dns_subdomain
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request, Response, Stream
from trainmaster.runtime.recorder import Recorder
from trainmaster.testing.builders import node, pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.faults import Answer, Delay, Fault, Faults, Lose, Refuse, scripted


class Events:
    """Takes Events in as an API server does."""

    def __init__(self) -> None:
        self.kept: dict[str, Object] = {}

    async def send(self, request: Request) -> Response:
        body: dict[str, Any] = orjson.loads(request.body)
        if request.method == "POST":
            name = f"{request.path}/{body['metadata']['name']}"
            if name in self.kept:
                return Response(409, {}, b'{"kind":"Status","code":409,"reason":"AlreadyExists"}')
            self.kept[name] = body
            return Response(201, {}, request.body)
        if request.path not in self.kept:
            return Response(404, {}, b'{"kind":"Status","code":404}')
        self.kept[request.path] |= body
        return Response(200, {}, orjson.dumps(self.kept[request.path]))

    async def open(self, request: Request) -> Stream:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    def summary(self) -> list[tuple[str, int]]:
        return [(event["message"], event["count"]) for event in self.kept.values()]


def bench(*faults: Fault | None) -> tuple[Events, Recorder, VirtualClock]:
    server, clock = Events(), VirtualClock()
    plan = scripted({number: fault for number, fault in enumerate(faults, start=1) if fault})
    return server, Recorder(Client(Faults(server, clock, plan)), "operator", clock), clock


async def test_an_event_says_who_what_when_and_about_what() -> None:
    server, recorder, _ = bench()
    await recorder.event(pod("a", "ns", uid="u", revision="7"), "Warning", "Failed", "exit code 1")

    ((path, event),) = server.kept.items()
    assert path.startswith("/api/v1/namespaces/ns/events/a.")
    assert {
        "apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "a", "uid": "u", "resourceVersion": "7",
    } == event["involvedObject"]
    assert ("Warning", "Failed", "exit code 1", 1) == tuple(event[f] for f in ("type", "reason", "message", "count"))
    assert "2030-01-01T12:00:00Z" == event["firstTimestamp"] == event["lastTimestamp"]
    assert ({"component": "operator"}, "operator") == (event["source"], event["reportingComponent"])


async def test_an_event_about_an_object_without_a_namespace_goes_to_default() -> None:
    server, recorder, _ = bench()
    await recorder.event(node("n"), "Normal", "Ready", "ready")

    ((path, event),) = server.kept.items()
    assert path.startswith("/api/v1/namespaces/default/events/n.")
    assert "namespace" not in event["involvedObject"]


async def test_the_same_again_is_counted() -> None:
    server, recorder, clock = bench()
    for _ in range(3):
        await recorder.event(pod("a", uid="u"), "Normal", "Pulled", "image is here")
        await clock.advance(seconds=60)

    ((_, event),) = server.kept.items()
    assert 3 == event["count"]
    assert ("2030-01-01T12:00:00Z", "2030-01-01T12:02:00Z") == (event["firstTimestamp"], event["lastTimestamp"])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param((pod("a", uid="v"), "Normal", "R", "m"), id="another object of the same name"),
        pytest.param((pod("b", uid="u"), "Normal", "R", "m"), id="another name"),
        pytest.param((pod("a", uid="u"), "Warning", "R", "m"), id="another type"),
        pytest.param((pod("a", uid="u"), "Normal", "S", "m"), id="another reason"),
        pytest.param((pod("a", uid="u"), "Normal", "R", "n"), id="another message"),
    ],
)
async def test_anything_else_is_another_event(other: tuple[Object, str, str, str]) -> None:
    server, recorder, _ = bench()
    await recorder.event(pod("a", uid="u"), "Normal", "R", "m")
    await recorder.event(*other)

    assert [1, 1] == [count for _, count in server.summary()]


async def test_two_at_once_are_one_event_with_a_count_of_two() -> None:
    server, recorder, clock = bench(Delay(1))
    tell = [asyncio.create_task(recorder.event(pod("a"), "Normal", "R", "m")) for _ in range(2)]
    await clock.advance(seconds=1)
    await asyncio.gather(*tell)

    assert [("m", 2)] == server.summary()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param(Refuse(), [("m", 1)], id="refused: the next one is the first"),
        pytest.param(Answer(500), [("m", 1)], id="an error: the next one is the first"),
        pytest.param(Answer(403, "Forbidden"), [("m", 1)], id="not allowed: the next one is the first"),
        pytest.param(Lose(), [("m", 2)], id="the answer was lost: both are counted"),
    ],
)
async def test_a_failing_api_is_nobodys_failure(fault: Fault, expected: list[tuple[str, int]]) -> None:
    server, recorder, _ = bench(fault)
    await recorder.event(pod("a"), "Normal", "R", "m")
    await recorder.event(pod("a"), "Normal", "R", "m")

    assert expected == server.summary()


async def test_an_event_that_the_server_forgot_begins_again() -> None:
    server, recorder, _ = bench()
    await recorder.event(pod("a"), "Normal", "R", "m")
    server.kept.clear()
    await recorder.event(pod("a"), "Normal", "R", "m")

    assert [("m", 1)] == server.summary()


async def test_the_memory_is_bounded_and_keeps_what_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.runtime.recorder.REMEMBERED", 2)
    server, recorder, clock = bench()
    for name in ("a", "b", "a", "c", "a", "b"):
        await recorder.event(pod(name), "Normal", "R", name)
        await clock.advance(seconds=1)

    assert [("a", 3), ("b", 1), ("c", 1), ("b", 1)] == server.summary()


@pytest.mark.parametrize("name", ["x" * 253, "x" * 235 + "." + "y" * 17, "a"], ids=["longest", "cut at a dot", "short"])
async def test_the_name_of_an_event_is_valid(name: str) -> None:
    server, recorder, _ = bench()
    await recorder.event(pod(name), "Normal", "R", "m")

    ((_, event),) = server.kept.items()
    assert is_dns_subdomain(event["metadata"]["name"])


async def test_a_long_message_is_cut() -> None:
    server, recorder, _ = bench()
    await recorder.event(pod("a"), "Normal", "R", "m" * 5000)

    ((_, event),) = server.kept.items()
    assert 1024 >= len(event["message"])
