"""Watches that keep a part of what they are told."""

from collections.abc import AsyncIterator, Mapping

import orjson
import pytest

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.controllers.reduced import LONGEST_REMEMBERED, Reduced
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request, Response, Stream

SHORT = {"metadata": {"name": "a", "resourceVersion": "7", "labels": {"app": "x"}}, "spec": {"nodeName": "n"}}
LONG = {"metadata": {"name": "a", "resourceVersion": "7", "labels": {"app": "x" * LONGEST_REMEMBERED}}}


class Told:
    """A server that tells one pod to whoever watches."""

    def __init__(self, pod: Object) -> None:
        self._line = orjson.dumps({"type": "ADDED", "object": pod}) + b"\n"

    async def send(self, request: Request) -> Response:
        raise AssertionError(f"nobody asked for {request.path}")

    async def open(self, _request: Request) -> Stream:
        return Line(self._line)

    async def close(self) -> None:
        """Nothing is held."""


class Line:
    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, line: bytes) -> None:
        self._line = line

    async def chunks(self) -> AsyncIterator[bytes]:
        yield bytes(bytearray(self._line))      # what is read anew is another object

    async def close(self) -> None:
        """Nothing is held."""


def named(pod: Object) -> Object:
    return {"metadata": {"name": pod["metadata"]["name"], "labels": pod["metadata"]["labels"]}}


@pytest.mark.parametrize(("pod", "shared"), [
    pytest.param(SHORT, True, id="what was just read for one is not read again for the next"),
    pytest.param(LONG, False, id="large objects are not remembered"),
])
async def test_two_who_follow_the_same(pod: Object, shared: bool) -> None:
    client = Client(Told(pod))

    first, second = [[event.object async for event in Reduced(client, named).watch(PODS)] for _ in range(2)]

    assert [named(pod)] == first == second
    assert first[0] is not second[0], "each has its own"
    assert shared == (first[0]["metadata"]["labels"] is second[0]["metadata"]["labels"])
