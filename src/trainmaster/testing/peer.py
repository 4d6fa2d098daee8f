"""A server of pods that a test moves by hand: ends streams, forgets history, goes back in time.

For what no real server can be told to do at a given moment. It knows just enough of lists and watches for an informer;
everything else is tested against the embedded API server, which is the one that ships.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

import orjson

from trainmaster.api.meta import Object
from trainmaster.kube.transport import Request, Response
from trainmaster.testing.builders import pod

END = object()
PIECE = 50    # bytes: events come in pieces, as from a network


@dataclass(slots=True)
class Watch:
    """One open stream of the peer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    lines: asyncio.Queue[object] = field(default_factory=asyncio.Queue)
    closed: bool = False

    async def chunks(self) -> AsyncIterator[bytes]:
        while (line := await self.lines.get()) is not END:
            assert isinstance(line, bytes)
            for start in range(0, len(line), PIECE):
                yield line[start : start + PIECE]

    async def close(self) -> None:
        self.closed = True
        self.lines.put_nowait(END)


class Peer:
    """A Transport that lists and watches pods as a Kubernetes API server does; `put` and the like move it."""

    def __init__(self) -> None:
        self.revision = 100
        self.oldest = 100
        self.pods: dict[str, Object] = {}
        self.history: list[tuple[int, bytes]] = []
        self.watches: list[Watch] = []
        self.requests: list[str] = []
        self.pages: dict[str, tuple[str, list[Object]]] = {}
        self.uids = 0

    def put(self, name: str) -> None:
        self.revision += 1
        if name not in self.pods:
            self.uids += 1
        uid = self.pods[name]["metadata"]["uid"] if name in self.pods else f"uid-{self.uids}"
        event = "MODIFIED" if name in self.pods else "ADDED"
        self.pods[name] = pod(name, uid=uid, revision=str(self.revision))
        self._publish(event, self.pods[name])

    def delete(self, name: str) -> None:
        if gone := self.pods.pop(name, None):
            self.revision += 1
            gone["metadata"]["resourceVersion"] = str(self.revision)
            self._publish("DELETED", gone)

    def bookmark(self) -> None:
        self._publish("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(self.revision)}}, kept=False)

    def end(self) -> None:
        """End all streams, as a server does when their time is over."""
        for watch in self.watches:
            watch.lines.put_nowait(END)
        self.watches.clear()

    def compact(self) -> None:
        self.oldest = self.revision
        self.history.clear()
        self.pages.clear()

    async def send(self, request: Request) -> Response:
        query = dict(request.query)
        self.requests.append(f"list {urlencode(query)}".strip())
        limit = int(query.get("limit", "0"))
        if token := query.get("continue"):
            if token not in self.pages:
                return Response(410, {}, orjson.dumps({"kind": "Status", "code": 410, "reason": "Expired"}))
            revision, rest = self.pages.pop(token)
        else:
            revision, rest = str(self.revision), list(self.pods.values())
        about = {"resourceVersion": revision}
        if limit and len(rest) > limit:
            about["continue"] = f"{revision}-{len(rest)}"
            self.pages[about["continue"]] = (revision, rest[limit:])
            rest = rest[:limit]
        items = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in rest]
        return Response(200, {}, orjson.dumps({"kind": "PodList", "metadata": about, "items": items}))

    async def open(self, request: Request) -> Watch:
        query = dict(request.query)
        self.requests.append(f"watch {query.get('resourceVersion')}")
        watch, since = Watch(), int(query["resourceVersion"])
        if since > self.revision:
            status = {"kind": "Status", "code": 504, "reason": "Timeout", "message": "too large resource version"}
            return self._refused(504, status)
        if since < self.oldest:
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            watch.lines.put_nowait(orjson.dumps({"type": "ERROR", "object": status}) + b"\n")
            watch.lines.put_nowait(END)
            return watch
        for revision, line in self.history:
            if revision > since:
                watch.lines.put_nowait(line)
        self.watches.append(watch)
        return watch

    async def close(self) -> None:
        pass

    def _refused(self, code: int, status: Object) -> Watch:
        watch = Watch(status=code)
        watch.lines.put_nowait(orjson.dumps(status))
        watch.lines.put_nowait(END)
        return watch

    def _publish(self, event: str, thing: Object, *, kept: bool = True) -> None:
        line = orjson.dumps({"type": event, "object": thing}) + b"\n"
        if kept:
            self.history.append((self.revision, line))
        for watch in self.watches:
            watch.lines.put_nowait(line)
