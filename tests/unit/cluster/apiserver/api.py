"""The API server on an in-memory store, spoken to in bytes; and the objects the tests send."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import orjson

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver.auth import MASTERS, Identity
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.store import Store
from trainmaster.kube.transport import Request, Stream
from trainmaster.testing.clock import VirtualClock

WHO = Identity("tester", (MASTERS, "system:authenticated"))
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
NAMESPACES = "/api/v1/namespaces"
SERVICES = "/api/v1/namespaces/default/services"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "/apis/kubeflow.org/v1/namespaces/default/tfjobs"


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    headers: dict[str, str]
    body: bytes
    warnings: list[str] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.json["items"]]


class Watch:
    """An open watch, read event by event."""

    def __init__(self, stream: Stream, clock: VirtualClock) -> None:
        self.stream = stream
        self._clock = clock
        self._chunks = stream.chunks()
        self._lines: list[bytes] = []

    async def next(self) -> Object | None:
        """The next event, or None when the stream has ended."""
        while not self._lines:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return None
            self._lines = chunk.splitlines()
        found: Object = orjson.loads(self._lines.pop(0))
        return found

    async def told(self, count: int) -> list[str]:
        """The next events as `TYPE name`."""
        found = []
        for _ in range(count):
            event = await asyncio.wait_for(self.next(), 60)
            assert event is not None
            found.append(f"{event['type']} {event['object']['metadata'].get('name', '')}".strip())
        return found

    async def quiet(self) -> bool:
        """Nothing more comes as long as nothing more happens."""
        if self._lines:
            return False
        reading = asyncio.ensure_future(self.next())
        await self._clock.settle()
        ended = reading.done()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        return not ended


class Api:
    """The server with short ways to call it."""

    def __init__(self, server: ApiServer, store: Store, clock: VirtualClock) -> None:
        self.server = server
        self.store = store
        self.clock = clock
        self.transport = InProcess(server, WHO)

    async def send(self, method: str, path: str, body: Json = None, *, query: str = "", media: str = "application/json",
                   accept: str = "application/json", headers: dict[str, str] | None = None) -> Answer:
        sent = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        told = {"accept": accept, "content-type": media, **(headers or {})}
        request = Request(method, path, parse_qsl(query, keep_blank_values=True), told, sent)
        answer = await self.transport.send(request)
        return Answer(answer.status, dict(answer.headers), answer.body, list(answer.warnings))

    async def get(self, path: str, query: str = "", **more: Any) -> Answer:
        return await self.send("GET", path, query=query, **more)

    async def post(self, path: str, body: Json, query: str = "", **more: Any) -> Answer:
        return await self.send("POST", path, body, query=query, **more)

    async def made(self, path: str, body: Json) -> Object:
        """Create, and be sure of it."""
        answer = await self.post(path, body)
        assert answer.code == 201, answer.body
        found: Object = answer.json
        return found

    async def put(self, path: str, body: Json, query: str = "") -> Answer:
        return await self.send("PUT", path, body, query=query)

    async def patch(self, path: str, body: Json, media: str = MERGE, query: str = "") -> Answer:
        return await self.send("PATCH", path, body, media=media, query=query)

    async def delete(self, path: str, body: Json = None, query: str = "") -> Answer:
        return await self.send("DELETE", path, body, query=query)

    @asynccontextmanager
    async def watch(self, path: str, query: str = "", accept: str = "application/json") -> AsyncIterator[Watch]:
        pairs = [("watch", "true"), *parse_qsl(query, keep_blank_values=True)]
        stream = await self.transport.open(Request("GET", path, pairs, {"accept": accept}))
        try:
            yield Watch(stream, self.clock)
        finally:
            await stream.close()


@asynccontextmanager
async def serving(**more: Any) -> AsyncIterator[Api]:
    clock = VirtualClock()
    store = Store.open(None)
    server = ApiServer(store, clock=clock, **more)
    await server.start()
    try:
        yield Api(server, store, clock)
    finally:
        await server.close()
        await store.close()


def pod(name: str = "p", **spec: Json) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec}}


def config_map(name: str = "m", labels: dict[str, str] | None = None, **data: str) -> Object:
    meta: Object = {"name": name, "labels": labels} if labels else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def service(name: str = "s", **spec: Json) -> Object:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}], **spec}}


def definition(schema: Object | None = None, plural: str = "tfjobs", kind: str = "TFJob", group: str = "kubeflow.org",
               **version: Json) -> Object:
    """A definition with one version, v1."""
    found = {"type": "object", "properties": {
        "spec": schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": found},
           "subresources": {"status": {}}, **version}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                     "versions": [one]}}


def job(name: str = "mnist", **spec: Json) -> Object:
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name}, "spec": spec}
