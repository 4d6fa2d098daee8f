"""Kill the whole server under load, again and again, with eight clients and three watchers at it over TLS.

Only the real process shows that an answer on the wire means a write on the disk. Nothing acknowledged is lost, no
revision comes twice or goes back, one order explains all answers, and the watches keep their guarantees over all lives.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from tests.faults.apiserver_clients import CLIENTS, MAPS, Client, History, now, revision_of
from tests.faults.apiserver_history import problems
from tests.faults.apiserver_process import Server
from tests.faults.apiserver_watching import Happened, Recording, Told, faults
from tests.faults.seeds import seeded

from trainmaster.api.meta import Object
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.transport import Request, Transport


class Follower:
    """A watch that is resumed in every life of the server where the last one ended."""

    def __init__(self, query: tuple[tuple[str, str], ...], selected: Callable[[Object], bool]) -> None:
        self._query = query
        self.recording = Recording(selected, 0)

    async def follow(self, transport: Transport) -> None:
        """Until the server dies."""
        pairs = (("watch", "1"), ("allowWatchBookmarks", "true"), *self._query,
                 ("resourceVersion", str(self.recording.seen)))
        rest = b""
        with contextlib.suppress(Unreachable):
            stream = await transport.open(Request("GET", MAPS, pairs))
            assert 200 == stream.status
            try:
                async for chunk in stream.chunks():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for event in map(orjson.loads, lines):
                        assert event["type"] != "ERROR", event
                        self.recording.told.append(Told(event["type"], event["object"]))
            finally:
                await stream.close()
        self.recording.cuts += 1

    async def reach(self, revision: int) -> None:
        async with asyncio.timeout(120):
            while self.recording.seen < revision:     # noqa: ASYNC110  what comes over the wire tells nobody else
                await asyncio.sleep(0.01)


def labelled(parity: str) -> Callable[[Object], bool]:
    return lambda found: bool((found["metadata"].get("labels") or {}).get("parity") == parity)


async def one_life(server: Server, history: History, clients: list[Client], followers: list[Follower],
                   seconds: float) -> None:
    transports = [server.transport() for _ in (*clients, *followers)]
    working = [asyncio.ensure_future(client.work(transport, 1_000_000))
               for client, transport in zip(clients, transports, strict=False)]
    working += [asyncio.ensure_future(follower.follow(transport))
                for follower, transport in zip(followers, transports[len(clients):], strict=True)]
    await asyncio.sleep(seconds)          # real: the load and the kill are
    await asyncio.to_thread(server.kill)
    death = now()                         # what has not happened by then never will
    async with asyncio.timeout(120):
        await asyncio.gather(*working)
    history.died(death)
    for transport in transports:
        await transport.close()


def truth_of(recording: Recording) -> list[Happened]:
    """What happened, as the watch of everything tells it; the others are held against it."""
    before: dict[str, Object] = {}
    found = []
    for each in recording.told:
        if each.type == "BOOKMARK":
            continue
        name = each.object["metadata"]["name"]
        was = before.pop(name, None)
        if each.type == "DELETED":
            found.append(Happened(each.revision, was, None, each.object))
        else:
            before[name] = each.object
            found.append(Happened(each.revision, was, each.object))
    return found


def compare(history: History, truth: list[Happened]) -> None:
    """Every acknowledged write was told, as it was answered; what else was told had been asked for."""
    truth = [each for each in truth if "value" in ((each.after or each.last or {}).get("data") or {})]    # our clients'
    told = {each.revision: each for each in truth}
    for each in history.acknowledged:
        if each.verb != "delete":
            after = told[each.revision].after
            assert after is not None
            assert (each.key, each.value) == (after["metadata"]["name"], after["data"]["value"])
    asked = {"last"} | {each.value for each in history.operations if each.verb in {"create", "update"}}
    assert asked >= {each.after["data"]["value"] for each in truth if each.after is not None}
    deletions = [each for each in history.operations if each.verb == "delete" and each.code in {0, 200}]
    gone = [each for each in truth if each.after is None]
    assert len([each for each in deletions if each.code]) <= len(gone) <= len(deletions)


@pytest.mark.parametrize("kills", [
    pytest.param(1, id="once"),
    pytest.param(5, id="a few times", marks=pytest.mark.faults),
    pytest.param(50, id="as often as the design asks for", marks=[pytest.mark.faults, pytest.mark.full]),
])
async def test_killed_under_load(tmp_path: Path, kills: int) -> None:
    chance = seeded()
    server, history = Server.at(tmp_path / "home"), History()
    clients = [Client(number, history, random.Random(chance.random())) for number in range(CLIENTS)]
    everything = Follower((), lambda _thing: True)
    followers = [everything, *(Follower((("labelSelector", f"parity={parity}"),), labelled(parity))
                               for parity in ("odd", "even"))]
    try:
        for life in range(kills):
            await asyncio.to_thread(server.start)
            if not life:
                await begin(server, followers)
            await one_life(server, history, clients, followers, chance.choice([0.05, 0.3, 0.6, 1.0]) if life else 1.0)
        await asyncio.to_thread(server.start)
        await last_look(server, history, followers)
    finally:
        await asyncio.to_thread(server.stop)

    truth = truth_of(everything.recording)
    assert [] == problems(history.operations, history.lists)
    for follower in followers:
        assert [] == faults(follower.recording, truth)
    compare(history, truth)
    print(f"{kills} kills, {len(history.operations)} operations, {len(history.acknowledged)} acknowledged writes, "
          f"{len(history.lists)} lists, {len(truth)} changes told")
    assert "Traceback" not in server.log.read_text()


async def begin(server: Server, followers: list[Follower]) -> None:
    """All start from the same revision."""
    transport = server.transport()
    found = orjson.loads((await transport.send(Request("GET", MAPS))).body)
    await transport.close()
    for follower in followers:
        follower.recording.start = revision_of(found)


async def last_look(server: Server, history: History, followers: list[Follower]) -> None:
    """A life without load: everybody catches up, and every key is read once more."""
    transport = server.transport()
    following = [asyncio.ensure_future(follower.follow(transport)) for follower in followers]
    reader = Client(-1, history, random.Random(0))
    for key in ("a", "b", "c"):
        await reader._get(transport, key)
    await reader._list(transport)
    history.died(now())
    made = []
    for key, value in (("a", "odd"), ("b", "even")):         # one more change that each of them must be told
        sent = {"metadata": {"name": f"last-{key}", "labels": {"parity": value}}, "data": {"value": "last"}}
        asked = Request("POST", MAPS, (), {"content-type": "application/json"}, orjson.dumps(sent))
        made.append(revision_of(orjson.loads((await transport.send(asked)).body)))      # others write in between, too
    for follower, revision in zip(followers, (made[-1], *made), strict=True):
        await follower.reach(revision)
    await asyncio.to_thread(server.stop)
    await asyncio.gather(*following)
    await transport.close()
