"""Doors kept by hand."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import cast

import pytest

from trainmaster.cluster.network.forwarding import Door, Forward
from trainmaster.cluster.network.relay import Choice, Relays, on_this_machine, open_on_this_machine, outgoing

LOOPBACK = "127.0.0.1"


@pytest.fixture
async def relays() -> AsyncIterator[Relays]:
    made = Relays(open_on_this_machine, on_this_machine)
    yield made
    await made.close()


def free(kind: int) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])


async def test_bytes_pass_both_ways_until_both_have_said_all(relays: Relays) -> None:
    """A client that has said all may still be answered."""
    async def reverse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read())[::-1])
        writer.close()

    server = await asyncio.start_server(reverse, LOOPBACK, 0)
    door = Door(LOOPBACK, free(socket.SOCK_STREAM), "TCP")
    assert {} == await relays.update({door: Forward(((LOOPBACK, server.sockets[0].getsockname()[1]),))})

    reader, writer = await asyncio.open_connection(LOOPBACK, door.port)
    writer.write(b"abc" * 100_000)
    writer.write_eof()

    assert b"cba" * 100_000 == await reader.read()
    writer.close()
    server.close()


async def test_a_connection_that_nobody_redirected_ends_and_the_next_one_is_taken() -> None:
    listener = await open_on_this_machine(Door(LOOPBACK, free(socket.SOCK_STREAM), "TCP"))
    leading = asyncio.create_task(outgoing(listener))
    try:
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            assert b"" == await asyncio.wait_for(reader.read(), 60)
            writer.close()
        assert not leading.done()
    finally:
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        listener.close()


async def test_a_connection_that_breaks_off_harms_no_other(relays: Relays) -> None:
    """Under the numbers of its descriptors the next connection comes."""
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(3))
        await writer.drain()
        writer.transport.abort()

    server = await asyncio.start_server(echo, LOOPBACK, 0)
    door = Door(LOOPBACK, free(socket.SOCK_STREAM), "TCP")
    await relays.update({door: Forward(((LOOPBACK, server.sockets[0].getsockname()[1]),))})

    for _ in range(20):
        reader, writer = await asyncio.open_connection(LOOPBACK, door.port)
        writer.write(b"abc")
        assert b"abc" == await asyncio.wait_for(reader.readexactly(3), 60)
        writer.transport.abort()
    server.close()


async def test_datagrams_are_answered(relays: Relays) -> None:
    class Reverse(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = cast("asyncio.DatagramTransport", transport)

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            self.transport.sendto(data[::-1], addr)

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Reverse, (LOOPBACK, 0))
    door = Door(LOOPBACK, free(socket.SOCK_DGRAM), "UDP")
    await relays.update({door: Forward(((LOOPBACK, transport.get_extra_info("sockname")[1]),))})

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        await loop.sock_connect(client, (LOOPBACK, door.port))
        for word in (b"abc", b"def"):
            await loop.sock_sendall(client, word)
            assert word[::-1] == await asyncio.wait_for(loop.sock_recv(client, 100), 60)
    transport.close()


async def test_a_door_that_is_taken_is_told_and_tried_again(relays: Relays) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        door = Door(LOOPBACK, other.getsockname()[1], "TCP")
        assert {door: "Address already in use"} == await relays.update({door: Forward()})

    assert {} == await relays.update({door: Forward()})


async def test_a_door_that_nobody_wants_any_more_is_closed(relays: Relays) -> None:
    door = Door(LOOPBACK, free(socket.SOCK_STREAM), "TCP")
    await relays.update({door: Forward()})

    await relays.update({})

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(LOOPBACK, door.port)


async def test_who_knocks_where_nobody_is_gets_the_end(relays: Relays) -> None:
    door = Door(LOOPBACK, free(socket.SOCK_STREAM), "TCP")
    await relays.update({door: Forward()})

    reader, writer = await asyncio.open_connection(LOOPBACK, door.port)

    assert b"" == await reader.read()
    writer.close()


def test_a_client_stays_where_it_was_as_long_as_it_may() -> None:
    one, two, clock = ("10.88.0.2", 1), ("10.88.0.3", 1), [0.0]
    turns = iter([one, two, two])
    choice = Choice(Forward((one, two), 60), pick=lambda _: next(turns), now=lambda: clock[0])

    assert [one, one, two] == [choice.of(client) for client in ("a", "a", "b")]
    clock[0] = 59.0
    assert one == choice.of("a")
    clock[0] = 118.0
    assert one == choice.of("a"), "each time it begins anew"
    choice.forward = Forward((two,), 60)
    assert two == choice.of("a"), "but not with one that is gone"
    assert None is Choice(Forward(), now=lambda: 0.0).of("a")


async def test_a_door_is_shut_though_whoever_shuts_it_is_cancelled() -> None:
    opened: list[socket.socket] = []

    async def remembered(door: Door) -> socket.socket:
        opened.append(await open_on_this_machine(door))
        return opened[-1]

    relays = Relays(remembered, on_this_machine)
    await relays.update({Door(LOOPBACK, free(socket.SOCK_STREAM), "TCP"): Forward()})
    await asyncio.sleep(0)                                  # it is served
    shutting = asyncio.create_task(relays.update({}))
    await asyncio.sleep(0)                                  # it waits for the door to be left
    shutting.cancel()
    await asyncio.gather(shutting, return_exceptions=True)

    assert (-1, True) == (opened[0].fileno(), shutting.cancelled())
