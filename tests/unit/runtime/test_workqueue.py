"""The work queue: order, one worker per key, delays on both time lines, no lost wake-ups."""

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.runtime.workqueue import Workqueue
from trainmaster.testing.clock import NOON, VirtualClock

Queue = Workqueue[str]


def later(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


async def drained(queue: Queue, clock: VirtualClock) -> list[tuple[float, str]]:
    """Everything the queue gives out from now on, with the second it came."""
    found: list[tuple[float, str]] = []

    async def work() -> None:
        while True:
            key = await queue.get()
            found.append((round(clock.monotonic(), 6), key))
            queue.done(key)

    task = asyncio.create_task(work())
    await clock.advance(hours=2)
    task.cancel()
    return found


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        pytest.param(lambda q: [q.add("a"), q.add("b")], [(0, "a"), (0, "b")], id="first come, first served"),
        pytest.param(lambda q: [q.add("a"), q.add("b"), q.add("a")], [(0, "a"), (0, "b")], id="a key is queued once"),
        pytest.param(
            lambda q: [q.add_at("a", NOON + later(20)), q.add_at("b", NOON + later(10))], [(10, "b"), (20, "a")],
            id="each key at its moment",
        ),
        pytest.param(
            lambda q: [q.add_at("a", NOON + later(seconds)) for seconds in (20, 10, 30)],
            [(10, "a")], id="of several moments the earliest counts, and only that",
        ),
        pytest.param(lambda q: q.add_at("a", NOON - later(5)), [(0, "a")], id="a moment in the past is now"),
        pytest.param(
            lambda q: [q.add("a"), q.add_at("a", NOON + later(5))], [(0, "a"), (5, "a")],
            id="a later moment is kept although the key was worked on before",
        ),
        pytest.param(lambda q: q.retry("a"), [(0.005, "a")], id="the first retry comes after 5 ms"),
        pytest.param(lambda q: q.retry("a", 7.0), [(7, "a")], id="a retry waits as long as the server asked"),
        pytest.param(
            lambda q: [q.retry("a") for _ in range(3)], [(0.005, "a")],
            id="retries of a key that already waits do not add up",
        ),
    ],
)
async def test_what_comes_out(fill: Callable[[Queue], object], expected: list[tuple[float, str]]) -> None:
    clock = VirtualClock()
    queue: Queue = Workqueue(clock)
    fill(queue)

    assert expected == await drained(queue, clock)


async def test_retries_double_up_to_the_longest_delay_until_forgotten() -> None:
    clock = VirtualClock()
    queue: Queue = Workqueue(clock)
    delays = []
    for _ in range(20):
        queue.retry("a")
        before = clock.monotonic()
        await clock.run(queue.get())
        delays.append(round(clock.monotonic() - before, 6))
        queue.done("a")

    assert [0.005, 0.01, 0.02, 0.04] == delays[:4]
    assert [655.36, 1000.0, 1000.0] == delays[17:]
    assert 20 == queue.attempts("a")

    queue.forget("a")
    queue.retry("a")
    before = clock.monotonic()
    await clock.run(queue.get())
    assert 0.005 == pytest.approx(clock.monotonic() - before)


async def test_a_key_in_work_is_not_given_to_a_second_worker_but_queued_behind_the_others() -> None:
    clock = VirtualClock()
    queue: Queue = Workqueue(clock)
    queue.add("hot")
    assert "hot" == await queue.get()
    queue.add("hot")
    queue.add_at("hot", NOON)
    queue.add("cold")

    assert "cold" == await queue.get()
    waiting = asyncio.create_task(queue.get())
    await clock.settle()
    assert not waiting.done()

    queue.done("hot")
    await clock.settle()
    assert "hot" == waiting.result()


async def test_an_earlier_timer_wakes_those_who_sleep_for_a_later_one() -> None:
    clock = VirtualClock()
    queue: Queue = Workqueue(clock)
    queue.add_at("late", NOON + later(100))
    worker = asyncio.create_task(queue.get())
    await clock.advance(seconds=1)
    queue.add_at("early", NOON + later(10))

    await clock.advance(seconds=9)

    assert worker.done()
    assert "early" == worker.result()


