"""Malformed requests to the real process over TLS: almost right ones, and bytes that are hardly HTTP.

What the fast tier cannot show: the parser of HTTP, the limits of the socket, and that nothing of it leaves a traceback
in the log of a process that serves on.
"""

import asyncio
import random
import ssl
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from tests.faults.apiserver_malformed import MERGE, PROTOBUF, Malformed, excused, sound_objects
from tests.faults.apiserver_process import Server
from tests.faults.seeds import seeded

from trainmaster.kube.transport import Request, Response, Transport

AT_ONCE = 4
LONGEST = 1.0  # seconds of the server's processor time while a request was under way, its neighbours included
PATIENCE = 20.0  # seconds of a clock, on a machine that may be busy
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server.at(tmp_path / "home")
    await asyncio.to_thread(server.start)
    transport = server.transport()
    for sound in sound_objects():
        request = Request("POST", sound.collection, (), {"content-type": "application/json"}, orjson.dumps(sound.thing))
        assert (await transport.send(request)).status in {201, 409}, sound
    try:
        yield server
        assert (await transport.send(Request("GET", "/api/v1/namespaces/default"))).status == 200
    finally:
        await transport.close()
        await asyncio.to_thread(server.stop)
    assert "Traceback" not in server.log.read_text()


@pytest.mark.faults
@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(4_000, id="some"),
        pytest.param(90_000, id="as many as the design asks for", marks=pytest.mark.full),
    ],
)
async def test_requests_that_are_almost_right(server: Server, requests: int) -> None:
    malformed = Malformed(seeded())
    numbered = ((number, malformed.next()) for number in range(requests))
    codes: Counter[int] = Counter()
    transport = server.transport()

    async def send() -> None:
        for number, request in numbered:
            used = server.cpu()
            answer = await answered(transport, request)
            codes[answer.status] += 1
            assert answer.status < 500 or excused(answer), f"number {number}: {request} was answered {answer}"
            assert server.cpu() - used < LONGEST, f"number {number}: {request}"

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(send())
    finally:
        await transport.close()
        print(dict(codes))


async def answered(transport: Transport, request: Request) -> Response:
    """A watch that was let in is not waited for."""
    async with asyncio.timeout(PATIENCE):
        stream = await transport.open(request)
        try:
            watching = stream.status == 200 and any(name == "watch" for name, _ in request.query)
            body = b"" if watching else b"".join([piece async for piece in stream.chunks()])
        finally:
            await stream.close()
    return Response(stream.status, {}, body)


