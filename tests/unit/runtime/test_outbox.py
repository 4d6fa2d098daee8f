"""Events in the background: nobody waits, nothing is lost, not even when the server is in trouble."""

import asyncio

import pytest
from tests.unit.runtime.test_recorder import Events

from trainmaster.kube.client import Client
from trainmaster.kube.limits import Limits
from trainmaster.runtime.outbox import ATTEMPTS, Outbox
from trainmaster.runtime.recorder import Recorder
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.faults import Answer, Fault, Faults, Lose, Refuse, scripted


def bench(*faults: Fault, room: int = 100) -> tuple[Events, Recorder, Outbox, VirtualClock]:
    server, clock = Events(), VirtualClock()
    transport = Faults(server, clock, scripted(dict(enumerate(faults, start=1))))
    client = Client(transport, limits=Limits(clock=clock))
    return server, Recorder(client, "operator", clock), Outbox(clock, at_once=2, room=room), clock


async def test_what_is_put_in_is_written_by_and_by() -> None:
    server, recorder, outbox, _clock = bench()
    for number in range(10):
        await outbox.put(recorder, pod("a"), "Normal", "R", f"m{number}")
    assert (10, []) == (len(outbox), server.summary())

    running = asyncio.create_task(outbox.run())
    await outbox.emptied()
    running.cancel()

    assert [(f"m{number}", 1) for number in range(10)] == sorted(server.summary())
    assert (10, 0) == (outbox.written, outbox.lost)


async def test_an_event_tells_of_the_moment_it_was_put_in() -> None:
    server, recorder, outbox, clock = bench()
    then = clock.now()
    await outbox.put(recorder, pod("a"), "Normal", "R", "m")
    await clock.advance(minutes=5)
    running = asyncio.create_task(outbox.run())
    await outbox.emptied()
    running.cancel()

    (event,) = server.kept.values()
    assert event["firstTimestamp"] == then.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        pytest.param([Refuse()] * 3, [("m", 1)], id="nobody answers for a while"),
        pytest.param([Answer(503), Answer(429, retry_after=2)], [("m", 1)], id="the server is busy"),
        pytest.param([Lose()], [("m", 1)], id="an answer that was lost counts nothing twice"),
        pytest.param([Answer(403, "Forbidden")], [], id="not allowed: given up"),
        pytest.param([Refuse()] * ATTEMPTS, [], id="gone for good: given up"),
    ],
)
async def test_a_server_in_trouble(faults: list[Fault], expected: list[tuple[str, int]]) -> None:
    server, recorder, outbox, clock = bench(*faults)
    running = asyncio.create_task(outbox.run())
    await outbox.put(recorder, pod("a"), "Normal", "R", "m")
    await clock.advance(minutes=20)
    await outbox.emptied()
    running.cancel()

    assert expected == server.summary()
    assert (len(expected), 1 - len(expected)) == (outbox.written, outbox.lost)


async def test_a_full_box_makes_its_owner_wait_and_loses_nothing() -> None:
    _server, recorder, outbox, clock = bench(room=1)
    await outbox.put(recorder, pod("a"), "Normal", "R", "first")
    waiting = asyncio.create_task(outbox.put(recorder, pod("a"), "Normal", "R", "second"))
    await clock.advance(1)
    assert not waiting.done()

    running = asyncio.create_task(outbox.run())
    await waiting
    await outbox.emptied()
    running.cancel()

    assert 2 == outbox.written


@pytest.mark.parametrize(("put_at", "written_at"), [
    pytest.param([0.0], [0.1], id="a single one waits for a moment without another"),
    pytest.param([0.0, 0.05, 0.1], [0.2, 0.2, 0.2], id="a burst waits for its end"),
    pytest.param([number / 20 for number in range(30)],
                 [round(1 + number / 20, 2) for number in range(11)] + [1.55] * 19,
                 id="nobody waits longer than a second, whatever else comes"),
])
async def test_a_box_that_waits_for_a_lull(put_at: list[float], written_at: list[float]) -> None:
    server, clock = Events(), VirtualClock()
    recorder, outbox = Recorder(Client(server), "kubelet", clock), Outbox(clock, lull=0.1)
    running = asyncio.create_task(outbox.run())
    seen: list[float] = []
    for step in range(41):
        now = step / 20
        for _ in range(put_at.count(now)):
            assert outbox.offer(recorder, pod("a"), "Normal", "R", f"at {now}")
        await clock.advance(seconds=0.05)
        seen += [round(now + 0.05, 2)] * (outbox.written - len(seen))
    running.cancel()

    assert written_at == seen


async def test_a_stop_does_not_wait_for_a_lull() -> None:
    server, clock = Events(), VirtualClock()
    recorder, outbox = Recorder(Client(server), "kubelet", clock), Outbox(clock, lull=0.1)
    await outbox.put(recorder, pod("a"), "Normal", "R", "last words")
    stopping = asyncio.create_task(outbox.emptied())
    await clock.advance(0)
    running = asyncio.create_task(outbox.run())
    await stopping
    running.cancel()

    assert [("last words", 1)] == server.summary()