async def test_moments_follow_the_wall_clock_and_retries_do_not() -> None:
    clock = VirtualClock()
    queue: Queue = Workqueue(clock)
    for _ in range(15):
        queue.retry("retried", 60.0)
    queue.add_at("timed", NOON + later(3600))
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await clock.settle()

    clock.jump(timedelta(hours=1))
    await clock.settle()
    assert {first.done(), second.done()} == {True, False}
    assert "timed" == (first if first.done() else second).result()

    await clock.advance(seconds=60)
    assert {"timed", "retried"} == {first.result(), second.result()}


async def test_nothing_sleeps_when_nobody_waits() -> None:
    clock = VirtualClock()
    queue: Queue = Workqueue(clock)
    queue.add_at("a", NOON + later(5))
    worker = asyncio.create_task(queue.get())
    await clock.settle()
    assert 5.0 == clock.next_wake()

    worker.cancel()
    await clock.settle()

    assert clock.next_wake() is None
    await clock.advance(seconds=6)
    assert "a" == await queue.get()


async def test_a_cancelled_worker_leaves_its_key_and_the_timers_to_another() -> None:
    clock = VirtualClock()
    queue: Queue = Workqueue(clock)
    queue.add_at("timed", NOON + later(5))
    doomed, other = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await clock.settle()

    queue.add("now")
    doomed.cancel()    # both before the loop runs again
    await clock.settle()
    assert "now" == other.result()

    third = asyncio.create_task(queue.get())
    await clock.advance(seconds=5)
    assert "timed" == third.result()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 5))
def test_every_key_that_is_added_is_worked_on_after_that(seed: int, workers: int) -> None:
    """Whatever the order of adds, delays, cancelled workers and slow work: none is lost, none is doubled."""
    asyncio.run(_churn(random.Random(seed), workers))


async def _churn(chance: random.Random, workers: int) -> None:
    clock = VirtualClock()
    queue: Queue = Workqueue(clock)
    wanted: dict[str, float] = {}      # key -> not worked on since this second
    in_work: set[str] = set()

    async def work() -> None:
        while True:
            key = await queue.get()
            assert key not in in_work
            in_work.add(key)
            due = wanted.pop(key, None)
            try:
                await clock.sleep(chance.choice([0, 0.5]))
            except asyncio.CancelledError:
                if due is not None:
                    wanted.setdefault(key, due)
                    queue.add(key)
                raise
            finally:
                in_work.discard(key)
                queue.done(key)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    for _ in range(40):
        key = chance.choice("abcdef")
        match chance.randrange(5):
            case 0:
                queue.add(key)
                wanted[key] = clock.monotonic()
            case 1:
                seconds = chance.uniform(0, 3)
                queue.add_at(key, clock.now() + later(seconds))
                wanted.setdefault(key, clock.monotonic() + seconds)
            case 2:
                queue.retry(key)
                wanted.setdefault(key, clock.monotonic() + 1000)
            case 3:
                await clock.advance(seconds=chance.uniform(0, 2))
            case 4:
                doomed = chance.randrange(workers)
                tasks[doomed].cancel()
                if chance.random() < 0.5:
                    await asyncio.gather(tasks[doomed], return_exceptions=True)
                tasks[doomed] = asyncio.create_task(work())
    await clock.advance(hours=1)
    for task in tasks:
        assert not task.done() or task.cancelled(), task.exception()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert {} == wanted
    assert 0 == len(queue)


class Counting:
    """An onlooker that writes everything down."""

    def __init__(self) -> None:
        self.seen: list[str | tuple[str, float]] = []

    def added(self) -> None:
        self.seen.append("added")

    def retried(self) -> None:
        self.seen.append("retried")

    def taken(self, waited: float) -> None:
        self.seen.append(("taken", round(waited, 3)))

    def done(self, worked: float) -> None:
        self.seen.append(("done", round(worked, 3)))


async def test_an_onlooker_sees_who_came_and_how_long_it_took() -> None:
    clock, counting = VirtualClock(), Counting()
    queue: Queue = Workqueue(clock, counting)

    queue.add("a")
    queue.add("a")
    await clock.advance(2)
    await queue.get()
    await clock.advance(3)
    queue.add("a")      # waits from here on, although it is worked on
    queue.add("a")
    await clock.advance(4)
    assert [7] == [round(age, 3) for age in queue.in_work()]
    queue.done("a")
    await queue.get()
    queue.done("a")
    queue.retry("a")

    assert ["added", ("taken", 2), "added", ("done", 7), ("taken", 4), ("done", 0), "retried"] == counting.seen
    assert [] == queue.in_work()
