"""Logs are passed on from the node."""

from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from tests.unit.cluster.apiserver.api import PODS, Api, pod, serving

from trainmaster.api.meta import Json
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.transport import Request, Response, Stream


class Said:
    """What a node answers."""

    def __init__(self, status: int, pieces: Sequence[bytes | Exception]) -> None:
        self.status: int = status
        self.headers: Mapping[str, str] = {}
        self.closed = 0
        self._pieces = pieces

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def close(self) -> None:
        self.closed += 1


class Node:
    """A node at the other end of a transport."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.answer: Said | Exception = Said(200, [b"one\n", b"two\n"])

    async def send(self, request: Request) -> Response:
        raise AssertionError(f"logs are streamed, not {request}")

    async def open(self, request: Request) -> Stream:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def close(self) -> None:
        raise AssertionError("a shared way to the node must stay open")


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
async def api(node: Node) -> AsyncIterator[Api]:
    async with serving(node=lambda _name: node) as found:
        yield found


TWO = [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]


async def bound(api: Api, **spec: Json) -> None:
    await api.made(PODS, pod(nodeName="n", **spec))


async def test_the_answer_is_the_nodes(api: Api, node: Node) -> None:
    await bound(api)
    answer = await api.get(f"{PODS}/p/log", "container=c&tailLines=5&timestamps=true&pretty=1")

    assert (200, b"one\ntwo\n", "text/plain") == (answer.code, answer.body, answer.headers["Content-Type"])
    assert [("/containerLogs/default/p/c", [("tailLines", "5"), ("timestamps", "true")])] == [
        (each.path, list(each.query)) for each in node.asked]


async def test_a_followed_log_is_let_go_when_the_reader_goes(api: Api, node: Node) -> None:
    await bound(api)
    stream = await api.transport.open(Request("GET", f"{PODS}/p/log", [("follow", "true")]))
    assert b"one\n" == await anext(stream.chunks())
    await stream.close()

    assert isinstance(node.answer, Said)
    assert node.answer.closed


@pytest.mark.parametrize(("spec", "query", "code", "said"), [
    pytest.param({"nodeName": "n", "containers": TWO}, "", 400,
                 "a container name must be specified for pod p, choose one of: [a b]", id="which of two containers"),
    pytest.param({"nodeName": "n", "containers": TWO}, "container=z", 400, "container z is not valid for pod p",
                 id="a container that is not there"),
    pytest.param({}, "tailLines=-1", 422, 'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater '
                 "than or equal to 0", id="fewer lines than none"),
    pytest.param({}, "sinceSeconds=0", 422, 'PodLogOptions "p" is invalid: sinceSeconds: Invalid value: 0: must be '
                 "greater than 0", id="since now"),
    pytest.param({}, "sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", 422, 'PodLogOptions "p" is invalid: []: '
                 "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified", id="since two moments"),
])
async def test_what_cannot_be_asked_for(api: Api, spec: Json, query: str, code: int, said: str) -> None:
    await api.made(PODS, pod(**spec))
    answer = await api.get(f"{PODS}/p/log", query)

    assert (code, said) == (answer.code, answer.message)


async def test_a_pod_without_a_node_has_nothing_to_say_yet(api: Api) -> None:
    await api.made(PODS, pod())

    assert (204, b"") == ((answer := await api.get(f"{PODS}/p/log")).code, answer.body)


@pytest.mark.parametrize(("answer", "code", "said"), [
    pytest.param(Said(400, [b'{"message":"container is waiting to start"}']), 400, "container is waiting to start",
                 id="the node refuses"),
    pytest.param(Said(404, [b"no such container\n"]), 404, "no such container", id="the node knows nothing of it"),
    pytest.param(Said(500, [b"boom"]), 503, "boom", id="the node is in trouble"),
    pytest.param(Unreachable("connection refused"), 503, "node n cannot be reached: connection refused",
                 id="the node is not there"),
])
async def test_what_goes_wrong_on_the_way(api: Api, node: Node, answer: Said | Exception, code: int, said: str) -> None:
    await bound(api)
    node.answer = answer
    found = await api.get(f"{PODS}/p/log")

    assert (code, said) == (found.code, found.message)


async def test_a_node_that_goes_away_ends_the_log(api: Api, node: Node) -> None:
    await bound(api)
    node.answer = Said(200, [b"one\n", Unreachable("gone")])

    assert b"one\n" == (await api.get(f"{PODS}/p/log")).body


async def test_a_pod_that_is_not_there(api: Api) -> None:
    assert 404 == (await api.get(f"{PODS}/p/log")).code


async def test_a_server_without_nodes_says_so() -> None:
    async with serving() as api:
        await bound(api)

        assert 503 == (await api.get(f"{PODS}/p/log")).code


