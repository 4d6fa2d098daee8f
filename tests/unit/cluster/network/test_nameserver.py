"""The nameserver on real sockets."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from trainmaster.cluster.network import nameserver
from trainmaster.cluster.network.names import A, encoded
from trainmaster.cluster.network.nameserver import Nameserver

LOOPBACK = "127.0.0.1"
QUERY = struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + encoded("nobody.default.svc.cluster.local") + struct.pack(
    "!HH", A, 1)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    with (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
          socket.create_server((LOOPBACK, 0)) as stream):
        datagrams.bind((LOOPBACK, 0))
        serving = asyncio.create_task(Nameserver(tuple, tuple).serve(datagrams, stream))
        try:
            yield stream.getsockname()[1]
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def asked(port: int) -> tuple[bytes, asyncio.StreamWriter]:
    """The number in the answer to a query, nothing from who does not answer; the connection stays open."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(struct.pack("!H", len(QUERY)) + QUERY)
    try:
        return (await asyncio.wait_for(reader.read(4), 60))[2:], writer
    except ConnectionResetError:
        return b"", writer


async def test_a_query_is_answered(port: int) -> None:
    answer, writer = await asked(port)
    writer.close()

    assert QUERY[:2] == answer


async def test_whoever_opens_too_many_connections_is_turned_away(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nameserver, "_CONNECTIONS", 2)
    monkeypatch.setattr(nameserver, "_WAITING", 1)
    held = [(await asked(port))[1] for _ in range(3)]
    refused, writer = await asked(port)
    writer.close()

    assert b"" == refused
    for each in held:
        each.close()
    async with asyncio.timeout(60):
        while QUERY[:2] != (answer := await asked(port))[0]:      # until the other side has heard that they are gone
            answer[1].close()
    answer[1].close()
