"""Virtual time: what moves it, in which order sleepers wake, what it can see."""

import asyncio
from datetime import timedelta

import pytest

from trainmaster.testing.clock import NOON, NeverQuiet, VirtualClock


async def test_sleepers_wake_in_the_order_of_their_moments_and_see_their_own() -> None:
    clock, woken = VirtualClock(), []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((seconds, clock.monotonic()))

    tasks = [asyncio.create_task(sleep(seconds)) for seconds in (3, 1, 2)]
    await clock.advance(seconds=10)

    assert [(1, 1.0), (2, 2.0), (3, 3.0)] == woken
    assert clock.now() == NOON + timedelta(seconds=10)
    await asyncio.gather(*tasks)


async def test_what_a_sleeper_starts_on_the_way_is_woken_on_the_same_way() -> None:
    clock, ticks = VirtualClock(), []

    async def tick() -> None:
        for _ in range(5):
            await clock.sleep(1)
            ticks.append(clock.monotonic())

    async with asyncio.TaskGroup() as group:
        group.create_task(tick())
        await clock.advance(seconds=3)
        assert [1.0, 2.0, 3.0] == ticks
        await clock.advance(minutes=1)

    assert 5 == len(ticks)


async def test_time_stands_still_while_something_can_run() -> None:
    clock = VirtualClock()

    async def chain(left: int) -> float:
        await asyncio.sleep(0)
        return await asyncio.create_task(chain(left - 1)) if left else clock.monotonic()

    task = asyncio.create_task(chain(100))
    await clock.settle()

    assert task.done()
    assert 0.0 == task.result()


async def test_both_ends_of_a_connection_in_this_process_are_seen() -> None:
    clock = VirtualClock()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())

    async def talk() -> None:
        for _ in range(20):
            writer.write(b"ping\n")
            await reader.readline()

    task = asyncio.create_task(talk())
    await clock.settle()

    assert task.done()
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()


async def test_outside_work_is_waited_for_when_it_is_told_of() -> None:
    clock, loop = VirtualClock(), asyncio.get_running_loop()
    work = loop.run_in_executor(None, sum, range(100_000))
    clock.outside(lambda: not work.done())

    await clock.settle()

    assert work.done()


async def test_sleeping_until_a_moment_notices_that_the_wall_clock_was_set() -> None:
    clock = VirtualClock()
    forward = asyncio.create_task(clock.sleep_until(NOON + timedelta(hours=1)))
    backward = asyncio.create_task(clock.sleep_until(NOON + timedelta(hours=2)))
    duration = asyncio.create_task(clock.sleep(3600))
    await clock.settle()

    clock.jump(timedelta(hours=1))
    await clock.settle()
    assert [True, False, False] == [task.done() for task in (forward, backward, duration)]

    clock.jump(timedelta(hours=-1))
    await clock.advance(hours=1)
    assert [True, False, True] == [task.done() for task in (forward, backward, duration)]

    await clock.advance(hours=1)
    assert backward.done()


@pytest.mark.parametrize("seconds", [0.1, 1 / 3, 1e-7, 31, 86_400.000001], ids=lambda s: f"{s} seconds")
async def test_a_moment_is_reached_exactly_when_its_seconds_are_over(seconds: float) -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep_until(clock.now() + timedelta(seconds=seconds)))

    await clock.advance(seconds=seconds)

    assert task.done()


async def test_run_moves_time_until_the_result_is_there() -> None:
    clock = VirtualClock()

    async def slow() -> str:
        await clock.sleep(3600)
        return "done"

    assert "done" == await clock.run(slow())
    assert 3600.0 == clock.monotonic()


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        pytest.param(None, "nothing is left", id="nobody sleeps, so nothing can bring it"),
        pytest.param(100.0, "seconds are over", id="it would take longer than the test allows"),
    ],
)
async def test_run_says_why_it_gave_up(seconds: float | None, why: str) -> None:
    clock = VirtualClock()
    never = asyncio.Event()

    async def slow() -> None:
        await (never.wait() if seconds is None else clock.sleep(seconds))

    with pytest.raises(TimeoutError, match=why):
        await clock.run(slow(), within=60)


async def test_a_loop_without_a_wait_is_reported_instead_of_hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.testing.clock.MOST_ROUNDS", 1000)

    async def spin() -> None:
        while True:  # noqa: ASYNC110  this is the mistake under test
            await asyncio.sleep(0)

    task = asyncio.create_task(spin())
    with pytest.raises(NeverQuiet):
        await VirtualClock().settle()
    task.cancel()


async def test_cancelled_sleepers_do_not_hold_time_back() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.settle()
    assert 5.0 == clock.next_wake()
    task.cancel()
    await clock.settle()

    assert clock.next_wake() is None
