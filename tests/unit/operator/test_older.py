"""Clusters that have autoscalers only under an older version."""

from dataclasses import dataclass, field

import orjson
import pytest

from trainmaster.api.core import AUTOSCALERS, PODS
from trainmaster.api.meta import Object
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.kube.transport import Request, Response, Stream
from trainmaster.operator.older import Older

WANTED: Object = {
    "apiVersion": AUTOSCALERS.api_version, "metadata": {"name": "mnist", "namespace": "ns"}, "spec": {"maxReplicas": 3},
}


@dataclass
class Server:
    """Serves a version of autoscaling: what is listed is empty, what is sent comes back."""

    version: str
    asked: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)   # the versions of what is sent

    async def send(self, request: Request) -> Response:
        self.asked.append(f"{request.method} {request.path}")
        if not request.path.startswith(f"/apis/autoscaling/{self.version}/"):
            return Response(404, {}, orjson.dumps({"kind": "Status", "code": 404, "reason": "NotFound"}))
        self.sent += [orjson.loads(request.body)["apiVersion"]] if request.body else []
        return Response(200, {}, request.body or orjson.dumps({"metadata": {"resourceVersion": "1"}, "items": []}))

    async def open(self, request: Request) -> Stream:
        raise NotImplementedError

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("version", "requests"), [
    pytest.param("v2", ["GET v2", "POST v2"], id="1.23 and later: nothing is asked twice"),
    pytest.param("v2beta2", ["GET v2", "GET v2beta2", "POST v2beta2"], id="1.22: under the older name from then on"),
])
async def test_autoscalers_are_made_in_the_version_that_is_served(version: str, requests: list[str]) -> None:
    server = Server(version)
    client = Client(Older(server))

    await client.list(AUTOSCALERS, "ns")
    await client.create(AUTOSCALERS, WANTED)

    assert requests == [f"{line.split()[0]} {line.split('/')[3]}" for line in server.asked]
    assert [f"autoscaling/{version}"] == server.sent


async def test_where_neither_is_served_it_says_so_each_time() -> None:
    server = Server("v1")
    client = Client(Older(server))

    for _ in range(2):
        with pytest.raises(NotFound):
            await client.list(AUTOSCALERS, "ns")

    assert ["v2", "v2beta2"] * 2 == [line.split("/")[3] for line in server.asked]


async def test_nothing_else_is_asked_for_in_another_way() -> None:
    server = Server("v2")
    client = Client(Older(server))

    for ask in (client.list(PODS, "ns"), client.get(AUTOSCALERS, "other", "ns")):
        try:
            await ask
        except NotFound:
            continue

    assert ["GET /api/v1/namespaces/ns/pods",
            "GET /apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers/other"] == server.asked
