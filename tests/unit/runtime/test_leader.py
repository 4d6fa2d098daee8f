"""Leader election: one at a time, never two, whatever networks, clocks and processes do."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from trainmaster.api.core import CONFIG_MAPS, LEASES
from trainmaster.api.meta import Object
from trainmaster.kube.client import Client
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.transport import Request, Response, Stream, Transport
from trainmaster.runtime.leader import Deposed, Leadership, Terms, identity
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster
from trainmaster.testing.faults import EVERYTHING, Answer, Delay, Fault, Lose, Old, Plan, nothing, on, seeded

PLACE = "kube-system"


@dataclass(slots=True)
class SlowAnswers:
    """A network on which requests arrive at once, and the answers to writes take their time."""

    inner: Transport
    clock: VirtualClock
    seconds: float = 0.0

    async def send(self, request: Request) -> Response:
        answer = await self.inner.send(request)
        if request.method != "GET":
            await self.clock.sleep(self.seconds)
        return answer

    async def open(self, request: Request) -> Stream:
        return await self.inner.open(request)

    async def close(self) -> None:
        await self.inner.close()


class Candidate:
    """A process that wants to lead. Its work is to lead; the way in goes wrong as planned."""

    def __init__(self, cluster: Cluster, name: str, plan: Plan = nothing) -> None:
        assert isinstance(cluster.clock, VirtualClock)
        self.wire = cluster.transport(name, plan)
        self.network = SlowAnswers(self.wire, cluster.clock)
        self.leadership = Leadership(
            Client(self.network), cluster.clock, name="lease", namespace=PLACE, me=name, chance=random.Random(name)
        )
        self.client = Client(self.leadership.fenced(self.wire))
        self.works = 0
        self.at_work = False
        self.fails: Exception | None = None
        self.task = asyncio.create_task(self.leadership.run(self.work))

    async def work(self) -> None:
        self.works += 1
        self.at_work = True
        try:
            if self.fails is not None:
                raise self.fails
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)    # an end takes a moment
            self.at_work = False

    @property
    def leads(self) -> bool:
        return self.leadership.holds()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def lease(cluster: Cluster) -> Object:
    found: Object = (await cluster.client().get(LEASES, "lease", PLACE))["spec"]
    return found


async def test_the_first_leads_at_once_and_says_so_in_the_lease(cluster: Cluster, clock: VirtualClock) -> None:
    one = Candidate(cluster, "one")
    await clock.settle()
    assert (True, True, 0) == (one.leads, one.at_work, one.leadership.term)
    assert {
        "holderIdentity": "one", "leaseDurationSeconds": 15, "acquireTime": "2030-01-01T12:00:00.000000Z",
        "renewTime": "2030-01-01T12:00:00.000000Z", "leaseTransitions": 0,
    } == await lease(cluster)

    await clock.advance(minutes=10)
    assert (True, 1) == (one.leads, one.works)
    now = await lease(cluster)
    assert ("2030-01-01T12:00:00.000000Z", "2030-01-01T12:10:00.000000Z") == (now["acquireTime"], now["renewTime"])
    await one.stop()


async def test_who_stops_gives_it_back_and_the_next_begins_at_once(cluster: Cluster, clock: VirtualClock) -> None:
    one, two = Candidate(cluster, "one"), Candidate(cluster, "two")
    await clock.advance(minutes=1)
    assert (True, False) == (one.leads, two.leads)

    await one.stop()
    assert (False, "") == (one.at_work, (await lease(cluster))["holderIdentity"])
    await clock.advance(seconds=2.5)
    assert (True, 1) == (two.leads, two.leadership.term)
    await two.stop()


async def test_who_falls_silent_is_replaced_when_his_time_is_over_and_not_before(
    cluster: Cluster, clock: VirtualClock
) -> None:
    one, two = Candidate(cluster, "one"), Candidate(cluster, "two")
    await clock.advance(seconds=60)
    await one.wire.disconnect()
    seen = []
    for _ in range(200):
        await clock.advance(seconds=0.1)
        seen.append((one.leads, two.leads))

    first_without = seen.index((False, False))
    first_of_two = seen.index((False, True))
    assert (True, True) not in seen
    assert 80 <= first_without <= 100, "he stops ten seconds after the last renewal he sent"
    assert 130 <= first_of_two <= 180, "and the other begins fifteen after the last he saw"
    assert not one.at_work

    one.wire.connect()
    await clock.advance(minutes=1)
    assert (False, True, "two") == (one.leads, two.leads, one.leadership.holder)
    await two.stop()
    await clock.advance(seconds=5)
    assert (True, 2, 2) == (one.leads, one.works, one.leadership.term), "and later he may lead again"
    await one.stop()


async def test_a_process_that_dies_is_replaced(cluster: Cluster, clock: VirtualClock) -> None:
    one = Candidate(cluster, "one")
    await clock.settle()
    two = Candidate(cluster, "two")
    one.wire.died = True
    before = two.leads
    await clock.advance(seconds=14)
    assert (False, False) == (before, two.leads)
    await clock.advance(seconds=5)
    assert (False, True) == (before, two.leads)
    await one.stop()
    await two.stop()


async def test_the_fence_lets_reads_through_and_writes_only_while_we_lead(
    cluster: Cluster, clock: VirtualClock
) -> None:
    one, two = Candidate(cluster, "one"), Candidate(cluster, "two")
    await clock.settle()
    thing = {"metadata": {"name": "a", "namespace": "default"}}
    await one.client.create(CONFIG_MAPS, thing)
    with pytest.raises(Deposed, match="not the leader"):
        await two.client.delete(CONFIG_MAPS, "a", "default")
    assert "a" == (await two.client.get(CONFIG_MAPS, "a", "default"))["metadata"]["name"]
    async for event in two.client.watch(CONFIG_MAPS, "default", timeout=1):
        assert "a" == event.object["metadata"]["name"]
        break
    await one.stop()
    await two.stop()
    with pytest.raises(Deposed):
        await one.client.delete(CONFIG_MAPS, "a", "default")


async def test_a_process_that_was_starved_writes_nothing_when_it_wakes(cluster: Cluster, clock: VirtualClock) -> None:
    """Its renewals do not run; time goes on; then, before anything else, it writes."""
    one = Candidate(cluster, "one")
    await clock.settle()
    clock._elapsed += 11_000_000    # the loop stood still for eleven seconds
    with pytest.raises(Deposed):
        await one.client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default"}})
    await one.stop()


@pytest.mark.parametrize(
    ("change", "held"),
    [
        pytest.param(timedelta(hours=1), False, id="the machine slept, or was set forward"),
        pytest.param(timedelta(hours=-1), True, id="it was set back: durations are measured elsewhere"),
        pytest.param(timedelta(seconds=3), True, id="a small correction"),
    ],
)
async def test_clocks_that_jump(change: timedelta, held: bool, cluster: Cluster, clock: VirtualClock) -> None:
    one, two = Candidate(cluster, "one"), Candidate(cluster, "two")
    await clock.advance(seconds=60)
    clock.jump(change)
    assert held == one.leads

    await clock.advance(seconds=2)
    assert (True, False, 1) == (one.leads, two.leads, one.works), "nobody takes over for that"
    await one.stop()
    await two.stop()


async def by_a_passer_by(client: Client) -> None:
    await client.patch(LEASES, "lease", PLACE, {"metadata": {"labels": {"a": "b"}}})


async def by_deletion(client: Client) -> None:
    await client.delete(LEASES, "lease", PLACE)


@pytest.mark.parametrize("deed", [by_a_passer_by, by_deletion])
async def test_a_lease_that_others_touch_is_held_on_to(
    deed: Callable[[Client], Awaitable[None]], cluster: Cluster, clock: VirtualClock
) -> None:
    one = Candidate(cluster, "one")
    await clock.advance(seconds=30)
    await deed(cluster.client())
    await clock.advance(seconds=30)

    assert (True, 1, "one") == (one.leads, one.works, (await lease(cluster))["holderIdentity"])
    await one.stop()


async def test_who_finds_another_in_the_lease_stops_at_once(cluster: Cluster, clock: VirtualClock) -> None:
    one = Candidate(cluster, "one")
    await clock.advance(seconds=30)
    await cluster.client().patch(LEASES, "lease", PLACE, {"spec": {"holderIdentity": "usurper"}})
    await clock.advance(seconds=2)

    assert (False, False, "usurper") == (one.leads, one.at_work, one.leadership.holder)
    await one.stop()


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(lambda: on("PUT", "/leases", Lose(), None, Lose()), id="answers are lost"),
        pytest.param(lambda: on("POST", "/leases", Lose()), id="the answer to the first creation is lost"),
        pytest.param(lambda: on("PUT", "/leases", Answer(500), Answer(503), None), id="the server fails for a while"),
        pytest.param(lambda: on("GET", "/leases", Answer(500)), id="the first look fails"),
    ],
)
async def test_a_few_failures_cost_nothing(plan: Callable[[], Plan], cluster: Cluster, clock: VirtualClock) -> None:
    one = Candidate(cluster, "one", plan())
    await clock.advance(minutes=1)

    assert (True, 1) == (one.leads, one.works)
    await one.stop()


async def test_a_request_that_hangs_does_not_hide_that_time_is_over(cluster: Cluster, clock: VirtualClock) -> None:
    hangs = False

    def plan(request: Request, _number: int) -> Fault | None:
        return Delay(3600.0) if hangs and request.method == "PUT" else None

    one, two = Candidate(cluster, "one", plan), Candidate(cluster, "two")
    await clock.advance(seconds=60)
    hangs = True
    await clock.advance(seconds=12)
    assert (False, False) == (one.leads, one.at_work)

    await clock.advance(seconds=10)
    assert (False, True) == (one.leads, two.leads)
    await one.stop()
    await two.stop()


async def test_a_renewal_counts_from_when_it_was_sent(cluster: Cluster, clock: VirtualClock) -> None:
    """The others count from when the server has it. An answer that takes seven seconds must not prolong our time."""
    one = Candidate(cluster, "one")
    await clock.advance(seconds=60.5)
    one.network.seconds = 7.0
    await clock.advance(seconds=8.6)    # sent at 62, answered at 69
    before = one.leads
    await one.wire.disconnect()
    await clock.advance(seconds=3.5)

    assert (True, False) == (before, one.leads)
    await one.stop()


async def test_work_that_fails_gives_the_lease_back_and_is_told(cluster: Cluster, clock: VirtualClock) -> None:
    one = Candidate(cluster, "one")
    one.fails = RuntimeError("a bug")
    await clock.settle()
    with pytest.raises(RuntimeError, match="a bug"):
        await one.task

    assert ("", False) == ((await lease(cluster))["holderIdentity"], one.leads)


async def test_a_lease_that_nobody_may_read_is_asked_for_again_and_again(cluster: Cluster, clock: VirtualClock) -> None:
    def forbidden(_request: Request, number: int) -> Fault | None:
        return Answer(403, "Forbidden") if number < 20 else None

    one = Candidate(cluster, "one", forbidden)
    await clock.advance(minutes=2)

    assert one.leads
    await one.stop()


@pytest.mark.parametrize("seed", range(8))
async def test_never_two_at_a_time(seed: int, cluster: Cluster, clock: VirtualClock) -> None:
    """Three candidates, bad networks, partitions, clocks that jump: looked at ten times a second."""
    chance = random.Random(seed)
    faults = [fault for fault in EVERYTHING if not isinstance(fault, Old)]
    candidates = [
        Candidate(cluster, f"c-{number}", seeded(seed * 10 + number, rate=0.2, faults=faults)) for number in range(3)
    ]
    leaders: set[str] = set()
    terms: list[int] = []
    for _ in range(3000):
        await clock.advance(seconds=0.1)
        leading = [candidate for candidate in candidates if candidate.leads]
        assert 1 >= len(leading), [candidate.leadership.holder for candidate in leading]
        for candidate in leading:
            leaders.add(candidate.leadership.holder)
            terms.append(candidate.leadership.term)
        if chance.random() < 0.02:
            chosen = chance.choice(candidates)
            if chosen.wire.down:
                chosen.wire.connect()
            else:
                await chosen.wire.disconnect()
        if chance.random() < 0.003:
            clock.jump(timedelta(seconds=chance.uniform(-30, 30)))
    for candidate in candidates:
        await candidate.stop()

    assert sorted(terms) == terms
    assert len(leaders) >= 2, "the lead changed hands"


@pytest.mark.parametrize("terms", [(10, 10, 2), (15, 10, 10), (15, 10, 0)])
def test_terms_that_would_allow_two_are_refused(terms: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="lease"):
        Terms(*terms)


def test_every_life_has_another_name() -> None:
    assert identity() != identity()
    assert issubclass(Deposed, Unreachable)
