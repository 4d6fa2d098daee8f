"""The client: what each verb sends, and what each answer becomes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from trainmaster.api.core import NODES, PODS
from trainmaster.api.meta import Object
from trainmaster.kube.client import APPLY_PATCH, JSON_PATCH, METADATA, METADATA_LIST, Client, WatchEvent
from trainmaster.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    TooManyRequests,
    Unreachable,
)
from trainmaster.kube.limits import Limits
from trainmaster.kube.transport import Request, Response
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock

OK = Response(200, {}, b'{"metadata":{"name":"a"}}')
DELETE_OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}


@dataclass(slots=True)
class Body:
    """A stream that was written down before."""

    pieces: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    closed: bool = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece

    async def close(self) -> None:
        self.closed = True


class Wire:
    """Keeps what was asked; gives the answers that were laid out, the last one again and again."""

    def __init__(self, *answers: Response | Body) -> None:
        self.asked: list[Request] = []
        self._answers = list(answers or [OK])

    async def send(self, request: Request) -> Response:
        answer = self._next(request)
        assert isinstance(answer, Response)
        return answer

    async def open(self, request: Request) -> Body:
        answer = self._next(request)
        assert isinstance(answer, Body)
        return answer

    async def close(self) -> None:
        pass

    def _next(self, request: Request) -> Response | Body:
        self.asked.append(request)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


Call = Callable[[Client], Awaitable[Any]]


@pytest.mark.parametrize(
    ("call", "method", "target", "body"),
    [
        pytest.param(lambda c: c.get(PODS, "a", "ns"), "GET", "/api/v1/namespaces/ns/pods/a", None, id="get"),
        pytest.param(lambda c: c.get(NODES, "n"), "GET", "/api/v1/nodes/n", None, id="get without a namespace"),
        pytest.param(
            lambda c: c.get(PODS, "a", "ns", subresource="status"), "GET", "/api/v1/namespaces/ns/pods/a/status", None,
            id="get a subresource",
        ),
        pytest.param(lambda c: c.list(PODS), "GET", "/api/v1/pods", None, id="list everywhere"),
        pytest.param(
            lambda c: c.list(PODS, "ns", labels="a=b", fields="x=y", limit=5, more="t", revision="7"), "GET",
            "/api/v1/namespaces/ns/pods?labelSelector=a=b&fieldSelector=x=y&limit=5&resourceVersion=7&continue=t", None,
            id="list with everything",
        ),
        pytest.param(
            lambda c: c.create(PODS, pod("a", "ns")), "POST", "/api/v1/namespaces/ns/pods", pod("a", "ns"),
            id="create in the object's own namespace",
        ),
        pytest.param(
            lambda c: c.create(PODS, {"kind": "Binding"}, namespace="ns", name="a", subresource="binding"), "POST",
            "/api/v1/namespaces/ns/pods/a/binding", {"kind": "Binding"}, id="create a binding",
        ),
        pytest.param(
            lambda c: c.replace(PODS, pod("a", "ns"), subresource="status"), "PUT",
            "/api/v1/namespaces/ns/pods/a/status", pod("a", "ns"), id="replace the status",
        ),
        pytest.param(
            lambda c: c.patch(PODS, "a", "ns", {"x": 1}), "PATCH", "/api/v1/namespaces/ns/pods/a", {"x": 1}, id="patch"
        ),
        pytest.param(
            lambda c: c.patch(PODS, "a", "ns", {"x": 1}, kind=APPLY_PATCH, manager="me", force=True), "PATCH",
            "/api/v1/namespaces/ns/pods/a?fieldManager=me&force=true", {"x": 1}, id="apply",
        ),
        pytest.param(
            lambda c: c.delete(PODS, "a", "ns"), "DELETE", "/api/v1/namespaces/ns/pods/a", DELETE_OPTIONS, id="delete"
        ),
        pytest.param(
            lambda c: c.delete(PODS, "a", "ns", uid="u", grace=0, propagation="Orphan"), "DELETE",
            "/api/v1/namespaces/ns/pods/a",
            {**DELETE_OPTIONS, "preconditions": {"uid": "u"}, "gracePeriodSeconds": 0, "propagationPolicy": "Orphan"},
            id="delete this one only, at once, and leave what it owns",
        ),
        pytest.param(
            lambda c: c.delete(PODS, "a", "ns", uid="u", revision="7"), "DELETE", "/api/v1/namespaces/ns/pods/a",
            {**DELETE_OPTIONS, "preconditions": {"uid": "u", "resourceVersion": "7"}}, id="delete it as it was seen",
        ),
    ],
)
async def test_what_a_verb_sends(call: Call, method: str, target: str, body: Object | None) -> None:
    wire = Wire()
    await call(Client(wire, user_agent="tests/1"))

    (sent,) = wire.asked
    query = "&".join(f"{name}={value}" for name, value in sent.query)
    assert (method, target) == (sent.method, f"{sent.path}?{query}" if query else sent.path)
    assert body == (orjson.loads(sent.body) if sent.body else None)
    assert "tests/1" == sent.headers["user-agent"]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda c: c.create(PODS, pod()), "application/json"),
        (lambda c: c.patch(PODS, "a", "ns", {}), "application/merge-patch+json"),
        (lambda c: c.patch(PODS, "a", "ns", [], kind=JSON_PATCH), "application/json-patch+json"),
        (lambda c: c.get(PODS, "a", "ns"), None),
    ],
    ids=["create", "merge patch", "json patch", "nothing to send"],
)
async def test_the_kind_of_content(call: Call, kind: str | None) -> None:
    wire = Wire()
    await call(Client(wire))

    assert kind == wire.asked[0].headers.get("content-type")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda c: c.delete(PODS, "", "ns"), id="delete without a name would delete all"),
        pytest.param(lambda c: c.get(PODS, "", "ns"), id="get without a name would list"),
        pytest.param(lambda c: c.patch(PODS, "", "ns", {}), id="patch without a name"),
        pytest.param(lambda c: c.replace(PODS, {"metadata": {}}), id="replace without a name"),
        pytest.param(lambda c: c.delete(PODS, "../nodes/n", "ns"), id="a name that climbs"),
        pytest.param(lambda c: c.get(PODS, "..", "ns"), id="a name that is a step up"),
        pytest.param(lambda c: c.get(PODS, "a", "x/../y"), id="a namespace that climbs"),
        pytest.param(lambda c: c.get(PODS, "a%2Fb", "ns"), id="a name that hides a slash"),
    ],
)
async def test_names_that_would_reach_something_else_are_not_sent(call: Call) -> None:
    wire = Wire()
    with pytest.raises(Invalid):
        await call(Client(wire))

    assert [] == wire.asked


async def test_items_of_a_list_know_their_kind() -> None:
    """A real API server leaves it out, since the list says it."""
    about = {"resourceVersion": "7", "continue": "t"}
    page = orjson.dumps({"kind": "PodList", "metadata": about, "items": [{"metadata": {"name": "a"}}]})
    got = await Client(Wire(Response(200, {}, page))).list(PODS)

    assert ("7", "t") == (got.revision, got.more)
    assert [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}] == got.items


@pytest.mark.parametrize("items", [b'"items":null', b'"x":1'], ids=["null", "left out"])
async def test_an_empty_list_may_have_no_items(items: bytes) -> None:
    assert [] == (await Client(Wire(Response(200, {}, b'{"metadata":{},' + items + b"}"))).list(PODS)).items


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        pytest.param((404, "NotFound", "no pod"), NotFound, "no pod", id="not found"),
        pytest.param((409, "AlreadyExists", "is there"), AlreadyExists, "is there", id="already there"),
        pytest.param((409, "Conflict", "changed"), Conflict, "changed", id="changed meanwhile"),
        pytest.param((410, "Expired", "too old"), Gone, "too old", id="too old"),
        pytest.param((422, "Invalid", "bad"), Invalid, "bad", id="invalid"),
        pytest.param((400, "BadRequest", "bad"), Invalid, "bad", id="bad request"),
        pytest.param((401, "Unauthorized", "who"), Forbidden, "who", id="not known"),
        pytest.param((403, "Forbidden", "no"), Forbidden, "no", id="not allowed"),
        pytest.param((429, "TooManyRequests", "later"), TooManyRequests, "later", id="too many"),
        pytest.param((503, "", ""), ApiError, "the server answered 503", id="an answer without words"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_what_a_failure_becomes(
    answer: tuple[int, str, str], error: type[ApiError], message: str, streamed: bool
) -> None:
    code, reason, words = answer
    body = orjson.dumps({"kind": "Status", "code": code, "reason": reason, "message": words})
    client = Client(Wire(Body([body[:5], body[5:]], code) if streamed else Response(code, {}, body)))
    with pytest.raises(error, match=message) as caught:
        await (client.stream("/x") if streamed else client.get(PODS, "a", "ns"))

    assert (code, reason) == (caught.value.code, caught.value.reason)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        pytest.param(Response(502, {}, b"<html>Bad gate" + b"!" * 999), ApiError, "Bad gate", id="a proxy's page"),
        pytest.param(Response(500, {}, b""), ApiError, "the server answered 500", id="nothing at all"),
        pytest.param(Response(200, {}, b"<html>Please log in"), Unreachable, "not JSON", id="a login page"),
        pytest.param(Response(200, {}, b"[1]"), Unreachable, "not a JSON object", id="JSON, but no object"),
    ],
)
async def test_answers_that_no_api_server_gives(answer: Response, error: type[KubeError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        await Client(Wire(answer)).get(PODS, "a", "ns")

    assert len(str(caught.value)) < 300


def event(kind: str, name: str) -> bytes:
    return orjson.dumps({"type": kind, "object": {"metadata": {"name": name}}}) + b"\n"


async def watched(*pieces: bytes) -> list[WatchEvent]:
    return [found async for found in Client(Wire(Body(pieces))).watch(PODS, revision="5")]


@pytest.mark.parametrize("size", [1, 3, 7, 1000], ids=lambda size: f"{size} bytes at a time")
async def test_events_are_put_together_whatever_pieces_they_come_in(size: int) -> None:
    whole = event("ADDED", "a") + event("MODIFIED", "ü") + b"\n" + event("DELETED", "a") + b'{"type":"ADD'
    pieces = [whole[start : start + size] for start in range(0, len(whole), size)]

    assert [("ADDED", "a"), ("MODIFIED", "ü"), ("DELETED", "a")] == [
        (found.type, found.object["metadata"]["name"]) for found in await watched(*pieces)
    ]


async def test_a_large_object_is_no_trouble() -> None:
    large = event("ADDED", "x" * 3_000_000)
    pieces = [large[start : start + 4096] for start in range(0, len(large), 4096)]

    assert 3_000_000 == len((await watched(*pieces))[0].object["metadata"]["name"])


async def test_what_a_watch_asks_for() -> None:
    wire = Wire(Body([]))
    async for _ in Client(wire).watch(PODS, "ns", labels="a=b", fields="c=d", revision="7", timeout=300):
        pass
    async for _ in Client(wire).watch(PODS, bookmarks=False):
        pass

    assert [
        {
            "watch": "true", "labelSelector": "a=b", "fieldSelector": "c=d", "resourceVersion": "7",
            "allowWatchBookmarks": "true", "timeoutSeconds": "300",
        },
        {"watch": "true"},
    ] == [dict(request.query) for request in wire.asked]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        pytest.param(b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n', Gone, id="410"),
        pytest.param(b'{"type":"ERROR","object":{"code":500,"message":"no"}}\n', ApiError, id="another error"),
        pytest.param(b'{"type":"ERROR","object":{}}\n', ApiError, id="an error without a code"),
        pytest.param(b'{"type":"ADDED"}\n', Unreachable, id="no object"),
        pytest.param(b"<html>\n", Unreachable, id="no event at all"),
    ],
)
async def test_errors_in_a_watch_are_raised_and_close_it(line: bytes, error: type[KubeError]) -> None:
    body = Body([event("ADDED", "a"), line])
    watch = Client(Wire(body)).watch(PODS)
    assert "ADDED" == (await anext(watch)).type
    with pytest.raises(error):
        await anext(watch)

    assert body.closed


async def test_leaving_a_watch_early_closes_it() -> None:
    body = Body([event("ADDED", "a"), event("ADDED", "b")])
    watch = Client(Wire(body)).watch(PODS)
    await anext(watch)
    await watch.aclose()

    assert body.closed


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_429_with_retry_after_is_waited_for(streamed: bool) -> None:
    clock = VirtualClock()
    busy: Response | Body = Body([], 429, {"retry-after": "7"}) if streamed else Response(429, {"Retry-After": "7"})
    wire = Wire(busy, busy, Body([]) if streamed else OK)
    client = Client(wire, limits=Limits(clock=clock))

    await clock.run(client.stream("/x") if streamed else client.get(PODS, "a", "ns"))

    assert 3 == len(wire.asked)
    assert 14.0 == clock.monotonic()


@pytest.mark.parametrize(
    ("headers", "tries"),
    [
        pytest.param({}, 1, id="without a header it is the caller's answer"),
        pytest.param({"retry-after": "3600"}, 1, id="an hour is for the caller to plan"),
        pytest.param({"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 1, id="a date is not what API servers send"),
        pytest.param({"retry-after": "1"}, 5, id="again and again: a bounded number of times"),
    ],
)
async def test_429_is_given_to_the_caller_in_the_end(headers: dict[str, str], tries: int) -> None:
    clock = VirtualClock()
    wire = Wire(Response(429, headers))
    with pytest.raises(TooManyRequests):
        await clock.run(Client(wire, limits=Limits(clock=clock)).get(PODS, "a", "ns"))

    assert tries == len(wire.asked)


async def test_reads_can_ask_for_metadata_alone() -> None:
    wire = Wire(OK, Response(200, {}, b'{"items":[]}'), Body([]))
    client = Client(wire)
    await client.get(PODS, "a", "ns", accept=METADATA)
    await client.list(PODS, accept=METADATA_LIST)
    async for _ in client.watch(PODS, accept=METADATA):
        pass

    assert [METADATA, METADATA_LIST, METADATA] == [request.headers["accept"] for request in wire.asked]
