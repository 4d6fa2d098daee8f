"""The head of an answer that goes out in one piece, byte by byte, and what becomes of the connection."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from trainmaster.cluster.apiserver import whole
from trainmaster.cluster.apiserver.whole import Whole
from trainmaster.kube.transport import Response

OK = Response(200, {"Content-Type": "text/plain"}, b"body")
SERVER = b"Server: trainmaster\r\n"
COMMON = SERVER + b"Cache-Control: no-cache, private\r\n"
_DATES = re.compile(rb"Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n")
DATE = b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"      # the example of the HTTP standard


def test_a_date_is_written_as_the_standard_says() -> None:
    assert DATE == whole.date(784111777)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    answers = {"/ok": Whole(OK), "/close": Whole(OK, close=True), "/none": Whole(Response(204)),
               "/odd": Whole(Response(299, {}, b"")), "/warned": Whole(Response(200, {}, b"", ("299 - a", "299 - b"))),
               "/kept": Whole(Response(304, {"Cache-Control": "public, immutable"})),
               "/bell": Whole(Response(200, {"Location": "Set-Cookie\a"}, b"")),
               "/split": Whole(Response(200, {"Location": "a\r\nSet-Cookie: b"}, b""))}

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return answers[request.path]

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.mark.parametrize(("request_line", "answer", "stays"), [
    pytest.param(b"GET /ok HTTP/1.1", b"HTTP/1.1 200 OK\r\n" + COMMON + b"Content-Type: text/plain\r\nContent-Length: 4"
                 b"\r\n" + DATE + b"\r\nbody", True, id="as usual"),
    pytest.param(b"HEAD /ok HTTP/1.1", b"HTTP/1.1 200 OK\r\n" + COMMON + b"Content-Type: text/plain\r\nContent-Length: "
                 b"4\r\n" + DATE + b"\r\n", True, id="only the head"),
    pytest.param(b"GET /ok HTTP/1.1\r\nConnection: close", b"HTTP/1.1 200 OK\r\n" + COMMON + b"Content-Type: text/plain"
                 b"\r\nContent-Length: 4\r\n" + DATE + b"Connection: close\r\n\r\nbody", False, id="the client leaves"),
    pytest.param(b"GET /close HTTP/1.1", b"HTTP/1.1 200 OK\r\n" + COMMON + b"Content-Type: text/plain\r\nContent-Length"
                 b": 4\r\n" + DATE + b"Connection: close\r\n\r\nbody", False, id="the server leaves"),
    pytest.param(b"GET /ok HTTP/1.0", b"HTTP/1.0 200 OK\r\n" + COMMON + b"Content-Type: text/plain\r\nContent-Length: 4"
                 b"\r\n" + DATE + b"\r\nbody", False, id="an old client"),
    pytest.param(b"GET /ok HTTP/1.0\r\nConnection: keep-alive", b"HTTP/1.0 200 OK\r\n" + COMMON + b"Content-Type: text/"
                 b"plain\r\nContent-Length: 4\r\n" + DATE + b"Connection: keep-alive\r\n\r\nbody", True,
                 id="an old client that stays"),
    pytest.param(b"GET /none HTTP/1.1", b"HTTP/1.1 204 No Content\r\n" + COMMON + DATE + b"\r\n", True,
                 id="an answer without a body"),
    pytest.param(b"GET /kept HTTP/1.1", b"HTTP/1.1 304 Not Modified\r\n" + SERVER + b"Cache-Control: public, immutable"
                 b"\r\n" + DATE + b"\r\n", True, id="what may be kept"),
    pytest.param(b"GET /odd HTTP/1.1", b"HTTP/1.1 299 \r\n" + COMMON + b"Content-Length: 0\r\n" + DATE + b"\r\n", True,
                 id="a number without a name"),
    pytest.param(b"GET /warned HTTP/1.1", b"HTTP/1.1 200 OK\r\n" + COMMON + b"Warning: 299 - a\r\nWarning: 299 - b\r\n"
                 b"Content-Length: 0\r\n" + DATE + b"\r\n", True, id="several warnings"),
])
async def test_an_answer(port: int, request_line: bytes, answer: bytes, stays: bool) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_line + b"\r\nHost: x\r\n\r\n")

    assert answer == _DATES.sub(DATE, await reader.readexactly(len(answer)))
    if stays:      # the next answer is where it should be
        writer.write(b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 204")
    else:
        assert b"" == await reader.read()
    writer.close()


@pytest.mark.parametrize("path", [b"/split", b"/bell"])
async def test_a_header_cannot_bring_another_along_nor_other_control_signs(port: int, path: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)

    assert b"Set-Cookie" not in await reader.read()
    writer.close()
