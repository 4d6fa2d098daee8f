"""Connections that only pass bytes on: who has the last word, and that nothing is left when one side goes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from trainmaster.runtime.takeover import PIECE, joined

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def line() -> tuple[Ends, Ends]:
    """The two ends of a connection."""
    one, other = socket.socketpair()
    return await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=other)


@dataclass
class Joined:
    """A client and a far side, with us in the middle."""

    client: Ends
    far: Ends
    passing: asyncio.Task[None]
    ours: asyncio.StreamWriter
    writer: asyncio.StreamWriter

    async def over(self) -> None:
        async with asyncio.timeout(60):
            await self.passing


@pytest.fixture
async def middle() -> AsyncIterator[Joined]:
    client, (theirs, ours) = await line()
    far, (reader, writer) = await line()
    yield Joined(client, far, asyncio.create_task(joined(theirs, ours, reader, writer)), ours, writer)
    for each in (client[1], ours, far[1], writer):
        each.close()


async def test_both_are_heard_and_the_far_side_has_the_last_word(middle: Joined) -> None:
    middle.client[1].write(b"question")
    middle.client[1].write_eof()
    assert b"question" == await middle.far[0].read()      # the end of what is said is passed on as well

    middle.far[1].write(b"answer")
    middle.far[1].close()
    await middle.over()

    assert b"answer" == await middle.client[0].read()


async def test_when_the_far_side_has_no_more_to_say_the_client_is_closed_though_it_would_go_on(middle: Joined) -> None:
    middle.far[1].close()
    await middle.over()

    assert (b"", True) == (await middle.client[0].read(), middle.ours.is_closing())
    assert not middle.writer.is_closing(), "its owner closes it"


async def test_a_client_that_is_gone_ends_it_though_the_far_side_would_go_on(middle: Joined) -> None:
    middle.client[1].transport.abort()
    middle.far[1].write(b"a" * 4 * PIECE)      # to nobody
    await middle.over()

    assert (True, False) == (middle.ours.is_closing(), middle.far[1].is_closing())


async def test_who_gives_up_leaves_nothing_running(middle: Joined) -> None:
    middle.client[1].write(b"question")
    assert b"question" == await middle.far[0].readexactly(8)
    middle.passing.cancel()
    await asyncio.wait([middle.passing])

    assert middle.ours.is_closing()
    assert {asyncio.current_task()} == asyncio.all_tasks()