def raw(chance: random.Random, token: str) -> bytes:
    """Bytes for a socket: a request that was sound once, with lies about itself."""
    body = orjson.dumps({"metadata": {"name": f"m{chance.randrange(5)}"}, "data": {"a": "b" * chance.choice([1, 500])}})
    head = [
        b"POST " + MAPS.encode() + b"?dryRun=All HTTP/1.1",
        b"Host: x",
        b"Authorization: Bearer " + token.encode(),
        b"Content-Type: application/json",
    ]
    match chance.randrange(12):
        case 0:
            return chance.randbytes(chance.randrange(1, 400)) + b"\r\n\r\n"
        case 1:
            head[0] = chance.choice(
                [
                    b"GET",
                    b"GET /",
                    b"GET / HTTP/9.9",
                    b"\x16\x03\x01",
                    b"PRI * HTTP/2.0",
                    b"GET  /  HTTP/1.1",
                    b"GET http://x/ HTTP/1.1",
                    b"CONNECT x:1 HTTP/1.1",
                    b"G\x00T / HTTP/1.1",
                    b"GET /\xff HTTP/1.1",
                    b"GET /%zz?%ff=%00 HTTP/1.1",
                    b"GET //// HTTP/1.1",
                    b"GET * HTTP/1.1",
                    b"GET /a#b HTTP/1.1",
                    b"GET /" + b"x" * 60_000 + b" HTTP/1.1",
                    b"GET https://[::1 HTTP/1.1",
                    b"GET //[ HTTP/1.1",
                ]
            )
        case 2:
            head.append(b"X: " + b"y" * chance.choice([20_000, 100_000]))
        case 3:
            head += [b"X-%d: y" % number for number in range(chance.choice([50, 500, 5000]))]
        case 4:
            head.append(
                b"Content-Length: "
                + chance.choice([b"-1", b"x", b"1e3", b"99999999999999999999", b"+5", b"", b"0x10", b"4000000"])
            )
        case 5:
            sizes = chance.choice([b"zz", b"-1", b"ffffffffffffffff", b"5;x=y", b"", b"1\r\nab", b"0"])
            return b"\r\n".join([*head, b"Transfer-Encoding: chunked", b"", sizes + b"\r\n" + body + b"\r\n0\r\n\r\n"])
        case 6:
            packed = zlib.compress(body, wbits=31)
            cut = (
                packed[: chance.randrange(len(packed))]
                if chance.random() < 0.7
                else zlib.compress(b"x" * (8 << 20), wbits=31)
            )
            coding = chance.choice([b"gzip", b"deflate", b"br", b"x", b"gzip, gzip"])
            return b"\r\n".join([*head, b"Content-Encoding: " + coding, b"Content-Length: %d" % len(cut), b"", cut])
        case 7:
            head[3] = b"Content-Type: " + PROTOBUF.encode()
            body = b"k8s\x00" + chance.randbytes(chance.randrange(200))
        case 8:
            head += chance.choice(
                [
                    [b"Transfer-Encoding: chunked", b"Content-Length: 5"],
                    [b"Expect: 100-continue"],
                    [b"Upgrade: websocket", b"Connection: Upgrade"],
                    [b"Content-Length: 1", b"Content-Length: 2"],
                    [b" folded"],
                    [b"no colon"],
                    [b": empty"],
                    [b"a\x00b: c"],
                    [b"Transfer-Encoding: x"],
                    [b"Host: y"],
                    [b"Accept: " + b"a/b," * 3000],
                    [b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings"],
                    [b"Upgrade: SPDY/3.1", b"Connection: Upgrade"],
                ]
            )
        case 9:
            head[2] = b"Authorization: " + chance.choice(
                [b"Bearer", b"Bearer " + b"x" * 9000, b"Basic eDp5", b"\xff\xfe", b"Bearer a b c"]
            )
        case 10:
            head[0] = b"PATCH " + MAPS.encode() + b"/m1 HTTP/1.1"
            head[3] = b"Content-Type: " + chance.choice(
                [MERGE.encode(), b"application/json-patch+json", b"\x00", b"a/b; c=" + b"d" * 999]
            )
            body = chance.choice(
                [b"[" * 5000, b"{" * 5000, b"nul", b"\xef\xbb\xbf{}", b"[1e999]", b'{"a":' * 2000, b'"\\ud800"']
            )
        case _:
            whole = bytearray(b"\r\n".join([*head, b"Content-Length: %d" % len(body), b"", body]))
            for _ in range(chance.randrange(1, 6)):
                whole[chance.randrange(len(whole))] = chance.randrange(256)
            return bytes(whole)
    if b"Content-Length" not in b"".join(head) and b"Transfer" not in b"".join(head):
        head.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*head, b"", body])


async def door(port: int, context: ssl.SSLContext, sent: bytes) -> int:
    """The code that is answered, or 0 for a closed door. We hang up first: no lie about a length holds us."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except (OSError, EOFError):
        return 0
    try:
        writer.write(sent)
        writer.write_eof() if writer.can_write_eof() else None
        async with asyncio.timeout(0.3):
            line = await reader.readline()
        return int(line.split()[1]) if line.startswith(b"HTTP/1.") else 0
    except (OSError, ValueError, TimeoutError):
        return 0
    finally:
        if writer.transport is not None:
            writer.transport.abort()


@pytest.mark.faults
@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(1_000, id="some"),
        pytest.param(12_000, id="as many as the design asks for", marks=pytest.mark.full),
    ],
)
async def test_bytes_that_are_hardly_http(server: Server, requests: int) -> None:
    chance = seeded()
    context, port, token = server.tls(), server.port, server.token
    numbered = ((number, raw(chance, token)) for number in range(requests))
    codes: Counter[int] = Counter()

    async def send() -> None:
        for number, sent in numbered:
            used = server.cpu()
            code = await door(port, context, sent)
            codes[code] += 1
            assert code < 500, f"number {number}: {sent[:3000]!r} was answered {code}"
            assert server.cpu() - used < LONGEST, f"number {number}: {sent[:3000]!r}"

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(send())
    print(dict(codes))


@pytest.mark.faults
async def test_slow_bodies_hold_up_nobody(server: Server) -> None:
    """Two hundred clients promise a body and send a byte of it; the next one is served as if they were not there."""
    context, port = server.tls(), server.port
    head = (
        f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    ).encode()
    slow = [await asyncio.open_connection("127.0.0.1", port, ssl=context) for _ in range(200)]
    for _, writer in slow:
        writer.write(head)
    transport = server.transport()
    used, began = server.cpu(), time.monotonic()
    answer = await transport.send(Request("GET", "/api/v1/namespaces/default"))
    assert (200, True) == (answer.status, server.cpu() - used < LONGEST)
    assert time.monotonic() - began < PATIENCE
    for _, writer in slow:
        writer.transport.abort()
    await transport.close()
