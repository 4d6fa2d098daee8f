"""Verbs on objects: what every part of the system says to an API server.

Objects go in and come out as dictionaries; failures are `kube.errors`. Nothing is retried here but what was certainly
not carried out (429 with a Retry-After): whether to try again, and with what, is for those who know why they asked.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import orjson

from trainmaster.api.meta import Json, Object, Resource, metadata, name_of, namespace_of
from trainmaster.kube.errors import ApiError, Invalid, TooManyRequests, Unreachable, from_status
from trainmaster.kube.limits import Limits
from trainmaster.kube.lines import lines
from trainmaster.kube.transport import Request, Stream, Transport

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
# Objects without spec and status, for those who look at names, owners and finalizers only. A server that does not know
# the form answers with whole objects.
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list. `revision` is that of the whole list; `more` asks for the next part, "" at the end."""

    items: list[Object]
    revision: str
    more: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR is raised instead."""

    type: str
    object: Object


class Client:
    """Speaks through a transport, which it owns: closing the client closes it."""

    def __init__(
        self, transport: Transport, *, user_agent: str = "trainmaster", limits: Limits | None = None
    ) -> None:
        self._transport = transport
        self._user_agent = user_agent
        self._limits = limits or Limits()

    async def get(
        self, resource: Resource, name: str, namespace: str = "", *, subresource: str = "", accept: str = JSON
    ) -> Object:
        path = _object_path(resource, namespace, name, subresource)
        return _typed(await self.request("GET", path, accept=accept), resource, subresource)

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        more: str = "",
        revision: str = "",
        accept: str = JSON,
    ) -> Page:
        """One page: everything, unless `limit` says how much. Without a `revision` the answer is the newest state."""
        query = _given(
            labelSelector=labels, fieldSelector=fields, limit=str(limit or ""), resourceVersion=revision,
            **{"continue": more},
        )
        answer = await self.request("GET", _path(resource, namespace), query=query, accept=accept)
        about = metadata(answer)
        items = [_typed(item, resource) for item in answer.get("items") or ()]
        return Page(items, str(about.get("resourceVersion", "")), str(about.get("continue", "")))

    async def create(
        self, resource: Resource, thing: Object, *, namespace: str = "", name: str = "", subresource: str = ""
    ) -> Object:
        """POST to the collection, or to a subresource of `name` (pods/NAME/binding). The namespace is the object's."""
        path = _path(resource, namespace or namespace_of(thing), name, subresource)
        return _typed(await self.request("POST", path, body=thing), resource, subresource)

    async def replace(self, resource: Resource, thing: Object, *, subresource: str = "") -> Object:
        """PUT; a Conflict if the object has another revision by now."""
        path = _object_path(resource, namespace_of(thing), name_of(thing), subresource)
        return _typed(await self.request("PUT", path, body=thing), resource, subresource)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Json,
        *,
        kind: str = MERGE_PATCH,
        subresource: str = "",
        manager: str = "",
        force: bool = False,
    ) -> Object:
        """PATCH. `manager` and `force` are for server-side apply (kind APPLY_PATCH), which must have a manager."""
        path = _object_path(resource, namespace, name, subresource)
        query = _given(fieldManager=manager, force="true" if force else "")
        return _typed(
            await self.request("PATCH", path, query=query, body=patch, content_type=kind), resource, subresource
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        revision: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> Object:
        """DELETE; a Conflict if another object has the name by now (`uid`), or this one changed (`revision`).

        The answer is the object, or a Status.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if guards := dict(_given(uid=uid, resourceVersion=revision)):
            options["preconditions"] = guards
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if propagation:
            options["propagationPolicy"] = propagation
        return await self.request("DELETE", _object_path(resource, namespace, name), body=options)

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        revision: str = "",
        bookmarks: bool = True,
        timeout: int = 0,
        accept: str = "*/*",
    ) -> AsyncGenerator[WatchEvent, None]:
        """The changes after `revision`, from one request; ends when the server ends it, raises what it reports.

        Leave it early through `contextlib.aclosing`, so that the connection is closed at once.
        """
        query = _given(
            watch="true", labelSelector=labels, fieldSelector=fields, resourceVersion=revision,
            allowWatchBookmarks="true" if bookmarks else "", timeoutSeconds=str(timeout or ""),
        )
        stream = await self.stream(_path(resource, namespace), query, accept=accept)
        try:
            async for line in lines(stream.chunks()):
                event = self._event(line)
                if event is None:
                    continue
                thing = event.get("object")
                if not isinstance(thing, dict):
                    raise Unreachable("a watch event without an object came; is this a Kubernetes API?")
                if event.get("type") == "ERROR":
                    raise from_status(int(thing.get("code") or 500), thing)
                yield WatchEvent(str(event.get("type", "")), _typed(thing, resource))
        finally:
            await stream.close()

    def _event(self, line: bytes) -> Object | None:
        """A line of a watch, or None: nothing to tell. Raises Unreachable."""
        return decoded(line, "a watch event")

    async def stream(self, path: str, query: Query = (), *, accept: str = "*/*") -> Stream:
        """An answer bit by bit: logs. The caller closes it."""
        request = Request("GET", path, query, self._headers(accept))
        attempt = 0
        while True:
            attempt += 1
            await self._limits.admit()
            stream = await self._transport.open(request)
            if stream.status < 300:
                return stream
            error = await _failure_of(stream)
            if not (isinstance(error, TooManyRequests) and await self._limits.wait_as_asked(error, attempt)):
                raise error

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Json = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Object:
        """Any request whose answer is a JSON object."""
        headers = self._headers(accept)
        payload = b""
        if body is not None:
            payload = body if isinstance(body, bytes) else orjson.dumps(body)
            headers["content-type"] = content_type
        request = Request(method, path, query, headers, payload)
        attempt = 0
        while True:
            attempt += 1
            await self._limits.admit()
            answer = await self._transport.send(request)
            if answer.status < 300:
                return decoded(answer.body, f"the answer to {method} {path}")
            error = _failure(answer.status, answer.headers, answer.body)
            if not (isinstance(error, TooManyRequests) and await self._limits.wait_as_asked(error, attempt)):
                raise error

    async def close(self) -> None:
        await self._transport.close()

    def _headers(self, accept: str) -> dict[str, str]:
        return {"accept": accept, "user-agent": self._user_agent}


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    for part in (namespace, name):
        # A name that reads as a path would reach another object than the one asked for.
        if "/" in part or "%" in part or part in (".", ".."):
            raise Invalid(400, "BadRequest", f"{part!r} cannot be the name of a {resource.kind} or namespace")
    return resource.path(namespace, name, subresource)


def _object_path(resource: Resource, namespace: str, name: str, subresource: str = "") -> str:
    # Without a name the path is the collection's, and a DELETE there ends every object in it.
    if not name:
        raise Invalid(400, "BadRequest", f"the name of the {resource.kind} is missing")
    return _path(resource, namespace, name, subresource)


def _given(**query: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in query.items() if value]


def _typed(thing: Object, resource: Resource, subresource: str = "") -> Object:
    """Items of a list come without their kind from a real API server; those who read them need not know."""
    if not subresource or subresource == "status":
        thing.setdefault("apiVersion", resource.api_version)
        thing.setdefault("kind", resource.kind)
    return thing


def decoded(body: bytes, what: str) -> Object:
    """The JSON object that a server sent; `what` it is, for the error. Raises Unreachable."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"{what} is not JSON: {_shortened(body)}") from error
    if not isinstance(value, dict):
        raise Unreachable(f"{what} is not a JSON object: {_shortened(body)}")
    return cast("Object", value)


async def _failure_of(stream: Stream) -> ApiError:
    body = bytearray()
    try:
        async for chunk in stream.chunks():
            body += chunk
            if len(body) > 1 << 20:   # a Status is small; whatever this is, its beginning will do
                break
    finally:
        await stream.close()
    return _failure(stream.status, stream.headers, bytes(body))


def _failure(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict) or status.get("kind") not in ("Status", None):
        status = {"message": f"the server answered {code}: {_shortened(body)}" if body else ""}
    # Transports inside the process hand headers over as the server wrote them.
    waits = [value for name, value in headers.items() if name.lower() == "retry-after" and value.isdecimal()]
    return from_status(code, status, header=float(waits[0]) if waits else None)


def _shortened(body: bytes) -> str:
    text = body[:200].decode(errors="replace").strip()
    return text + ("…" if len(body) > 200 else "")
