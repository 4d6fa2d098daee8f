"""The informer against a peer that can be told to end, forget, fall silent or go back in time."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, name_of, revision_of, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.transport import Request
from trainmaster.runtime.informer import Informer
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.faults import (
    Answer,
    Cut,
    Delay,
    Expire,
    Fault,
    Faults,
    Lose,
    Old,
    Plan,
    Refuse,
    Stutter,
    nothing,
    on,
    scripted,
    seeded,
)
from trainmaster.testing.peer import Peer


class Story:
    """A peer, an informer that follows it, and what it told."""

    def __init__(self, plan: Plan = nothing, seed: int = 1) -> None:
        self.clock = VirtualClock()
        self.peer = Peer()
        self.wire = Faults(self.peer, self.clock, plan)
        self.informer = Informer(Client(self.wire), PODS, clock=self.clock, chance=random.Random(seed))
        self.told: list[str] = []
        self.wrong: list[str] = []     # changes that do not begin where the last one ended, or lead back in time
        self.newest: dict[str, int] = {}
        self.replayed: dict[str, Object] = {}
        self.informer.on_change(self.hear)
        self.task: asyncio.Task[None] | None = None

    def hear(self, before: Object | None, after: Object | None) -> None:
        thing = after or before or {}
        self.told.append(f"{name_of(thing)} {revision_of(before or {}) or '-'} {revision_of(after or {}) or '-'}")
        if self.replayed.get(name_of(thing)) != before:
            self.wrong.append(f"gap: {self.told[-1]}")
        if after is not None and int(revision_of(after) or 1) <= self.newest.get(uid_of(after), 0):
            self.wrong.append(f"back: {self.told[-1]}")
        if after is not None and revision_of(after):
            self.newest[uid_of(after)] = int(revision_of(after))
        if after is None:
            self.replayed.pop(name_of(thing), None)
        else:
            self.replayed[name_of(thing)] = after

    async def start(self) -> None:
        self.task = asyncio.create_task(self.informer.run())
        await self.clock.settle()

    async def stop(self) -> None:
        assert self.task is not None
        assert not self.task.done(), self.task
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def state(self) -> dict[str, str]:
        return {name_of(thing): revision_of(thing) for thing in self.informer.copy.all()}

    def truth(self) -> dict[str, str]:
        return {name: revision_of(thing) for name, thing in self.peer.pods.items()}


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    made = Story()
    yield made
    await made.stop()


async def test_what_is_there_is_told_before_it_is_synced(story: Story) -> None:
    story.peer.put("a")
    synced = asyncio.create_task(story.informer.synced())
    await asyncio.sleep(0)
    assert not synced.done()

    await story.start()

    assert synced.done()
    assert ["a - 101"] == story.told
    assert ("v1", "Pod") == (story.informer.copy.all()[0]["apiVersion"], story.informer.copy.all()[0]["kind"])


async def test_a_long_list_comes_in_pages_of_one_revision(story: Story) -> None:
    for number in range(1200):
        story.peer.put(f"pod-{number}")

    await story.start()

    assert 1200 == len(story.informer.copy)
    assert ["list", "list", "list", "watch"] == [request.split()[0] for request in story.peer.requests]
    assert "watch 1300" == story.peer.requests[-1]


async def test_changes_are_told_as_they_come(story: Story) -> None:
    await story.start()
    story.peer.put("a")
    story.peer.put("a")
    story.peer.delete("a")
    await story.clock.settle()

    assert ["a - 101", "a 101 102", "a 102 -"] == story.told
    assert 0.0 == story.clock.monotonic()


async def test_after_the_end_of_a_stream_it_goes_on_from_the_last_revision(story: Story) -> None:
    await story.start()
    story.peer.put("a")
    await story.clock.settle()
    story.peer.end()
    story.peer.put("b")
    await story.clock.settle()

    assert ["list limit=500", "watch 100", "watch 101"] == story.peer.requests
    assert ["a - 101", "b - 102"] == story.told


async def test_a_bookmark_moves_the_revision_to_go_on_from(story: Story) -> None:
    await story.start()
    story.peer.revision = 500    # changes of other kinds
    story.peer.bookmark()
    await story.clock.settle()
    story.peer.compact()
    story.peer.end()
    await story.clock.settle()

    assert ["list limit=500", "watch 100", "watch 500"] == story.peer.requests


async def test_when_the_server_forgot_only_the_difference_is_told(story: Story) -> None:
    for name in ("same", "changed", "gone", "again"):
        story.peer.put(name)
    await story.start()
    story.told.clear()
    story.peer.end()
    story.peer.put("changed")
    story.peer.delete("gone")
    story.peer.delete("again")
    story.peer.put("again")
    story.peer.put("new")
    story.peer.compact()
    await story.clock.settle()

    assert ["gone 103 -", "changed 102 105", "again 104 -", "again - 108", "new - 109"] == story.told
    assert story.truth() == story.state()


async def test_when_pages_are_forgotten_half_way_all_is_listed_at_once(story: Story) -> None:
    for number in range(600):
        story.peer.put(f"pod-{number}")
    story.wire.plan = on("GET", "/pods", None, Answer(410, "Expired"))

    await story.start()

    assert 600 == len(story.informer.copy)
    assert ["list limit=500", "list", "watch 700"] == story.peer.requests


@pytest.mark.parametrize(
    ("fault", "requests"),
    [
        pytest.param(Refuse(), ["list limit=500", "watch 100"], id="refused"),
        pytest.param(Answer(500), ["list limit=500", "watch 100"], id="an error of the server"),
        pytest.param(Answer(429), ["list limit=500", "watch 100"], id="too many requests"),
        pytest.param(Answer(404), ["list limit=500", "list limit=500", "watch 100"], id="the kind is not there"),
        pytest.param(Answer(504), ["list limit=500", "list limit=500", "watch 100"], id="the revision is not known"),
    ],
)
async def test_failing_watches_are_tried_again_and_only_refusals_lead_to_a_new_list(
    fault: Fault, requests: list[str]
) -> None:
    story = Story(scripted(dict.fromkeys(range(2, 5), fault)))
    await story.start()
    await story.clock.advance(seconds=60)

    assert requests == story.peer.requests
    await story.stop()


async def test_failures_are_retried_ever_more_slowly_with_jitter() -> None:
    times: list[float] = []
    tried = Story()

    def plan(_request: Request, _number: int) -> Fault:
        times.append(tried.clock.monotonic())
        return Refuse()

    tried.wire.plan = plan
    await tried.start()
    await tried.clock.advance(minutes=5)
    await tried.stop()

    waits = [after - before for before, after in pairwise(times)]
    full = [min(30.0, 0.2 * 2**n) for n in range(len(waits))]
    assert len(waits) > 12
    assert all(0.5 * most <= wait <= most for wait, most in zip(waits, full, strict=True))
    assert len({round(wait / most, 3) for wait, most in zip(waits, full, strict=True)}) > 5


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop() -> None:
    story = Story(lambda _, number: Cut(0) if number > 1 else None)
    await story.start()
    await story.clock.advance(minutes=1)
    await story.stop()

    assert len(story.peer.requests) < 15


async def test_a_server_that_always_forgets_is_not_asked_in_a_tight_loop() -> None:
    story = Story(lambda *_: Expire(0))
    await story.start()
    await story.clock.advance(minutes=1)
    await story.stop()

    assert len(story.peer.requests) < 30


async def test_the_wait_that_a_server_asks_for_is_kept() -> None:
    story = Story(scripted({1: Answer(503, retry_after=20)}))
    await story.start()
    await story.clock.advance(seconds=9.9)
    assert [] == story.peer.requests

    await story.clock.advance(seconds=10.1)
    assert ["list limit=500", "watch 100"] == story.peer.requests
    await story.stop()


async def test_repeated_and_older_events_are_not_told() -> None:
    story = Story(scripted({2: Stutter()}))
    await story.start()
    story.peer.put("a")
    story.peer.put("a")
    story.peer.delete("a")
    story.peer.put("b")
    await story.clock.settle()

    assert ["a - 101", "a 101 102", "a 102 -", "b - 104"] == story.told
    await story.stop()


async def test_a_list_from_a_server_that_is_behind_is_not_believed() -> None:
    story = Story(scripted({2: Expire(1), 3: Old()}))
    await story.start()
    story.peer.put("a")
    await story.clock.settle()
    assert {"a": "101"} == story.state()

    story.peer.put("b")
    await story.clock.advance(seconds=10)
    assert ["a - 101", "b - 102"] == story.told
    await story.stop()


async def test_a_server_that_was_set_back_for_good_is_believed_after_a_while(story: Story) -> None:
    story.peer.put("a")
    story.peer.put("b")
    await story.start()
    story.peer.pods, story.peer.revision, story.peer.oldest = {"a": pod("a", uid="uid-1", revision="50")}, 60, 10
    story.peer.history.clear()
    story.peer.end()
    await story.clock.advance(minutes=2)

    assert {"a": "50"} == story.state()
    story.peer.put("c")
    await story.clock.settle()
    assert {"a": "50", "c": "61"} == story.state()


async def test_a_kind_that_vanishes_leaves_the_copy_as_it_was(story: Story) -> None:
    """A restarting API server answers 404 for custom kinds for a moment: no reason to forget all jobs."""
    story.peer.put("a")
    await story.start()
    story.wire.plan = lambda *_: Answer(404, "NotFound")
    story.peer.end()
    await story.clock.advance(minutes=5)
    assert {"a": "101"} == story.state()

    story.wire.plan = nothing
    await story.clock.advance(minutes=1)
    assert ["a - 101"] == story.told


async def test_a_watch_that_falls_silent_for_too_long_is_dropped(story: Story) -> None:
    await story.start()
    silent = story.peer.watches.pop()    # the connection stays, the server forgot it
    story.peer.put("a")
    await story.clock.advance(seconds=640)

    assert silent.closed
    assert {"a": "101"} == story.state()


async def test_a_callback_that_fails_costs_the_others_nothing(story: Story) -> None:
    heard: list[str] = []
    story.informer.on_change(lambda *_: [][0])
    story.informer.on_change(lambda _, after: heard.append(name_of(after or {})))
    await story.start()
    story.peer.put("a")
    story.peer.put("b")
    await story.clock.settle()

    assert ["a", "b"] == heard


async def test_who_comes_late_is_told_what_is_there(story: Story) -> None:
    story.peer.put("a")
    await story.start()
    heard: list[tuple[Object | None, str]] = []

    story.informer.on_change(lambda before, after: heard.append((before, name_of(after or {}))))

    assert [(None, "a")] == heard


async def test_cancelling_closes_the_stream(story: Story) -> None:
    await story.start()
    watch = story.peer.watches[0]
    assert story.task is not None
    story.task.cancel()
    await story.clock.settle()

    assert story.task.cancelled()
    assert watch.closed
    await story.start()


async def test_an_answer_that_cannot_be_read_does_not_end_the_loop(story: Story) -> None:
    await story.start()
    story.peer.watches[0].lines.put_nowait(b'{"type":"ADDED","object":{"metadata":{"name":["odd"]}}}\n')
    story.peer.watches[0].lines.put_nowait(b'{"type":"ADDED","object":7}\n')
    await story.clock.settle()
    story.peer.put("a")
    await story.clock.advance(seconds=5)

    assert "a" in story.state()


async def test_trouble_is_said_once_per_episode(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trainmaster")
    story = Story(lambda _, number: Refuse() if 2 <= number <= 6 else None)
    await story.start()
    await story.clock.advance(minutes=2)
    story.peer.put("a")
    await story.clock.settle()
    await story.stop()

    assert ["cannot watch, trying again", "watching again"] == [record.message for record in caplog.records]


FAULTS = (Refuse(), Lose(), Delay(3.0), Answer(500), Answer(429), Answer(410, "Expired"), Answer(504), Answer(404),
          Old(), Cut(0), Cut(1), Cut(3, torn=True), Expire(0), Expire(2), Stutter())


def at_most_two_old(plan: Plan) -> Plan:
    """A server that answers from the past again and again is taken for one that was set back, and rightly so."""
    left = 2

    def limited(request: Request, number: int) -> Fault | None:
        nonlocal left
        fault = plan(request, number)
        if isinstance(fault, Old):
            left -= 1
        return None if isinstance(fault, Old) and left < 0 else fault

    return limited


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rate=st.sampled_from([0.2, 0.5, 0.8]),
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["put", "put", "delete"]), st.sampled_from("abcd")),
            st.tuples(st.sampled_from(["end", "compact", "bookmark", "settle", "wait", "down", "up"]), st.just("")),
        ),
        max_size=40,
    ),
)
def test_whatever_goes_wrong_the_copy_converges_and_the_callbacks_tell_it(
    seed: int, rate: float, steps: list[tuple[str, str]]
) -> None:
    async def run() -> None:
        story = Story(at_most_two_old(seeded(seed, rate, FAULTS, until=60)), seed)
        await story.start()
        for verb, name in steps:
            match verb:
                case "put" | "delete":
                    getattr(story.peer, verb)(name)
                case "settle":
                    await story.clock.settle()
                case "wait":
                    await story.clock.advance(seconds=2)
                case "down":
                    await story.wire.disconnect()
                case "up":
                    story.wire.connect()
                case _:
                    getattr(story.peer, verb)()
        story.wire.connect()
        await story.clock.advance(minutes=20)
        await story.stop()

        assert [] == story.wrong
        assert story.truth() == story.state()
        assert story.replayed == {name_of(thing): thing for thing in story.informer.copy.all()}

    asyncio.run(run())
