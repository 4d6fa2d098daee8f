"""Workers: what a returned moment, a failure, a cancellation and a stop lead to."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from trainmaster.api.core import PODS
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Conflict, Forbidden, Invalid, NotFound, TooManyRequests, Unreachable
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.faults import Died, is_death
from trainmaster.testing.peer import Peer


class Bench:
    """A controller on virtual time, and when it reconciled what."""

    def __init__(
        self, reconcile: Callable[[str], Awaitable[datetime | None]] | None = None, workers: int = 2,
        informers: tuple[Informer, ...] = (),
    ) -> None:
        self.clock = VirtualClock()
        self.worked: list[tuple[float, str]] = []
        self._reconcile = reconcile
        self.controller: Controller[str] = Controller(
            "test", self.reconcile, clock=self.clock, workers=workers, informers=informers
        )
        self.task: asyncio.Task[None] | None = None

    async def reconcile(self, key: str) -> datetime | None:
        self.worked.append((round(self.clock.monotonic(), 3), key))
        return await self._reconcile(key) if self._reconcile else None

    async def start(self, *keys: str) -> None:
        self.task = asyncio.create_task(self.controller.run())
        for key in keys:
            self.controller.queue.add(key)
        await self.clock.settle()

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_a_returned_moment_is_when_the_key_is_looked_at_again() -> None:
    async def reconcile(_: str) -> datetime | None:
        return bench.clock.now() + timedelta(seconds=30) if len(bench.worked) < 3 else None

    bench = Bench(reconcile)
    await bench.start("a")
    await bench.clock.advance(hours=1)
    await bench.stop()

    assert [(0, "a"), (30, "a"), (60, "a")] == bench.worked


async def test_a_failing_key_delays_nobody_else() -> None:
    async def reconcile(key: str) -> datetime | None:
        if key == "bad":
            raise ValueError("no")
        return None

    bench = Bench(reconcile, workers=1)
    await bench.start("bad", "good-1", "bad", "good-2")
    await bench.clock.advance(seconds=0.1)
    await bench.stop()

    assert [(0, "bad"), (0, "good-1"), (0, "good-2")] == bench.worked[:3]
    assert [0.005, 0.015, 0.035, 0.075] == [second for second, key in bench.worked[3:] if key == "bad"]


async def test_no_more_keys_at_once_than_workers_and_no_key_twice_at_once() -> None:
    now: list[str] = []
    most = 0

    async def reconcile(key: str) -> None:
        nonlocal most
        assert key not in now
        now.append(key)
        most = max(most, len(now))
        await bench.clock.sleep(1)
        now.remove(key)

    bench = Bench(reconcile, workers=3)
    await bench.start("a", "b", "c", "d", "a")
    bench.controller.queue.add("a")
    await bench.clock.advance(seconds=5)
    await bench.stop()

    assert 3 == most
    assert {"a": 2, "b": 1, "c": 1, "d": 1} == {k: [key for _, key in bench.worked].count(k) for k in "abcd"}


async def test_a_long_queue_does_not_keep_the_loop_to_itself() -> None:
    bench = Bench()
    await bench.start()
    for number in range(1000):
        bench.controller.queue.add(str(number))
    for _ in range(10):
        await asyncio.sleep(0)

    assert 0 < len(bench.worked) < 100
    await bench.stop()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(Unreachable("refused"), [("WARNING", False), ("INFO", False)], id="no answer: a warning, once"),
        pytest.param(
            TooManyRequests(429, "", "later"), [("WARNING", False), ("INFO", False)], id="too many: a warning, once"
        ),
        pytest.param(Conflict(409, "Conflict", "changed"), [], id="a conflict is ordinary: nothing"),
        pytest.param(
            Forbidden(403, "", "no"), [("WARNING", False), ("INFO", False)], id="not allowed: the words say what, once"
        ),
        pytest.param(
            Invalid(422, "Invalid", "spec.x: no"), [("WARNING", False), ("INFO", False)],
            id="made of something wrong: the words say what, once",
        ),
        pytest.param(ValueError("bug"), [("ERROR", True), ("INFO", False)], id="our bug: with a traceback, once"),
        pytest.param(
            asyncio.CancelledError(), [("ERROR", True), ("INFO", False)],
            id="cancelled somewhere inside: a failure like others",
        ),
    ],
)
async def test_a_failure_is_told_once_per_episode(
    error: BaseException, expected: list[tuple[str, bool]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trainmaster")

    async def reconcile(_: str) -> None:
        if len(bench.worked) <= 5:
            raise error

    bench = Bench(reconcile)
    await bench.start("a")
    await bench.clock.advance(seconds=5)
    await bench.stop()

    assert 6 == len(bench.worked)
    assert expected == [(record.levelname, record.exc_info is not None) for record in caplog.records]


async def test_another_cause_is_told_as_well(caplog: pytest.LogCaptureFixture) -> None:
    errors = [Unreachable("refused"), Unreachable("refused"), NotFound(404, "", "not there"), Unreachable("refused")]

    async def reconcile(_: str) -> None:
        if errors:
            raise errors.pop(0)

    bench = Bench(reconcile)
    await bench.start("a")
    await bench.clock.advance(seconds=5)
    await bench.stop()

    told = [record.levelname for record in caplog.records if record.levelname != "INFO"]
    assert ["WARNING", "ERROR", "WARNING"] == told


async def test_the_wait_that_a_server_asks_for_is_kept() -> None:
    async def reconcile(_: str) -> None:
        if len(bench.worked) == 1:
            raise TooManyRequests(429, "", "later", header=20.0)

    bench = Bench(reconcile)
    await bench.start("a")
    await bench.clock.advance(minutes=1)
    await bench.stop()

    assert [(0, "a"), (20, "a")] == bench.worked


async def test_success_starts_the_delays_over() -> None:
    async def reconcile(_: str) -> None:
        if len(bench.worked) not in (4, 8):
            raise ValueError

    bench = Bench(reconcile)
    await bench.start("a")
    await bench.clock.advance(seconds=1)
    bench.controller.queue.add("a")
    await bench.clock.advance(seconds=1)
    await bench.stop()

    assert [0, 0.005, 0.015, 0.035, 1, 1.005, 1.015, 1.035] == [second for second, _ in bench.worked]


async def test_work_begins_when_all_local_copies_are_complete() -> None:
    clock = VirtualClock()
    informer = Informer(Client(Peer()), PODS, clock=clock)
    bench = Bench(informers=(informer,))
    await bench.start("a")
    assert [] == bench.worked

    following = asyncio.create_task(informer.run())
    await clock.settle()
    assert [(0, "a")] == bench.worked
    following.cancel()
    await bench.stop()


async def test_a_stop_finishes_what_is_in_hand_and_takes_nothing_more() -> None:
    finished: list[str] = []

    async def reconcile(key: str) -> None:
        await bench.clock.sleep(10)
        finished.append(key)

    bench = Bench(reconcile, workers=2)
    await bench.start("a", "b", "c")
    bench.controller.stop()
    await bench.clock.settle()
    assert bench.task is not None
    assert not bench.task.done()

    await bench.clock.advance(seconds=10)

    assert bench.task.done()
    assert bench.task.exception() is None
    assert ["a", "b"] == sorted(finished)


@pytest.mark.parametrize(
    "informers",
    [
        pytest.param(lambda: (), id="while it waits for a key"),
        pytest.param(
            lambda: (Informer(Client(Peer()), PODS, clock=VirtualClock()),), id="while it waits for its local copies"
        ),
    ],
)
async def test_a_stop_while_idle_ends_at_once(informers: Callable[[], tuple[Informer, ...]]) -> None:
    bench = Bench(informers=informers())
    await bench.start()
    bench.controller.stop()
    await bench.clock.settle()

    assert bench.task is not None
    assert bench.task.done()
    assert bench.task.exception() is None


async def test_a_cancellation_ends_what_is_in_hand_and_leaves_no_task() -> None:
    async def reconcile(_: str) -> None:
        await bench.clock.sleep(10)

    before = asyncio.all_tasks()
    bench = Bench(reconcile)
    await bench.start("a")
    await bench.stop()
    await bench.clock.settle()

    assert before == asyncio.all_tasks()


async def test_the_end_of_the_process_is_not_survived() -> None:
    async def reconcile(_: str) -> None:
        raise Died("here")

    bench = Bench(reconcile)
    await bench.start("a", "b")
    await bench.clock.settle()

    assert bench.task is not None
    error = bench.task.exception()
    assert error is not None
    assert is_death(error)
