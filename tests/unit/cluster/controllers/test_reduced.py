"""Watches that keep a part of what they are told."""

from collections.abc import AsyncIterator, Mapping

import orjson
import pytest

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.controllers.reduced import LONGEST_REMEMBERED, Only, Reduced
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Gone
from trainmaster.kube.transport import Request, Response, Stream

SHORT = {"metadata": {"name": "a", "resourceVersion": "7", "labels": {"app": "x"}}, "spec": {"nodeName": "n"}}
LONG = {"metadata": {"name": "a", "resourceVersion": "7", "labels": {"app": "x" * LONGEST_REMEMBERED}}}


class Told:
    """A server that tells of some things to whoever watches, and lists them to whoever asks."""

    def __init__(self, *things: Object, type: str = "ADDED") -> None:  # noqa: A002  the API's word
        self._things = things
        self._type = type

    async def send(self, _request: Request) -> Response:
        return Response(200, {}, orjson.dumps({"metadata": {"resourceVersion": "9"}, "items": self._things}))

    async def open(self, _request: Request) -> Stream:
        return Line(b"".join(orjson.dumps({"type": self._type, "object": thing}) + b"\n" for thing in self._things))

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


TYPES = Only(b'"scratch"', lambda pod: "scratch" in (pod.get("spec") or {}))
WITH, WITHOUT, ONLY_THE_WORD = ({"metadata": {"name": name, "resourceVersion": "8", "labels": labels}, "spec": spec}
                                for name, labels, spec in (("with", {}, {"scratch": {}}), ("without", {}, {}),
                                                           ("word", {"kind": "scratch"}, {})))


async def test_who_wants_some_gets_those_and_no_other_however_he_asks() -> None:
    client = Reduced(Client(Told(WITH, WITHOUT, ONLY_THE_WORD)), named, only=TYPES)

    assert [named(WITH)] == (await client.list(PODS)).items
    assert [named(WITH)] == [event.object async for event in client.watch(PODS)]


async def test_how_far_a_watch_has_come_is_told_to_those_who_want_few_as_well() -> None:
    client = Reduced(Client(Told(WITHOUT, type="BOOKMARK")), named, only=TYPES)

    assert [("BOOKMARK", "8")] == [(event.type, event.object["metadata"]["resourceVersion"])
                                   async for event in client.watch(PODS)]
    assert client.revision == "8"


async def test_those_who_want_few_hear_that_their_watch_cannot_go_on() -> None:
    server = Told({"kind": "Status", "code": 410, "reason": "Expired"}, type="ERROR")
    client = Reduced(Client(server), named, only=TYPES)

    with pytest.raises(Gone):
        [event async for event in client.watch(PODS)]
