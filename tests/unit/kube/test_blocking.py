"""The transport without a loop: the same requests, the same names for what goes wrong."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson
import pytest
from aiohttp import web
from tests.unit.kube.test_http import mirror, serving

from trainmaster.api.core import PODS
from trainmaster.kube.blocking import BlockingClock, BlockingTransport, done, each
from trainmaster.kube.client import Client
from trainmaster.kube.credentials import Credential
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.limits import Limits
from trainmaster.kube.tls import ClientCertificate
from trainmaster.kube.transport import Request

T = TypeVar("T")
SECRET = "sesame-0123456789"
API = Request("GET", "/api")


class Authority(Protocol):
    """What `conftest.Authority` offers."""

    pem: bytes

    def issue(self, name: str, *, address: str = ...) -> tuple[bytes, bytes]: ...


@pytest.fixture
def tls(server_files: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server_files)
    return context


@contextmanager
def speaking(server: str, **options: Any) -> Iterator[BlockingTransport]:
    transport = BlockingTransport(server, **options)
    try:
        yield transport
    finally:
        done(transport.close())


async def aside(work: Callable[[], T]) -> T:
    """In a thread, as the server that answers lives on this test's loop."""
    return await asyncio.to_thread(work)


def ask(transport: BlockingTransport, request: Request = API) -> dict[str, object]:
    answer = done(transport.send(request))
    assert 200 == answer.status
    found = orjson.loads(answer.body)
    assert isinstance(found, dict)
    return found


async def test_a_request_arrives_as_it_was_meant(tls: ssl.SSLContext, authority: Authority) -> None:
    request = Request("PATCH", "/api/v1/namespaces/a b/pods/system:x", [("x", "1"), ("x", "2&3+4")],
                      {"content-type": "application/merge-patch+json"}, b'{"a":1}')
    async with serving(tls=tls) as address:
        with speaking(f"{address}/below", token=SECRET, ca=authority.pem) as transport:
            got = await aside(lambda: ask(transport, request))

    assert ("PATCH", "/below/api/v1/namespaces/a b/pods/system:x") == (got["method"], got["path"])
    assert [["x", "1"], ["x", "2&3+4"]] == got["query"]
    assert ('{"a":1}', "application/merge-patch+json") == (got["body"], got["type"])
    assert f"Bearer {SECRET}" == got["authorization"]


async def test_a_client_certificate_is_shown(authority: Authority, server_files: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    context.load_cert_chain(server_files)
    context.verify_mode = ssl.CERT_REQUIRED
    identity = ClientCertificate(*authority.issue("alice"))
    async with serving(tls=context) as address:
        with speaking(address, ca=authority.pem, client_cert=identity) as transport:
            assert "alice" == (await aside(lambda: ask(transport)))["who"]


async def test_one_connection_serves_many_requests_and_one_that_was_closed_is_made_anew() -> None:
    peers: list[object] = []

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        answer = await mirror(request)
        if len(peers) == 2:
            answer.force_close()
        return answer

    async with serving(handler) as address:
        with speaking(address) as transport:
            for _ in range(3):
                await aside(lambda: ask(transport))

    assert (peers[0], True) == (peers[1], peers[1] != peers[2])


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        pytest.param(b"", "the server closed the connection", id="nothing came back"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "the answer ended early", id="too little"),
        pytest.param(b"hello\r\n\r\n", "BadStatusLine", id="it is no HTTP"),
    ],
)
def test_what_went_wrong_has_a_name(answer: bytes, cause: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def talk() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(answer)

        thread = threading.Thread(target=talk)
        thread.start()
        said = f"^GET /api on http://127.0.0.1:{port}: .*{cause}"
        with speaking(f"http://127.0.0.1:{port}", token=SECRET) as transport, \
                pytest.raises(Unreachable, match=said) as problem:
            ask(transport)
        thread.join()

    assert SECRET not in str(problem.value)


async def test_nobody_there_and_nobody_trusted(tls: ssl.SSLContext, stranger: Authority) -> None:
    with pytest.raises(Unreachable, match="Connection refused"):
        done(BlockingTransport("http://127.0.0.1:1").send(API))
    async with serving(tls=tls) as address:
        with speaking(address, ca=stranger.pem) as transport, \
                pytest.raises(Unreachable, match="its certificate is not trusted: "):
            await aside(lambda: done(transport.send(API)))


async def test_a_watch_is_read_event_by_event_and_closed_when_left() -> None:
    left = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            for number in range(1000):
                await answer.write(orjson.dumps({"type": "ADDED", "object": {"number": number}}) + b"\n")
                await asyncio.sleep(0)
            await asyncio.Event().wait()
        finally:
            left.set()
        return answer

    async with serving(handler) as address:
        client = Client(BlockingTransport(address), limits=Limits(clock=BlockingClock()))

        def some() -> list[int]:
            found = []
            for event in each(client.watch(PODS)):
                found.append(event.object["number"])
                if len(found) == 3:
                    break
            return found

        assert [0, 1, 2] == await aside(some)
        await asyncio.wait_for(left.wait(), 60)


async def test_credentials_of_a_program_are_asked_for_again_when_refused_or_expired() -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.headers["Authorization"] == "Bearer old":
            return web.Response(status=401)
        return await mirror(request)

    given = [Credential("old"), Credential("new", expires=datetime.now(UTC) - timedelta(hours=1)), Credential("newest")]
    asked: list[str] = []

    def program(refused: Credential | None) -> Credential:
        asked.append(refused.token if refused else "")
        return given.pop(0)

    async with serving(handler) as address:
        with speaking(address, credential=program) as transport:
            tokens = [(await aside(lambda: ask(transport)))["authorization"] for _ in range(2)]

    assert (["Bearer newest", "Bearer newest"], ["", "old", ""]) == (tokens, asked)


def test_what_needs_a_loop_says_so() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="needs an event loop"):
        done(waits())
