"""The operator as a process: the lease, what an old leader can still do, probes, and an end in good order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import NAMESPACE, Stage, stage

from trainmaster.api.core import LEASES
from trainmaster.cluster.apiserver.auth import MASTERS, Identity
from trainmaster.cluster.apiserver.inprocess import InProcess
from trainmaster.kube.transport import Request, Response, Stream, Transport
from trainmaster.operator import process
from trainmaster.operator.config import DEFAULTS
from trainmaster.operator.metrics import Metrics
from trainmaster.operator.probes import Address, Health, Probes, Taken, address
from trainmaster.operator.process import Lease, Process
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.faults import Delay, Faults, Plan, nothing, on

LEASE = Lease("lease", NAMESPACE)


class Running:
    """One process that competes for the lease."""

    def __init__(self, it: Stage, name: str, plan: Plan = nothing, lease: Lease | None = LEASE) -> None:
        self.wire = Faults(InProcess(it.server, Identity(name, (MASTERS,))), it.clock, plan=plan)
        self.stop = asyncio.Event()
        self.ready = asyncio.Event()
        wanted = Process(DEFAULTS, lease=lease)
        self.task = asyncio.create_task(
            process.run(wanted, self.wire, "embedded", it.clock, self.stop, self.ready.set)
        )

    async def end(self) -> None:
        self.stop.set()
        await self.task

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def holder(it: Stage) -> str:
    return str((await it.client.get(LEASES, LEASE.name, LEASE.namespace))["spec"]["holderIdentity"])


async def test_it_works_as_soon_as_it_leads_and_gives_the_lease_back_when_it_stops() -> None:
    async with stage() as it:
        one = Running(it, "one")
        await it.apply(tfjob())
        await it.clock.advance(2)
        assert one.ready.is_set()
        assert await it.pods()
        assert await holder(it)

        await one.end()

        assert "" == await holder(it)


async def test_one_that_stands_by_writes_nothing_and_takes_over_when_the_first_stops() -> None:
    async with stage() as it:
        one = Running(it, "one")
        await it.clock.advance(2)
        two = Running(it, "two")
        await it.apply(tfjob())
        await it.clock.advance(5)
        assert await it.pods()
        assert [] == two.wire.writes

        await one.end()
        await it.clock.advance(5)
        await it.run()
        await it.clock.advance(5)

        assert "Running" == (await it.status())["conditions"][-1]["type"]
        await two.end()


async def test_one_that_never_led_stops_at_once() -> None:
    async with stage() as it:
        one = Running(it, "one")
        await it.clock.advance(2)
        two = Running(it, "two")
        await it.clock.advance(2)

        await two.end()

        assert await holder(it)
        await one.end()


class Dawdling:
    """A network on which status writes arrive a minute late, whatever becomes of their sender."""

    def __init__(self, inner: Transport, clock: VirtualClock) -> None:
        self.inner = inner
        self.clock = clock
        self.late: list[asyncio.Task[Response]] = []

    async def send(self, request: Request) -> Response:
        if not request.path.endswith("/status"):
            return await self.inner.send(request)
        self.late.append(asyncio.create_task(self._later(request)))
        return await asyncio.shield(self.late[-1])

    async def _later(self, request: Request) -> Response:
        await self.clock.sleep(60)
        return await self.inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self.inner.open(request)

    async def close(self) -> None:
        pass    # its requests are still under way


async def test_what_an_old_leader_sent_in_time_and_arrives_late_changes_nothing() -> None:
    """Its status write hangs in the network while another takes over and goes on; then it arrives."""
    async with stage() as it:
        network = Dawdling(InProcess(it.server, Identity("one", (MASTERS,))), it.clock)
        one = asyncio.create_task(process.run(Process(DEFAULTS, lease=LEASE), network, "x", it.clock, asyncio.Event()))
        await it.apply(tfjob())
        await it.clock.advance(2)
        assert await it.pods()
        assert 1 == len(network.late)
        one.cancel()
        await asyncio.gather(one, return_exceptions=True)
        two = Running(it, "two")
        await it.clock.advance(20)
        await it.run()
        await it.clock.advance(5)
        before = await it.picture()
        assert "Running" == before["job"]["status"]["conditions"][-1]["type"]

        await it.clock.advance(60)

        assert 409 == (await network.late[0]).status
        assert before == await it.picture()
        await two.end()


async def test_what_is_under_way_is_done_and_told_before_the_end() -> None:
    async with stage() as it:
        one = Running(it, "one", on("POST", "/events", *[Delay(1)] * 4), lease=None)
        await it.clock.advance(1)
        await it.apply(tfjob())
        await it.clock.advance(0.5)
        one.stop.set()
        await it.clock.advance(8)

        assert one.task.done()
        told = {event["reason"] for event in await it.events()}
        assert {"SuccessfulCreatePod", "SuccessfulCreateService"} <= told


async def test_an_end_takes_no_longer_than_there_is() -> None:
    async with stage() as it:
        one = Running(it, "one", on("POST", "/pods", *[Delay(3600)] * 10), lease=None)
        await it.apply(tfjob())
        await it.clock.advance(1)
        one.stop.set()
        await it.clock.advance(DEFAULTS.grace + 1)

        assert one.task.done()


@asynccontextmanager
async def probing(health: Health, metrics: Metrics) -> AsyncIterator[tuple[aiohttp.ClientSession, dict[str, str]]]:
    anywhere = Address("127.0.0.1:0")
    async with Probes(health, metrics, anywhere, anywhere) as probes, aiohttp.ClientSession() as session:
        yield session, {name: f"http://127.0.0.1:{port}" for name, port in probes.ports.items()}


async def test_alive_and_ready() -> None:
    health = Health(checks={"certificate": lambda: True})
    async with probing(health, Metrics()) as (session, at):
        assert 200 == (await session.get(at["health"] + "/healthz")).status
        waiting = await session.get(at["health"] + "/readyz")
        assert (500, "not ready: synced\n") == (waiting.status, await waiting.text())

        health.ready = True
        assert 200 == (await session.get(at["health"] + "/readyz")).status

        health.checks["certificate"] = lambda: False
        assert "not ready: certificate\n" == await (await session.get(at["health"] + "/readyz")).text()


async def test_the_figures() -> None:
    metrics = Metrics()
    metrics.count("training_operator_jobs_created_total", "team", "tensorflow")
    async with probing(Health(), metrics) as (session, at):
        answer = await session.get(at["metrics"] + "/metrics")
        text = await answer.text()

    assert 'training_operator_jobs_created_total{framework="tensorflow",job_namespace="team"} 1.0' in text
    assert "process_resident_memory_bytes" in text
    assert answer.headers["Content-Type"].startswith("text/plain; version=")


async def test_an_address_that_is_taken_is_an_error_only_if_it_was_asked_for() -> None:
    anywhere = Address("127.0.0.1:0")
    async with Probes(Health(), Metrics(), anywhere, None) as first:
        taken = f"127.0.0.1:{first.ports['health']}"
        async with Probes(Health(), Metrics(), Address(taken, asked=False), None) as second:
            assert {} == second.ports
        with pytest.raises(Taken, match=f"cannot listen on {taken} for health"):
            async with Probes(Health(), Metrics(), Address(taken), None):
                pass


@pytest.mark.parametrize(
    ("text", "asked", "in_pod", "expected"),
    [
        pytest.param(":8081", False, True, (None, 8081), id="in a pod everywhere: the kubelet asks from outside"),
        pytest.param(":8081", False, False, ("127.0.0.1", 8081), id="elsewhere nobody outside is meant"),
        pytest.param(":8081", True, False, (None, 8081), id="unless somebody says so"),
        pytest.param("[::1]:9", True, False, ("::1", 9), id="an address of the new sort"),
        pytest.param("0", True, True, None, id="nowhere"),
    ],
)
def test_where_to_listen(text: str, asked: bool, in_pod: bool, expected: tuple[str | None, int] | None) -> None:
    found = address(text, asked=asked, in_pod=in_pod)

    assert expected == (None if found is None else (found.host, found.port))


@pytest.mark.parametrize("text", ["8080", "host", "host:x", ":70000"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="write HOST:PORT, :PORT or 0 for nowhere"):
        address(text, asked=True, in_pod=False)
