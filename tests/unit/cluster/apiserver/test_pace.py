"""Streams leave most of the loop to the requests, and a reader that takes nothing is given up."""

import asyncio

import pytest

from trainmaster.cluster.apiserver.pace import LONGEST, ROUND, Pace, Patience


def has_to_wait(pace: Pace) -> bool:
    """Whether one who comes now rests; asked without a turn of the loop, in which real time would pass."""
    coming = pace.rest()
    try:
        coming.send(None)
    except StopIteration:
        return False
    coming.close()
    return True


@pytest.mark.parametrize(("pieces", "rests"), [
    pytest.param([ROUND / 10], False, id="one short piece: the next one goes out at once"),
    pytest.param([ROUND / 10] * 20, True, id="many in one turn: the next wait and grow"),
    pytest.param([ROUND * 2], True, id="one long piece"),
    pytest.param([LONGEST * 100], False, id="one that waited for its reader is no work"),
])
async def test_who_took_a_while_rests(pieces: list[float], rests: bool) -> None:
    pace = Pace()
    for took in pieces:
        pace.told(took)
    await asyncio.sleep(0)

    assert rests is has_to_wait(pace)
    await asyncio.wait_for(pace.rest(), 60)
    assert not has_to_wait(pace)


async def test_one_who_stops_waiting_does_not_wake_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.cluster.apiserver.pace.LONGEST", 3600.0)      # nobody waits for it
    pace = Pace()
    pace.told(1000.0)
    await asyncio.sleep(0)
    first, second = (asyncio.ensure_future(pace.rest()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)

    assert (True, False) == (first.cancelled(), second.done())
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


async def test_patience_ends_with_a_piece_that_is_not_taken() -> None:
    given_up = asyncio.Event()
    patience = Patience(0.01, given_up.set)
    patience.begin()

    await asyncio.wait_for(given_up.wait(), 60)
    patience.stop()


async def test_patience_does_not_end_while_there_is_nothing_to_take() -> None:
    given_up = asyncio.Event()
    idle, stuck = Patience(0.01, given_up.set), asyncio.Event()
    idle.begin()
    idle.end()
    later = Patience(0.03, stuck.set)
    later.begin()

    await asyncio.wait_for(stuck.wait(), 60)
    assert not given_up.is_set()
    idle.stop()
    later.stop()
