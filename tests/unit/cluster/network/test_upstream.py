"""Names of the outside world."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.network.names import A, encoded
from trainmaster.cluster.network.nameserver import Nameserver
from trainmaster.cluster.network.upstream import Upstream, failure, lifetime, records, resolvers

LOOPBACK = "127.0.0.1"


def query(name: str, kind: int = A, number: int = 7) -> bytes:
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + encoded(name) + struct.pack("!HH", kind, 1)


def reply(question: bytes, *addresses: str, ttl: int = 60, code: int = 0) -> bytes:
    head = question[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(addresses), 0, 0)
    found = (b"\xc0\x0c" + struct.pack("!HHIH", A, 1, ttl, 4) + bytes(map(int, one.split("."))) for one in addresses)
    return head + question[12:] + b"".join(found)


def answered(message: bytes) -> list[str]:
    return [".".join(map(str, data)) for kind, _, data in records(message) if kind == A]


@asynccontextmanager
async def resolver(answer: Callable[[bytes], bytes | None]) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A resolver on this machine; its port, and what it was asked."""
    asked: list[bytes] = []

    class Server(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = cast("asyncio.DatagramTransport", transport)

        def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
            asked.append(data)
            if (said := answer(data)) is not None:
                self.transport.sendto(said, addr)

    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Server, (LOOPBACK, 0))
    try:
        yield transport.get_extra_info("sockname")[1], asked
    finally:
        transport.close()


async def test_an_answer_comes_back_under_the_askers_number_and_is_kept_for_a_while() -> None:
    now = [0.0]
    async with resolver(lambda data: reply(data, "1.2.3.4", ttl=20)) as (port, asked):
        upstream = Upstream(lambda: [LOOPBACK], lambda: now[0], port=port)
        first = await upstream.ask(query("example.com", number=7), stream=False)
        second = await upstream.ask(query("EXAMPLE.com", number=8), stream=False)
        now[0] = 21.0
        await upstream.ask(query("example.com", number=9), stream=False)

    assert (b"\0\7", b"\0\x08") == (first[:2], second[:2])
    assert (["1.2.3.4"], ["1.2.3.4"], 2) == (answered(first), answered(second), len(asked))


async def test_an_answer_under_another_number_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.cluster.network.upstream.SECONDS", 0.05)
    async with resolver(lambda data: b"\0\0" + reply(data, "6.6.6.6")[2:]) as (port, _):
        found = await Upstream(lambda: [LOOPBACK], lambda: 0.0, port=port).ask(query("example.com"), stream=False)

    assert (2, []) == (found[3] & 0xF, answered(found))


@pytest.mark.parametrize("servers", [
    pytest.param([], id="no resolver"), pytest.param(["127.0.0.1"], id="one that does not listen"),
])
async def test_when_nobody_answers_that_is_said_at_once(servers: list[str]) -> None:
    found = await Upstream(lambda: servers, lambda: 0.0, port=1).ask(query("example.com"), stream=False)

    assert (b"\0\7", 2) == (found[:2], found[3] & 0xF)


@pytest.mark.parametrize(("expected", "message"), [
    pytest.param(20.0, reply(query("a.b"), "1.1.1.1", ttl=20), id="as long as it says"),
    pytest.param(30.0, reply(query("a.b"), "1.1.1.1", ttl=9999), id="but not long"),
    pytest.param(5.0, reply(query("a.b"), code=3), id="an absence shortly"),
    pytest.param(0.0, reply(query("a.b"), code=2), id="a failure not at all"),
    pytest.param(0.0, failure(query("a.b")), id="our own neither"),
])
def test_how_long_an_answer_is_kept(expected: float, message: bytes) -> None:
    assert expected == lifetime(message)


def service(name: str, **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "train"}, "spec": spec}


@pytest.mark.parametrize(("expected", "asked", "name"), [
    pytest.param(["1.2.3.4"], 1, "example.com", id="a name of the outside world"),
    pytest.param(["10.96.0.5"], 0, "web.train.svc.cluster.local", id="ours are answered here"),
    pytest.param([], 0, "nobody.train.svc.cluster.local", id="also those that are not there"),
    pytest.param([], 0, "web", id="one word is not asked outside"),
    pytest.param([], 0, "9.0.88.10.in-addr.arpa", id="nor an address of a pod"),
    pytest.param(["1.2.3.4"], 1, "db.train.svc.cluster.local", id="an external name is followed"),
])
async def test_who_is_asked(expected: list[str], asked: int, name: str) -> None:
    services = [service("web", clusterIP="10.96.0.5"),
                service("db", type="ExternalName", externalName="db.example.com")]
    async with resolver(lambda data: reply(data, "1.2.3.4")) as (port, questions):
        server = Nameserver(lambda: services, list, Upstream(lambda: [LOOPBACK], lambda: 0.0, port=port))
        found = await server.answer(query(name), stream=False)

    assert (expected, asked) == (answered(found), len(questions))


def test_resolvers_of_this_machine() -> None:
    text = "# mine\nsearch a.b\nnameserver 127.0.0.53\nnameserver fe80::1%eth0\nnameserver\noptions edns0\n"

    assert ["127.0.0.53", "fe80::1"] == resolvers(text)
