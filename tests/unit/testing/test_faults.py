"""The faulty transport: every fault does what it says, seeds repeat, and deaths can be enumerated."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import orjson
import pytest

from trainmaster.api.core import PODS
from trainmaster.api.meta import name_of, revision_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError, Gone, Unreachable
from trainmaster.kube.transport import Request, Response, Stream
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.faults import (
    EVERYTHING,
    Answer,
    Cut,
    Delay,
    Died,
    Expire,
    Fault,
    Faults,
    Lose,
    Old,
    Plan,
    Refuse,
    Repeat,
    Stutter,
    Write,
    crash_points,
    fits,
    is_death,
    nothing,
    on,
    scripted,
    seeded,
)
from trainmaster.testing.peer import Peer

GET, POST = Request("GET", "/api/v1/pods"), Request("POST", "/api/v1/pods")
WATCH, LOG = Request("GET", "/api/v1/pods", [("watch", "true")]), Request("GET", "/api/v1/pods/a/log")


class Counter:
    """Takes pods and knows how many came."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def send(self, request: Request) -> Response:
        body = orjson.loads(request.body or b"{}")
        if request.method == "POST" and name_of(body) in self.names:
            return Response(409, {}, b'{"kind":"Status","code":409,"reason":"AlreadyExists"}')
        if request.method == "POST":
            self.names.append(name_of(body))
        return Response(200, {}, orjson.dumps(body))

    async def open(self, request: Request) -> Stream:
        raise NotImplementedError

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("fault", "carried_out", "outcome"),
    [
        pytest.param(None, 1, None, id="a good day"),
        pytest.param(Refuse(), 0, Unreachable, id="refused: not done"),
        pytest.param(Lose(), 1, Unreachable, id="answer lost: done, and nobody knows"),
        pytest.param(Repeat(), 1, ApiError, id="repeated: done once, and the second answer says it is there"),
        pytest.param(Answer(409, "Conflict"), 0, ApiError, id="a conflict: not done"),
        pytest.param(Answer(503), 0, ApiError, id="an error of the server: not done"),
    ],
)
async def test_a_write_with_a_fault(fault: Fault | None, carried_out: int, outcome: type[Exception] | None) -> None:
    server = Counter()
    client = Client(Faults(server, VirtualClock(), scripted({1: fault} if fault else {})))
    if outcome is None:
        await client.create(PODS, pod("a"))
    else:
        with pytest.raises(outcome):
            await client.create(PODS, pod("a"))

    assert carried_out == len(server.names)


async def test_a_delayed_write_is_overtaken() -> None:
    server, clock = Counter(), VirtualClock()
    client = Client(Faults(server, clock, scripted({1: Delay(5)})))
    slow = asyncio.create_task(client.create(PODS, pod("slow")))
    await clock.settle()
    await client.create(PODS, pod("fast"))
    await clock.advance(seconds=5)

    assert ["fast", "slow"] == server.names
    assert slow.done()


async def test_an_old_list_is_the_first_one_that_was_given() -> None:
    peer = Peer()
    client = Client(Faults(peer, VirtualClock(), scripted({2: Old()})))
    revisions = []
    for name in ("a", "b", "c"):
        peer.put(name)
        revisions.append((await client.list(PODS)).revision)

    assert ["101", "101", "103"] == revisions


@pytest.mark.parametrize(
    ("fault", "expected", "outcome"),
    [
        pytest.param(Cut(0), [], None, id="cut before the first event"),
        pytest.param(Cut(2), ["101", "102"], None, id="cut after the second"),
        pytest.param(Cut(1, torn=True), ["101"], Unreachable, id="torn in the middle of the second"),
        pytest.param(Expire(1), ["101"], Gone, id="expired after the first"),
        pytest.param(
            Stutter(), ["101", "101", "101", "102", "102", "101", "103", "103", "101"], None, id="everything twice"
        ),
        pytest.param(Answer(500), [], ApiError, id="not even opened"),
    ],
)
async def test_a_watch_with_a_fault(fault: Fault, expected: list[str], outcome: type[Exception] | None) -> None:
    peer, clock = Peer(), VirtualClock()
    client = Client(Faults(peer, clock, scripted({1: fault})))
    seen: list[str] = []

    async def follow() -> None:
        async for event in client.watch(PODS, revision="100"):
            seen.append(revision_of(event.object))  # noqa: PERF401  what came before an error counts

    for _ in range(3):
        peer.put("a")
    task = asyncio.create_task(follow())
    await clock.settle()
    peer.end()
    await clock.settle()

    assert expected == seen
    assert isinstance(task.exception(), outcome or type(None))


