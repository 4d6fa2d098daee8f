"""Requests that are passed on to pods and services, when what is there keeps silent; the rest is in test_connecting."""

import asyncio
import contextlib

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.proxying import Proxied, relayed


@pytest.mark.parametrize(("says", "code", "why"), [
    pytest.param(b"", 504, "Timeout: the request was passed on, and nothing came back", id="nothing at all"),
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Len", 504, "Timeout: the request was passed on", id="half a head"),
    pytest.param(None, 503, "error trying to reach service: it gave no answer", id="it hangs up"),
])
async def test_who_does_not_answer_is_not_waited_for_forever(says: bytes | None, code: int, why: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(says or b"")
        if says is not None:
            await reader.read()      # until the server has had enough
        writer.close()

    async def reach(_node: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    incoming: web.Request = make_mocked_request("GET", "/api/v1/nodes/n/proxy/healthz")
    found = Proxied("n", "", 0, "http", "n", "/healthz", "", b"", reach, patience=0.1)
    with pytest.raises(Failure) as refused:
        await relayed(incoming, found)

    assert (code, True) == (refused.value.code, why in str(refused.value))
    server.close()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(server.wait_closed(), 60)
