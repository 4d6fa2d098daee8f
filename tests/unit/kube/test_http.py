"""HTTP against real servers on loopback: TLS, credentials, Unix sockets, streams, and what each failure is called."""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import orjson
import pytest
from aiohttp import web

from trainmaster.kube.errors import Unreachable
from trainmaster.kube.http import HttpTransport, Timeouts
from trainmaster.kube.tls import ClientCertificate
from trainmaster.kube.transport import Request

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SECRET = "sesame-0123456789"


class Authority(Protocol):
    """What `conftest.Authority` offers."""

    pem: bytes

    def issue(self, name: str, *, address: str = ...) -> tuple[bytes, bytes]: ...


async def mirror(request: web.Request) -> web.Response:
    """Answers with what arrived."""
    peer = request.transport.get_extra_info("peercert") if request.transport else None
    subject = dict(part[0] for part in peer["subject"]) if peer else {}
    return web.json_response({
        "method": request.method, "path": request.path, "raw": request.raw_path, "query": list(request.query.items()),
        "authorization": request.headers.get("Authorization", ""), "body": (await request.read()).decode(),
        "type": request.headers.get("Content-Type", ""), "who": subject.get("commonName", ""),
    })


@asynccontextmanager
async def serving(
    handler: Handler = mirror, tls: ssl.SSLContext | None = None, path: Path | None = None
) -> AsyncIterator[str]:
    """A server on loopback, or on a Unix socket; its address."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    if path is not None:
        here, folder = Path.cwd(), path.parent
        os.chdir(folder)    # a path that is too long for bind()
        try:
            await web.UnixSite(runner, path.name).start()
        finally:
            os.chdir(here)
        address = "http://localhost"
    else:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        address = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield address
    finally:
        await runner.cleanup()


@pytest.fixture
def tls(server_files: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server_files)
    return context


async def ask(transport: HttpTransport, request: Request = Request("GET", "/api")) -> dict[str, object]:  # noqa: B008
    try:
        answer = await transport.send(request)
        assert 200 == answer.status
        found = orjson.loads(answer.body)
        assert isinstance(found, dict)
        return found
    finally:
        await transport.close()


async def test_a_request_arrives_as_it_was_meant(tls: ssl.SSLContext, authority: Authority) -> None:
    async with serving(tls=tls) as address:
        request = Request(
            "PATCH", "/api/v1/namespaces/a b/pods/system:x",
            [("labelSelector", "a in (b,c)"), ("x", "1"), ("x", "2&3+4")],
            {"content-type": "application/merge-patch+json"}, b'{"a":1}',
        )
        got = await ask(HttpTransport(address, token=SECRET, ca=authority.pem), request)

    assert "PATCH" == got["method"]
    assert "/api/v1/namespaces/a b/pods/system:x" == got["path"]
    assert [["labelSelector", "a in (b,c)"], ["x", "1"], ["x", "2&3+4"]] == got["query"]
    assert ('{"a":1}', "application/merge-patch+json") == (got["body"], got["type"])
    assert f"Bearer {SECRET}" == got["authorization"]


async def test_a_large_body_arrives_whole_and_says_how_long_it_is() -> None:
    """As large as a server takes it. aiohttp warns of one that is given to it in one piece, and warnings are errors."""
    body = b"x" * (3 << 20)

    async def weigh(request: web.Request) -> web.Response:
        received = 0
        async for chunk in request.content.iter_any():
            received += len(chunk)
        return web.json_response({"received": received, "said": request.content_length, "type": request.content_type})

    async with serving(weigh) as address:
        request = Request("POST", "/api", (), {"content-type": "application/json"}, body)
        got = await ask(HttpTransport(address), request)

    assert {"received": len(body), "said": len(body), "type": "application/json"} == got


async def test_a_client_certificate_is_shown(authority: Authority, server_files: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    context.load_cert_chain(server_files)
    context.verify_mode = ssl.CERT_REQUIRED
    identity = ClientCertificate(*authority.issue("alice"))
    async with serving(tls=context) as address:
        assert "alice" == (await ask(HttpTransport(address, ca=authority.pem, client_cert=identity)))["who"]
    assert "PRIVATE" not in repr(identity)


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        pytest.param({}, "not trusted", id="no authority was given: the system's do not know it"),
        pytest.param({"ca": "stranger"}, "not trusted", id="another authority"),
        pytest.param({"ca": "ours", "server_name": "elsewhere"}, "not trusted", id="a name that it does not have"),
        pytest.param({"ca": "ours"}, None, id="the right authority and address"),
        pytest.param({"ca": "ours", "server_name": "localhost"}, None, id="the right authority and another known name"),
        pytest.param({"verify": False}, None, id="not verified, as asked for"),
    ],
)
async def test_whom_we_trust(
    options: dict[str, object], cause: str | None, tls: ssl.SSLContext, authority: Authority, stranger: Authority
) -> None:
    ca = {"ours": authority.pem, "stranger": stranger.pem}.get(str(options.get("ca")))
    async with serving(tls=tls) as address:
        transport = HttpTransport(
            address, token=SECRET, ca=ca, verify=bool(options.get("verify", True)),
            server_name=str(options.get("server_name", "")),
        )
        if cause is None:
            await ask(transport)
        else:
            with pytest.raises(Unreachable, match=cause):
                await ask(transport)


@pytest.mark.parametrize(
    ("ca", "identity", "match"),
    [
        pytest.param(b"nonsense", None, "authority", id="the authority is no PEM"),
        pytest.param(None, ClientCertificate(b"nonsense", b"nonsense"), "client certificate", id="nor the certificate"),
    ],
)
def test_bad_certificates_are_told_when_the_transport_is_made(
    ca: bytes | None, identity: ClientCertificate | None, match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        HttpTransport("https://127.0.0.1:1", ca=ca, client_cert=identity)


async def test_a_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.kube.http.TOKEN_AGE", 0.0)
    file = tmp_path / "token"
    file.write_text("first\n")
    async with serving() as address:
        transport = HttpTransport(address, token_file=file)
        first = (await transport.send(Request("GET", "/"))).body
        file.write_text("second\n")
        second = (await transport.send(Request("GET", "/"))).body
        file.unlink()
        kept = (await transport.send(Request("GET", "/"))).body
        await transport.close()

    assert (b"Bearer first" in first, b"Bearer second" in second, b"Bearer second" in kept) == (True, True, True)


async def test_a_token_file_that_was_never_there_is_no_answer(tmp_path: Path) -> None:
    async with serving() as address:
        transport = HttpTransport(address, token_file=tmp_path / "none")
        with pytest.raises(Unreachable, match="token file"):
            await transport.send(Request("GET", "/"))
        await transport.close()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def hangs_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def breaks_off(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Length": "100"})
    await answer.prepare(request)
    await answer.write(b"half")
    assert request.transport is not None
    request.transport.close()
    return answer


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


async def send(transport: HttpTransport, request: Request) -> None:
    await transport.send(request)


async def stream(transport: HttpTransport, request: Request) -> None:
    opened = await transport.open(request)
    try:
        async for _ in opened.chunks():
            pass
    finally:
        await opened.close()


VERBS = {"send": send, "open": stream}


@pytest.mark.parametrize(
    ("handler", "timeouts", "cause"),
    [
        pytest.param(hangs_up, Timeouts(), "closed the connection", id="it hangs up without an answer"),
        pytest.param(breaks_off, Timeouts(), "ended early", id="it breaks off in the middle"),
        pytest.param(hangs, Timeouts(connect=0.05, read=0.05, total=0.2), "timed out", id="it never answers"),
    ],
)
@pytest.mark.parametrize("verb", sorted(VERBS))
async def test_a_server_that_fails_is_unreachable_with_a_short_cause(
    handler: Handler, timeouts: Timeouts, cause: str, verb: str
) -> None:
    async with serving(handler) as address:
        transport = HttpTransport(address, token=SECRET, timeouts=timeouts)
        with pytest.raises(Unreachable, match=cause) as caught:
            await VERBS[verb](transport, Request("POST", "/api/v1/pods"))
        await transport.close()

    assert SECRET not in str(caught.value)
    assert "POST /api/v1/pods" in str(caught.value)


async def test_nobody_there_is_unreachable() -> None:
    transport = HttpTransport(f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(Unreachable, match="refused"):
        await ask(transport)


async def test_the_token_is_in_no_log_line_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    transport = HttpTransport(f"http://127.0.0.1:{closed_port()}", token=SECRET)
    with pytest.raises(Unreachable) as caught:
        await ask(transport)

    assert SECRET not in caplog.text + str(caught.value) + repr(transport)


async def test_redirects_are_answers_and_not_followed() -> None:
    async def elsewhere(_: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"})

    async with serving(elsewhere) as address:
        transport = HttpTransport(address, token=SECRET)
        assert 302 == (await transport.send(Request("GET", "/"))).status
        await transport.close()


@pytest.mark.parametrize("depth", [1, 12], ids=["a short path", "a path longer than a socket address"])
async def test_a_unix_socket_is_reached(depth: int, tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-name"] * depth)
    folder.mkdir(parents=True)
    async with serving(path=folder / "kubelet.sock") as address:
        got = await ask(HttpTransport(address, unix_socket=folder / "kubelet.sock"), Request("GET", "/healthz"))

    assert "/healthz" == got["path"]


async def test_a_long_socket_path_is_found_again_after_its_folder_was_made_anew(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-name"] * 12)
    folder.mkdir(parents=True)
    transport = HttpTransport("http://localhost", unix_socket=folder / "kubelet.sock")
    with pytest.raises(Unreachable, match="No such file"):
        await transport.send(Request("GET", "/"))
    async with serving(path=folder / "kubelet.sock"):
        assert 200 == (await transport.send(Request("GET", "/"))).status
    folder.rename(folder.with_name("moved-away-to-another-name"))
    folder.mkdir()
    async with serving(path=folder / "kubelet.sock"):
        assert 200 == (await transport.send(Request("GET", "/"))).status
    await transport.close()


async def test_a_folder_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    transport = HttpTransport("http://localhost", unix_socket=tmp_path.joinpath(*["not-there-at-all"] * 12) / "x.sock")
    with pytest.raises(Unreachable, match="No such file"):
        await ask(transport)


class Dripping:
    """A stream of lines that goes on until its reader leaves."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.next = asyncio.Event()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b"line\n")
                self.next.clear()
                await self.next.wait()
        finally:
            self.left.set()


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_a_stream_outlives_all_timeouts_and_closing_it_reaches_the_sender(
    secure: bool, tls: ssl.SSLContext, authority: Authority
) -> None:
    """Over TLS a polite goodbye would wait for an answer that nobody reads: the connection is cut instead."""
    dripping = Dripping()
    async with serving(dripping.serve, tls if secure else None) as address:
        timeouts = Timeouts(read=0.05, total=0.05)
        transport = HttpTransport(address, ca=authority.pem, timeouts=timeouts)
        stream = await transport.open(Request("GET", "/watch"))
        chunks = stream.chunks()
        assert b"line\n" == await anext(chunks)
        await asyncio.sleep(0.1)    # real: the timeouts under test are the network's, not ours
        dripping.next.set()
        assert b"line\n" == await anext(chunks)

        await stream.close()
        await asyncio.wait_for(dripping.left.wait(), 60)
        await transport.close()


async def test_a_reader_can_be_cancelled() -> None:
    dripping = Dripping()
    async with serving(dripping.serve) as address:
        transport = HttpTransport(address)

        async def read() -> None:
            stream = await transport.open(Request("GET", "/watch"))
            try:
                async for _ in stream.chunks():
                    reading.set()
            finally:
                await stream.close()

        reading = asyncio.Event()
        task = asyncio.create_task(read())
        await reading.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        assert task.cancelled()
        await asyncio.wait_for(dripping.left.wait(), 60)
        await transport.close()


async def test_connections_are_kept_and_bounded() -> None:
    ports: list[int] = []
    now = most = 0

    async def count(request: web.Request) -> web.StreamResponse:
        nonlocal now, most
        assert request.transport is not None
        ports.append(request.transport.get_extra_info("peername")[1])
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return web.Response()

    async with serving(count) as address:
        transport = HttpTransport(address, connections=3)
        await asyncio.gather(*(transport.send(Request("GET", "/")) for _ in range(20)))
        await transport.close()

    assert 3 >= most
    assert 3 >= len(set(ports))
