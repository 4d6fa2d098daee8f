"""Probes and hooks against real servers of this machine: what counts as well, and the sentence when it does not."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest
from aiohttp import web

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.handlers import Answer, Target, Unable, ask, run_hook
from trainmaster.cluster.kubelet.records import Failed

HERE = "127.0.0.1"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def own_socket() -> socket.socket:
    made = socket.socket()
    made.setblocking(False)
    return made


async def nothing(_argv: Sequence[str], _timeout: float) -> tuple[int, bytes]:
    raise Failed("run a command", 0, "container main is not running")


def target(run: Callable[[Sequence[str], float], Awaitable[tuple[int, bytes]]] = nothing, **container: Any) -> Target:
    return Target({"name": "main", **container}, HERE, run, own_socket)


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    application = web.Application()
    application.router.add_get("/{tail:.*}", handler)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, HERE, 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def free_port() -> int:
    with socket.create_server((HERE, 0)) as server:
        return int(server.getsockname()[1])


async def pages(request: web.Request) -> web.StreamResponse:
    path = request.path
    if path == "/slow":
        await asyncio.sleep(60)
    if path.startswith("/to/"):
        raise web.HTTPFound(path.removeprefix("/to"))
    if path == "/away":
        raise web.HTTPFound("http://elsewhere.example/")
    if path == "/round":
        raise web.HTTPFound("/round")
    if path.isascii() and path[1:].isdecimal():
        return web.Response(status=int(path[1:]), text="no")
    return web.Response(text="yes")


@pytest.mark.parametrize(("expected", "path"), [
    pytest.param(Answer(True, "yes"), "/", id="200 is well"),
    pytest.param(Answer(True, "yes"), "healthz", id="a path may lack its slash"),
    pytest.param(Answer(True, "no"), "/399", id="so is everything below 400"),
    pytest.param(Answer(False, "HTTP probe failed with statuscode: 400"), "/400", id="from 400 on it is not"),
    pytest.param(Answer(False, "HTTP probe failed with statuscode: 503"), "/503", id="nor is an error of the server"),
    pytest.param(Answer(True, "yes"), "/to/well", id="a redirect on the same host is followed"),
    pytest.param(Answer(False, "HTTP probe failed with statuscode: 500"), "/to/500", id="and what it leads to counts"),
    pytest.param(Answer(True, warning="Probe terminated redirects, Response body: 302: Found"), "/away",
                 id="one to elsewhere is not, and counts as well"),
    pytest.param(Answer(False, 'Get "{url}/round": stopped after 10 redirects'), "/round",
                 id="ten redirects are enough"),
    pytest.param(Answer(False, 'Get "{url}/slow": context deadline exceeded '
                               "(Client.Timeout exceeded while awaiting headers)"), "/slow", id="silence is not well"),
])
async def test_http(expected: Answer, path: str) -> None:
    async with serving(pages) as port:
        found = await ask(target(), {"httpGet": {"path": path, "port": port}}, 0.3 if path == "/slow" else 10)

    assert Answer(expected.well, expected.text.format(url=f"http://{HERE}:{port}"), expected.warning) == found


@pytest.mark.parametrize(("expected", "given"), [
    pytest.param(("kube-probe/1.34", "*/*", None, True), [], id="who asks is said"),
    pytest.param(("me", "*/*", "1", True), [("User-Agent", "me"), ("X-Mine", "1")], id="headers are added or replaced"),
    pytest.param((None, None, None, True), [("accept", ""), ("User-Agent", "")], id="an empty one is not sent"),
    pytest.param(("kube-probe/1.34", "*/*", None, False), [("Host", "example.org")], id="the host can be another"),
])
async def test_http_headers(expected: tuple[object, ...], given: list[tuple[str, str]]) -> None:
    heard: list[tuple[object, ...]] = []

    async def listen(request: web.Request) -> web.Response:
        headers = request.headers
        assert "Accept-Encoding" not in headers
        heard.append((headers.get("User-Agent"), headers.get("Accept"), headers.get("X-Mine"),
                      headers["Host"].startswith(HERE)))
        return web.Response()

    headers = [{"name": name, "value": value} for name, value in given]
    async with serving(listen) as port:
        assert (await ask(target(), {"httpGet": {"port": port, "httpHeaders": headers}}, 10)).well

    assert [expected] == heard


@pytest.mark.parametrize(("expected", "handler"), [
    pytest.param("dial tcp 127.0.0.1:{port}: connect: connection refused", {"tcpSocket": {"port": "web"}},
                 id="nobody listens"),
    pytest.param('Get "http://127.0.0.1:{port}/x": dial tcp 127.0.0.1:{port}: connect: connection refused',
                 {"httpGet": {"port": "web", "path": "/x"}}, id="nor for HTTP"),
    pytest.param('error: failed to connect service at "127.0.0.1:{port}": '
                 "dial tcp 127.0.0.1:{port}: connect: connection refused", {"grpc": {"port": "{port}"}},
                 id="nor for gRPC"),
])
async def test_nobody_listens(expected: str, handler: Object) -> None:
    port = free_port()
    if "grpc" in handler:
        handler = {"grpc": {"port": port}}

    found = await ask(target(ports=[{"name": "web", "containerPort": port}]), handler, 10)

    assert Answer(False, expected.format(port=port)) == found


async def test_a_port_that_listens_is_well() -> None:
    with socket.create_server((HERE, 0)) as server:
        assert Answer(True) == await ask(target(), {"tcpSocket": {"port": server.getsockname()[1]}}, 10)


async def test_a_port_that_has_no_such_name() -> None:
    with pytest.raises(Unable, match="couldn't find port: 'web'"):
        await ask(target(), {"httpGet": {"port": "web"}}, 10)


@pytest.mark.parametrize(("expected", "end"), [
    pytest.param(Answer(True, "fine\n"), (0, b"fine\n"), id="zero is well"),
    pytest.param(Answer(False, "cat: no such file\n"), (1, b"cat: no such file\n"), id="anything else is not"),
    pytest.param(Answer(False, 'command timed out: "sleep 9" timed out after 1s'), TimeoutError(), id="nor is no end"),
])
async def test_exec(expected: Answer, end: tuple[int, bytes] | TimeoutError) -> None:
    async def run(argv: Sequence[str], timeout: float) -> tuple[int, bytes]:
        assert (["sleep", "9"], 1) == (argv, timeout)
        if isinstance(end, TimeoutError):
            raise end
        return end

    assert expected == await ask(target(run), {"exec": {"command": ["sleep", "9"]}}, 1)


async def test_a_command_that_cannot_be_asked_counts_for_nothing() -> None:
    with pytest.raises(Unable, match="container main is not running"):
        await ask(target(), {"exec": {"command": ["true"]}}, 1)


@asynccontextmanager
async def health_service(states: dict[str, bytes]) -> AsyncIterator[int]:
    """A gRPC server that knows the health check, or with no states does not."""
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        while data := await _heard(reader):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    frame = bytes(event.data or b"")
                    answer = states.get(frame[7:].decode())
                    status = ("grpc-status", "12" if not states else "5" if answer is None else "0")
                    if answer is None:
                        connection.send_headers(1, [(":status", "200"), status, ("grpc-message", "what")], True)
                    else:
                        connection.send_headers(1, [(":status", "200"), ("content-type", "application/grpc")])
                        connection.send_data(1, b"\0\0\0\0" + bytes([len(answer)]) + answer)
                        connection.send_headers(1, [status], True)
            writer.write(connection.data_to_send())
        writer.close()
        over.set()

    over = asyncio.Event()
    server = await asyncio.start_server(talk, HERE, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await over.wait()


async def _heard(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(1 << 16)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize(("expected", "service", "states"), [
    pytest.param(Answer(True), "", {"": b"\x08\x01"}, id="it serves"),
    pytest.param(Answer(True), "x" * 200, {"": b"", "\x01" + "x" * 200: b"\x08\x01"}, id="a service by its long name"),
    pytest.param(Answer(False, 'service unhealthy (responded with "NOT_SERVING")'), "a", {"a": b"\x08\x02"},
                 id="it does not"),
    pytest.param(Answer(False, 'service unhealthy (responded with "UNKNOWN")'), "", {"": b""}, id="it says nothing"),
    pytest.param(Answer(False, "error: health rpc probe failed: code 5: what"), "b", {"a": b""},
                 id="it does not know the service"),
    pytest.param(Answer(False, "error: this server does not implement the grpc health protocol "
                               "(grpc.health.v1.Health): what"), "", {}, id="it does not know the check"),
])
async def test_grpc(expected: Answer, service: str, states: dict[str, bytes]) -> None:
    async with health_service(states) as port:
        assert expected == await ask(target(), {"grpc": {"port": port, "service": service}}, 10)


async def test_a_server_that_speaks_no_http2() -> None:
    async with serving(pages) as port:
        found = await ask(target(), {"grpc": {"port": port}}, 2)

    assert not found.well


async def test_a_hook_over_http_counts_as_done_whatever_the_answer() -> None:
    async with serving(pages) as port:
        await run_hook(target(), {"httpGet": {"port": port, "path": "/500"}}, 10)
    with pytest.raises(Unable, match="connection refused"):
        await run_hook(target(), {"httpGet": {"port": port}}, 10)


async def test_a_hook_whose_command_fails() -> None:
    async def run(_argv: Sequence[str], _timeout: float) -> tuple[int, bytes]:
        return 3, b"oh"

    with pytest.raises(Unable, match="oh"):
        await run_hook(target(run), {"exec": {"command": ["false"]}}, 10)
    await run_hook(target(run), {"sleep": {"seconds": 0}}, 10)
