"""Commands in containers over a WebSocket: what is asked, what comes back, how it ended."""

import asyncio
from collections.abc import Awaitable, Callable

import orjson
import pytest
from aiohttp import WSMsgType, web
from tests.unit.kube.test_http import serving

from trainmaster.api.meta import Object
from trainmaster.kube.errors import ApiError, Forbidden, NotFound, Unreachable
from trainmaster.kube.kubeconfig import Access
from trainmaster.kube.remote import CLOSE, ERROR, STDERR, STDIN, STDOUT, V4, V5, Command, NoStreams, exit_code, running

SUCCESS: Object = {"status": "Success"}


def failed(code: str) -> Object:
    causes = [{"reason": "ExitCode", "message": code}]
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(SUCCESS, 0, id="it succeeded"),
        pytest.param(failed("42"), 42, id="it failed with a code"),
        pytest.param({}, Unreachable, id="nobody said"),
        pytest.param({"status": "Failure", "code": 500, "message": "no such program"}, ApiError, id="it was never run"),
        pytest.param(failed("many"), ApiError, id="a code that is none"),
    ],
)
def test_how_it_ended(status: Object, expected: int | type[Exception]) -> None:
    if isinstance(expected, int):
        assert expected == exit_code(status)
    else:
        with pytest.raises(expected):
            exit_code(status)


def node(protocols: tuple[str, ...] = (V5, V4)) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Prints what it was asked to run, then what comes in, and ends when the input does."""

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=protocols)
        await socket.prepare(request)
        asked = [request.path, *request.query.getall("command"), request.headers["Authorization"]]
        await socket.send_bytes(bytes([STDERR]) + " ".join(asked).encode())
        async for message in socket:
            if message.type is not WSMsgType.BINARY or message.data[0] == CLOSE:
                break
            assert STDIN == message.data[0]
            await socket.send_bytes(bytes([STDOUT]) + message.data[1:])
        await socket.send_bytes(bytes([ERROR]) + orjson.dumps(SUCCESS))
        await socket.close()
        return socket

    return handler


async def test_a_command_with_its_streams() -> None:
    async with serving(node()) as address:
        command = Command("default", "p", ["echo", "a b&c"], "main", stdin=True)
        async with running(Access(address, token="t"), command) as run:
            assert run.can_end_input
            await run.write(b"hello")
            await run.end_input()
            found = [each async for each in run.output()]

    assert [(STDERR, b"/api/v1/namespaces/default/pods/p/exec echo a b&c Bearer t"), (STDOUT, b"hello")] == found
    assert 0 == run.exit_code


async def test_an_older_server_cannot_be_told_that_the_input_has_ended() -> None:
    async with serving(node((V4,))) as address, running(
        Access(address, token="t"), Command("default", "p", ["true"])
    ) as run:
        assert not run.can_end_input


@pytest.mark.parametrize(("code", "expected", "words"), [
    pytest.param(400, NoStreams, "answered 400", id="a server without such streams"),
    pytest.param(403, Forbidden, "pods/exec", id="somebody without the right"),
    pytest.param(404, NotFound, "no pod default/p ", id="a pod that is gone"),
])
async def test_what_is_no_stream_says_why(code: int, expected: type[Exception], words: str) -> None:
    async def plain(_: web.Request) -> web.Response:
        return web.Response(status=code)

    async with serving(plain) as address:
        with pytest.raises(expected, match=words):
            async with running(Access(address), Command("default", "p", ["true"])):
                pass


async def test_a_server_that_is_not_there_or_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(_: web.Request) -> web.Response:
        await asked.wait()
        return web.Response()

    asked = asyncio.Event()
    with pytest.raises(Unreachable):
        async with running(Access("http://127.0.0.1:1"), Command("default", "p", ["true"])):
            pass
    monkeypatch.setattr("trainmaster.kube.remote.CONNECT", 0.05)
    async with serving(silent) as address:
        with pytest.raises(Unreachable, match="timed out"):
            async with running(Access(address), Command("default", "p", ["true"])):
                pass
        asked.set()
