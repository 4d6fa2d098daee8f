"""A watcher that reads nothing delays nobody and is dropped; one that reads is told everything. On a real socket."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from aiohttp import ClientResponse, ClientSession, TCPConnector
from tests.unit.cluster.apiserver.api import MAPS, WHO, Api, config_map, serving

from trainmaster.cluster.apiserver import http
from trainmaster.cluster.apiserver.auth import Authenticator
from trainmaster.local import keys

TOKEN = {"Authorization": "Bearer secret"}
CHANGES = 300
LARGE = "x" * 60_000      # so many of these fill every buffer between the server and one who does not read


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[tuple[Api, int, ssl.SSLContext]]:
    made = keys.ensure(tmp_path, datetime.now(UTC))
    async with serving() as api:
        tokens = Authenticator({"secret": WHO})
        listening = await http.serve(api.server, tokens, made.server_context())
        yield api, listening.port, ssl.create_default_context(cadata=made.authority.decode())
        await api.server.close()
        await listening.stop()


async def stuck(port: int, context: ssl.SSLContext) -> asyncio.StreamWriter:
    """Asks for a watch and reads no more than that it is there."""
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.setblocking(False)
    await asyncio.get_running_loop().sock_connect(small, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=small, ssl=context, server_hostname="127.0.0.1", limit=4096)
    writer.write(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    return writer


async def followed(answer: ClientResponse) -> list[int]:
    """The revisions that a healthy watcher is told, to the last change."""
    rest, found = b"", []
    async for chunk in answer.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for event in map(orjson.loads, lines):
            found.append(int(event["object"]["metadata"]["resourceVersion"]))
            if event["object"]["metadata"]["name"] == "last":
                return found
    raise AssertionError("the watch of one who reads was ended")


async def test_the_stuck_one_goes_and_the_others_are_told_everything(
        site: tuple[Api, int, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch) -> None:
    api, port, context = site
    with monkeypatch.context() as only_now:      # the others have a minute, as for people: here they are slow as we are
        only_now.setattr(http, "SLOWEST_READER", 1.0)
        writer = await stuck(port, context)
    assert 1 == len(api.server._watches)
    async with ClientSession(f"https://127.0.0.1:{port}", connector=TCPConnector(ssl=context)) as session:
        healthy = [await session.get(f"{MAPS}?watch=1", headers=TOKEN) for _ in range(3)]
        following = [asyncio.ensure_future(followed(answer)) for answer in healthy]
        wanted = [int((await api.made(MAPS, config_map("m", data=LARGE)))["metadata"]["resourceVersion"])]
        for number in range(CHANGES):
            answer = await api.put(f"{MAPS}/m", config_map("m", data=LARGE, number=str(number)))
            wanted.append(int(answer.json["metadata"]["resourceVersion"]))
            await asyncio.sleep(0)
        wanted.append(int((await api.made(MAPS, config_map("last")))["metadata"]["resourceVersion"]))
        async with asyncio.timeout(120):
            assert [wanted] * 3 == await asyncio.gather(*following)
            while len(api.server._watches) > 3:   # noqa: ASYNC110  what happens on a socket tells nobody else
                await asyncio.sleep(0.05)
        assert 3 == len(api.server._watches), "only the stuck one was dropped"
        for watch in healthy:
            watch.close()
    writer.transport.abort()
