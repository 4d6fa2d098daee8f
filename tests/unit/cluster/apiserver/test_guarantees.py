"""The six guarantees of a watch, on recorded watches of the server: cut, resumed, compacted, restarted, too slow.

The judge comes first: one that cannot complain shows nothing.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.faults.apiserver_watching import Happened, Recording, Told, expected, faults
from tests.faults.seeds import seeded

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.store import Closed, Store, Subscription, Window
from trainmaster.kube.transport import Request, Stream
from trainmaster.testing.clock import VirtualClock

WINDOW = Window(changes=60)
NAMESPACES = ("default", "kube-public")
PREFIX = "/core/configmaps/"


def thing(revision: int, label: str = "x", name: str = "a") -> Object:
    return {"metadata": {"name": name, "resourceVersion": str(revision), "labels": {"l": label}}}


TRUTH = [
    Happened(2, None, thing(2)),
    Happened(3, thing(2), thing(3)),
    Happened(4, thing(3), thing(4, "y")),
    Happened(5, thing(4, "y"), None, thing(5, "y")),
    Happened(6, None, thing(6)),
]


def everything(_thing: Object) -> bool:
    return True


def with_x(found: Object) -> bool:
    return bool((found["metadata"].get("labels") or {}).get("l") == "x")


ALL = list(expected(everything, TRUTH, 0, 9))
SOME = list(expected(with_x, TRUTH, 0, 9))
MARK = Told("BOOKMARK", thing(4))


def test_what_must_be_told() -> None:
    assert [("ADDED", 2), ("MODIFIED", 3), ("MODIFIED", 4), ("DELETED", 5), ("ADDED", 6)] == [
        (each.type, each.revision) for each in ALL]
    assert [("ADDED", 2), ("MODIFIED", 3), ("DELETED", 4), ("ADDED", 6)] == [
        (each.type, each.revision) for each in SOME]


@pytest.mark.parametrize(("recording", "complaint"), [
    pytest.param(Recording(everything, 0, ALL), "", id="all of it"),
    pytest.param(Recording(with_x, 0, SOME), "", id="what is selected"),
    pytest.param(Recording(everything, 3, ALL[2:]), "", id="from a revision on"),
    pytest.param(Recording(everything, 0, ALL[:3]), "", id="so far"),
    pytest.param(Recording(everything, 0, [*ALL[:3], MARK, *ALL[3:]]), "", id="a mark in its place"),
    pytest.param(Recording(everything, 0, [ALL[1], ALL[0]]), "not ordered", id="the wrong way round"),
    pytest.param(Recording(everything, 0, [*ALL[:2], *ALL[1:]]), "not unique", id="twice"),
    pytest.param(Recording(everything, 0, [ALL[0], *ALL[2:]]), "not reliable", id="a gap"),
    pytest.param(Recording(with_x, 0, ALL), "not reliable", id="more than was selected"),
    pytest.param(Recording(everything, 0, [*ALL[:2], MARK, *ALL[3:]]), "not reliable", id="a mark over a gap"),
    pytest.param(Recording(everything, 0, [*ALL[:2], MARK, *ALL[2:]]), "not bookmarkable", id="a mark too early"),
    pytest.param(Recording(everything, 2, ALL), "not resumable", id="something from before the start"),
    pytest.param(Recording(everything, 0, [Told("ADDED", thing(2, "y")), *ALL[1:]]), "not atomic", id="other content"),
    pytest.param(Recording(everything, 0, [Told("MODIFIED", thing(2)), *ALL[1:]]), "not atomic", id="another type"),
])
def test_the_judge(recording: Recording, complaint: str) -> None:
    found = faults(recording, TRUTH)

    assert any(each.startswith(complaint) for each in found) if complaint else not found


class World:
    """A server that can be restarted, and the truth as its store tells it, below all that watches are made of."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.clock = VirtualClock()
        self.truth: list[Happened] = []
        self.store: Store
        self.transport: InProcess
        self._server: ApiServer
        self._heard: Subscription
        self._listening: asyncio.Task[None]

    async def start(self) -> None:
        self.store = Store.open(self.path, window=WINDOW)
        self._server = ApiServer(self.store, clock=self.clock)
        known = self.truth[-1].revision if self.truth else self.store.revision
        self._heard = self.store.subscribe(PREFIX, max(known, self.store.oldest))
        self._listening = asyncio.ensure_future(self._listen())
        await self._server.start()
        self.transport = InProcess(self._server, Identity("tests", ("system:masters",)))

    async def stop(self) -> None:
        await self._server.close()
        await self.store.close()
        await self._listening

    async def _listen(self) -> None:
        while True:
            try:
                changes = await self._heard.next()
            except Closed:
                return
            for each in changes:
                before = orjson.loads(each.before) if each.before else None
                if each.value is None:       # it carries the last state, with the deletion's own revision
                    self.truth.append(Happened(each.revision, before, None, before))
                else:
                    self.truth.append(Happened(each.revision, before, orjson.loads(each.value)))

    async def ask(self, method: str, path: str, body: Object | None = None, media: str = "application/json",
                  query: tuple[tuple[str, str], ...] = ()) -> Any:
        sent = b"" if body is None else orjson.dumps(body)
        answer = await self.transport.send(Request(method, path, query, {"content-type": media}, sent))
        assert answer.status < 500, answer.body
        return orjson.loads(answer.body)

    async def settle(self) -> None:
        """Until nothing moves and nothing is on its way to the disk."""
        await self.clock.settle()
        while self.store._busy or self.store._queue:
            await asyncio.sleep(0.0005)       # the writer is a thread
            await self.clock.settle()