async def test_a_disconnected_client_reaches_nobody_and_its_streams_end() -> None:
    peer, clock = Peer(), VirtualClock()
    wire = Faults(peer, clock)
    client = Client(wire)

    async def follow() -> None:
        async for _ in client.watch(PODS, revision="100"):
            pass

    task = asyncio.create_task(follow())
    await clock.settle()
    await wire.disconnect()
    await clock.settle()
    assert task.done()
    with pytest.raises(Unreachable):
        await client.list(PODS)

    wire.connect()
    assert [] == (await client.list(PODS)).items


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param(GET, {Refuse, Lose, Delay, Answer, Old}, id="a read"),
        pytest.param(POST, {Refuse, Lose, Delay, Answer, Repeat}, id="a write"),
        pytest.param(WATCH, {Refuse, Delay, Answer, Cut, Expire, Stutter}, id="a watch"),
        pytest.param(LOG, {Refuse, Delay, Answer, Cut, Stutter}, id="a log"),
    ],
)
def test_what_can_happen_to_which_request(request_: Request, expected: set[type]) -> None:
    assert expected == {type(fault) for fault in EVERYTHING if fits(fault, request_)}


def test_only_writes_meet_conflicts() -> None:
    assert not fits(Answer(409), GET)
    assert fits(Answer(409), POST)


def test_the_same_seed_goes_wrong_the_same_way() -> None:
    def rolls(plan: Plan) -> list[Fault | None]:
        return [plan(POST, number) for number in range(1, 101)]

    assert rolls(seeded(7)) == rolls(seeded(7))
    assert rolls(seeded(7)) != rolls(seeded(8))
    assert 10 < len([fault for fault in rolls(seeded(7, rate=0.3)) if fault]) < 60
    assert all(fault is None for fault in rolls(seeded(7, rate=1.0, until=50))[50:])


def test_a_plan_for_some_requests_leaves_the_others_alone() -> None:
    plan = on("POST", "/pods", None, Refuse())

    assert [None, None, Refuse(), None] == [plan(request, 0) for request in (GET, POST, POST, POST)]


async def test_death_comes_after_the_write_and_is_for_ever() -> None:
    server = Counter()
    faults = Faults(server, VirtualClock(), die_after=2)
    client = Client(faults)
    await client.create(PODS, pod("a"))
    with pytest.raises(Died, match="write 2: POST /api/v1/namespaces/default/pods"):
        await client.create(PODS, pod("b"))
    with pytest.raises(Died):
        await client.list(PODS)

    assert ["a", "b"] == server.names
    assert faults.died


async def test_every_crash_point_of_a_story_is_visited() -> None:
    """The story makes three pods, takes what is there for done, and starts over when it died."""

    async def story(die_after: int | None) -> tuple[Sequence[Write], list[str]]:
        server = Counter()
        first = Faults(server, VirtualClock(), nothing, die_after)
        for life in (first, Faults(server, VirtualClock())):
            with suppress(Died):
                for name in "abc":
                    if name not in server.names:
                        await Client(life).create(PODS, pod(name))
        return first.writes, server.names

    found = [(point, clean == end) async for point, clean, end in crash_points(story)]

    assert ["write 1", "write 2", "write 3"] == [point.split(":")[0].removeprefix("died after ") for point, _ in found]
    assert all(same for _, same in found)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(Died(), True, id="death itself"),
        pytest.param(BaseExceptionGroup("", [BaseExceptionGroup("", [Died()])]), True, id="deep in groups"),
        pytest.param(ExceptionGroup("", [ValueError()]), False, id="something else"),
    ],
)
def test_telling_death_from_failure(error: BaseException, expected: bool) -> None:
    assert expected == is_death(error)
