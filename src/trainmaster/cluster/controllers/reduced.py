"""A client whose lists and watches keep only what a controller looks at.

A controller that follows every pod needs ten fields of each. Whole objects in its local copy would cost ten times the
memory, once per controller; reading them again from the server on each look would cost the server. So objects are cut
down between the wire and the copy, and everything else goes through to the client underneath.

Several controllers follow the pods, each with a watch of its own, and are told the same bytes one after the other. What
was just read for one is not read again for the next: as what is kept is never changed, they may hold parts of the same.

Who wants few of many objects says by which word they are known: an event without it is not even read. To read a pod
costs the time in which one could look through the bytes of twenty.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache

from trainmaster.api.meta import Json, Object, Resource, metadata
from trainmaster.kube.client import JSON, METADATA, METADATA_LIST, Client, Page, Query, WatchEvent, decoded
from trainmaster.kube.transport import Stream
from trainmaster.runtime.store import older

Keep = Callable[[Object], Object]             # makes another object and leaves the one it is given as it is


@dataclass(frozen=True, slots=True)
class Only:
    """The objects that have something which an object has for its whole life, or never."""

    word: bytes                               # is in the JSON of each of them, and perhaps of some others
    has: Callable[[Object], bool]


# Events that are remembered: those of one commit are told to one watcher after the other. And of what length, in bytes:
# definitions are large, and have one reader.
REMEMBERED = 32
LONGEST_REMEMBERED = 16 * 1024
# Events about objects. Of the others, an error and a bookmark, each is for everybody.
_OF_OBJECTS = tuple(b'{"type":"%s"' % kind for kind in (b"ADDED", b"MODIFIED", b"DELETED"))


class Reduced(Client):
    """For one informer. `bare` asks the server for metadata alone.

    `revision` is how far the informer has come: all changes up to it are in its copy.
    """

    def __init__(self, client: Client, keep: Keep, *, bare: bool = False, only: Only | None = None) -> None:
        self._client = client
        self._keep = keep
        self._bare = bare
        self._only = only
        self.revision = ""

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
        page = await super().list(
            resource, namespace, labels=labels, fields=fields, limit=limit, more=more, revision=revision,
            accept=METADATA_LIST if self._bare else accept,
        )
        if not page.more:
            self._came_to(page.revision)
        items = page.items if self._only is None else filter(self._only.has, page.items)
        return Page([self._keep(item) for item in items], page.revision, page.more)

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
        watch = super().watch(
            resource, namespace, labels=labels, fields=fields, revision=revision, bookmarks=bookmarks, timeout=timeout,
            accept=METADATA if self._bare else accept,
        )
        async with aclosing(watch) as events:
            async for event in events:
                self._came_to(str(metadata(event.object).get("resourceVersion", "")))
                # Whoever reads us takes the event before anybody else gets a turn, so the revision is not ahead of him.
                if event.type == "BOOKMARK":
                    yield event
                elif self._only is None or self._only.has(event.object):
                    yield WatchEvent(event.type, self._keep(event.object))

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
        return await self._client.request(
            method, path, query=query, body=body, content_type=content_type, accept=accept
        )

    async def stream(self, path: str, query: Query = (), *, accept: str = "*/*") -> Stream:
        return await self._client.stream(path, query, accept=accept)

    async def close(self) -> None:
        """The client underneath is its owner's to close."""

    def _event(self, line: bytes) -> Object | None:
        if self._only is not None and self._only.word not in line and line.startswith(_OF_OBJECTS):
            return None
        return super()._event(line) if self._bare or len(line) > LONGEST_REMEMBERED else _read(line)

    def _came_to(self, revision: str) -> None:
        if revision and not older(revision, self.revision):
            self.revision = revision


@lru_cache(maxsize=REMEMBERED)
def _read(line: bytes) -> Object:
    return decoded(line, "a watch event")