class Watcher:
    """Lists, watches, is cut and resumes, lists again when it must."""

    def __init__(self, world: World, namespace: str, query: tuple[tuple[str, str], ...],
                 selected: Callable[[Object], bool]) -> None:
        self._world = world
        self._path = f"/api/v1/namespaces/{namespace}/configmaps" if namespace else "/api/v1/configmaps"
        self._query = query
        self._namespace = namespace
        self._by_content = selected
        self.recordings: list[Recording] = []
        self._task: asyncio.Task[None] | None = None
        self._stream: Stream | None = None

    def _selected(self, found: Object) -> bool:
        return (not self._namespace or found["metadata"]["namespace"] == self._namespace) and self._by_content(found)

    def follow(self) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._follow())

    async def cut(self) -> None:
        """In the middle of whatever it is reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            if self._stream is not None:
                await self._stream.close()
        if self.recordings:
            self.recordings[-1].cuts += 1

    async def _follow(self) -> None:
        while True:
            if not self.recordings:
                await self._list()
            pairs = (("watch", "1"), ("allowWatchBookmarks", "true"), *self._query,
                     ("resourceVersion", str(self.recordings[-1].seen)))
            self._stream = await self._world.transport.open(Request("GET", self._path, pairs))
            if self._stream.status != 200:
                return
            async for chunk in self._stream.chunks():
                for line in chunk.splitlines():
                    if not await self._hear(orjson.loads(line)):
                        break
            self.recordings[-1].cuts += 1
            if self._world.store._closing:
                return

    async def _hear(self, event: Object) -> bool:
        if event["type"] == "ERROR":
            assert 410 == event["object"]["code"], event
            await self._list()
            return False
        self.recordings[-1].told.append(Told(event["type"], event["object"]))
        return True

    async def _list(self) -> None:
        listed = await self._world.ask("GET", self._path, query=self._query)
        self.recordings.append(Recording(self._selected, int(listed["metadata"]["resourceVersion"])))


def by_label(world: World, namespace: str = "") -> Watcher:
    return Watcher(world, namespace, (("labelSelector", "l=x"),), with_x)


def without_label(world: World) -> Watcher:
    return Watcher(world, "default", (("labelSelector", "l notin (x)"),), lambda found: not with_x(found))


def by_name(world: World) -> Watcher:
    return Watcher(world, "default", (("fieldSelector", "metadata.name=a"),),
                   lambda found: bool(found["metadata"]["name"] == "a"))


def of_all(world: World, namespace: str = "") -> Watcher:
    return Watcher(world, namespace, (), everything)


async def write(world: World, chance: random.Random) -> None:
    path = f"/api/v1/namespaces/{chance.choice(NAMESPACES)}/configmaps"
    name, label = chance.choice("abc"), chance.choice(["x", "x", "y", ""])
    labels = {"l": label} if label else {}
    match chance.choice(["put", "put", "patch", "delete"]):
        case "delete":
            await world.ask("DELETE", f"{path}/{name}")
        case "patch":
            await world.ask("PATCH", f"{path}/{name}", {"data": {"n": str(chance.random())}},
                            "application/merge-patch+json")
        case _:
            body: Object = {"metadata": {"name": name, "labels": labels}, "data": {"n": str(chance.random())}}
            answer = await world.ask("PUT", f"{path}/{name}", body)
            if answer["kind"] == "Status":
                await world.ask("POST", path, body)


async def story(chance: random.Random, path: Path | None, steps: int) -> list[Recording]:
    world = World(path)
    await world.start()
    watchers = [of_all(world), of_all(world, "default"), by_label(world), by_label(world, "default"),
                without_label(world), by_name(world)]
    async with AsyncExitStack() as stack:
        for watcher in watchers:
            stack.push_async_callback(watcher.cut)
        for _ in range(steps):
            match chance.choices(["write", "cut", "read", "wait", "forget", "restart"], (50, 15, 20, 5, 4, 3))[0]:
                case "write":
                    await asyncio.gather(*(write(world, chance) for _ in range(chance.randrange(1, 9))))
                case "cut":
                    await chance.choice(watchers).cut()
                case "read":
                    chance.choice(watchers).follow()
                    for _ in range(chance.randrange(6)):
                        await asyncio.sleep(0)
                case "wait":
                    await world.clock.advance(61)         # quiet watches tell how far they are
                case "forget":
                    await world.store.compact(world.store.revision - chance.randrange(30))
                case "restart" if path is not None:
                    await world.settle()
                    await asyncio.gather(*(watcher.cut() for watcher in watchers))
                    await world.stop()
                    await world.start()
        for watcher in watchers:
            watcher.follow()
        await world.settle()
        await world.clock.advance(61)
        await world.settle()
        newest = world.store.revision
    for watcher in watchers:
        assert newest == watcher.recordings[-1].seen, "somebody stayed behind"
    await world.stop()
    recordings = [recording for watcher in watchers for recording in watcher.recordings]
    for recording in recordings:
        assert [] == faults(recording, world.truth)
    return recordings


@pytest.mark.parametrize("number", range(12))
async def test_in_memory(number: int) -> None:
    recordings = await story(seeded(f"memory {number}"), None, 120)

    assert sum(len(recording.told) for recording in recordings) > 30
    assert sum(recording.cuts for recording in recordings) > 5


@pytest.mark.parametrize("number", range(5))
async def test_on_disk_with_restarts(number: int, tmp_path: Path) -> None:
    recordings = await story(seeded(f"disk {number}"), tmp_path / "cluster.db", 100)

    assert sum(len(recording.told) for recording in recordings) > 10
