"""Reading logs: which lines, in which form, and following without asking."""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainmaster.cluster.kubelet.filewatch import FileWatch
from trainmaster.cluster.kubelet.finding import Refused
from trainmaster.cluster.kubelet.logs import Wanted, last_words, read, timestamp
from trainmaster.cluster.kubelet.output import STDERR, STDOUT, Log
from trainmaster.cluster.kubelet.server import wanted_of

SECOND = 1_000_000_000
NOON = 1893499200 * SECOND


async def never() -> None:
    raise AssertionError("nobody asked to follow")


async def shown(path: Path, **wanted: Any) -> str:
    return b"".join([chunk async for chunk in read(path, Wanted(**wanted), never, lambda: True)]).decode()


def written(folder: Path, *pieces: tuple[int, bytes], size: int = 10_000_000, keep: int = 5) -> Log:
    """A log of these pieces, a second apart."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    log = Log(fd, size, keep)
    for at, (stream, data) in enumerate(pieces):
        log.feed(stream, data, NOON + at * SECOND)
    return log


@pytest.fixture(params=[10_000_000, 100], ids=["in one file", "in several files"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Four lines, a second apart; the second is a long one, the third an error."""
    written(tmp_path, (STDOUT, b"one\n"), (STDOUT, b"x" * 40_000), (STDERR, b"three\n"), (STDOUT, b"\nfour\n"),
            size=request.param)
    return tmp_path


LONG = "x" * 40_000


@pytest.mark.parametrize(("expected", "wanted"), [
    pytest.param(f"one\n{LONG}three\n\nfour\n", {}, id="all of it, a very long line as it came"),
    pytest.param("four\n", {"tail": 1}, id="the last line"),
    pytest.param("\nfour\n", {"tail": 2}, id="the last two lines"),
    pytest.param(f"one\n{LONG}three\n\nfour\n", {"tail": 4}, id="as many as there are"),
    pytest.param(f"one\n{LONG}three\n\nfour\n", {"tail": 99}, id="more than there are"),
    pytest.param("", {"tail": 0}, id="none"),
    pytest.param("three\n\nfour\n", {"since": NOON + 2 * SECOND}, id="since a moment"),
    pytest.param("\nfour\n", {"since": NOON + 2 * SECOND + 1}, id="since just after a moment"),
    pytest.param("", {"since": NOON + 9 * SECOND}, id="since after the end"),
    pytest.param("four\n", {"since": NOON, "tail": 1}, id="the last line since a moment"),
    pytest.param("on", {"limit": 2}, id="no more than so many bytes"),
    pytest.param("2030-01-01T12:00:02.000000000Z three\n2030-01-01T12:00:03.000000000Z \n"
                 "2030-01-01T12:00:03.000000000Z four\n", {"since": NOON + 2 * SECOND, "timestamps": True},
                 id="with times"),
    pytest.param("three\n", {"stream": STDERR}, id="one stream"),
])
async def test_parts_of_a_log(expected: str, wanted: dict[str, Any], log: Path) -> None:
    assert expected == await shown(log, **wanted)


async def test_a_line_in_pieces_has_one_time(log: Path) -> None:
    found = await shown(log, timestamps=True, stream=STDOUT)

    assert f"2030-01-01T12:00:01.000000000Z {LONG}\n2030-01-01T12:00:03.000000000Z four\n" in found


def test_times_have_one_length_and_compare_as_text() -> None:
    assert b"2030-01-01T12:00:00.000000005Z" == timestamp(NOON + 5)
    assert timestamp(NOON + 5) < timestamp(NOON + 10)


@pytest.mark.parametrize("size", [10_000, 10_000_000])
@pytest.mark.parametrize("count", [1, 1000, 3000])
async def test_a_tail_is_found_from_the_end(count: int, size: int, tmp_path: Path) -> None:
    written(tmp_path, *((STDERR, b"line %d\n" % n) for n in range(5000)), size=size)

    assert "".join(f"line {n}\n" for n in range(5000 - count, 5000)) == await shown(tmp_path, tail=count)


def test_last_words_are_the_end_of_the_log_without_stamps(tmp_path: Path) -> None:
    written(tmp_path, (STDERR, b"".join(b"line %d\n" % n for n in range(200))))

    words = last_words(tmp_path)

    assert "".join(f"line {n}\n" for n in range(120, 200)) == words


def test_a_container_without_a_log_has_no_last_words(tmp_path: Path) -> None:
    assert "" == last_words(tmp_path / "none")


@pytest.fixture
async def files() -> AsyncIterator[FileWatch]:
    watch = FileWatch()
    yield watch
    watch.close()


@pytest.mark.parametrize("size", [10_000_000, 5])
async def test_a_follower_is_told_at_once_and_until_the_end(size: int, tmp_path: Path, files: FileWatch) -> None:
    """From one file to the next, too."""
    log = written(tmp_path, (STDOUT, b"one\n"), size=size)
    over: list[bool] = []
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    async with files.watching(tmp_path) as grown:
        async def changed() -> None:
            await grown.wait()
            grown.clear()

        async def follow() -> None:
            async for chunk in read(tmp_path, Wanted(follow=True), changed, lambda: bool(over)):
                heard.put_nowait(chunk)

        follower = asyncio.create_task(follow())
        assert b"one\n" == await heard.get()
        log.feed(STDOUT, b"two\n", NOON)
        assert b"two\n" == await heard.get()
        over.append(True)
        log.feed(STDERR, b"three\n", NOON)
        await follower

    assert b"three\n" == heard.get_nowait()


async def test_a_follower_that_is_too_slow_goes_on_with_the_oldest_there_is(tmp_path: Path) -> None:
    log = written(tmp_path, (STDOUT, b"one\n"), size=5, keep=2)
    over: list[bool] = []
    grown = asyncio.Event()

    async def changed() -> None:
        await grown.wait()

    reading = read(tmp_path, Wanted(follow=True), changed, lambda: bool(over))
    assert b"one\n" == await anext(reading)
    for word in (b"two\n", b"three\n", b"four\n", b"five\n"):
        log.feed(STDOUT, word, NOON)
    over.append(True)
    grown.set()

    assert [b"four\n", b"five\n"] == [chunk async for chunk in reading]


async def test_who_does_not_follow_is_told_what_there_is_now(tmp_path: Path) -> None:
    """A container that prints faster than its reader reads would otherwise never be done."""
    log = written(tmp_path, (STDOUT, b"one\n"), (STDOUT, b"two\n"), size=5)
    reading = read(tmp_path, Wanted(), never, lambda: False)
    assert b"one\n" == await anext(reading)
    log.feed(STDOUT, b"three\n", NOON)

    assert [b"two\n"] == [chunk async for chunk in reading]


async def test_a_record_that_is_moved_into_a_directory_is_noticed(tmp_path: Path, files: FileWatch) -> None:
    (tmp_path / "fresh").write_text("")
    (tmp_path / "attempt").mkdir()
    async with files.watching(tmp_path / "attempt") as changed:
        (tmp_path / "fresh").rename(tmp_path / "attempt" / "exit.json")

        await asyncio.wait_for(changed.wait(), 60)


@pytest.mark.parametrize(("expected", "query"), [
    pytest.param(Wanted(), {}, id="nothing said: all"),
    pytest.param(Wanted(follow=True, tail=5), {"follow": "true", "tailLines": "5"}, id="follow the last lines"),
    pytest.param(Wanted(since=NOON - 10 * SECOND), {"sinceSeconds": "10"}, id="seconds ago"),
    pytest.param(Wanted(since=NOON - 13 * 3600 * SECOND), {"sinceTime": "2030-01-01T00:00:00+01:00"},
                 id="since a moment in another zone"),
    pytest.param(Wanted(limit=9, timestamps=True), {"limitBytes": "9", "timestamps": "true"}, id="the rest"),
])
def test_the_query(expected: Wanted, query: dict[str, str]) -> None:
    assert expected == wanted_of(query, datetime(2030, 1, 1, 12, tzinfo=UTC))


@pytest.mark.parametrize("query", [
    {"tailLines": "many"}, {"tailLines": "-1"}, {"sinceTime": "noon"}, {"limitBytes": "0"}, {"sinceSeconds": "9" * 30},
])
def test_a_query_that_makes_no_sense_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(Refused):
        wanted_of(query, datetime(2030, 1, 1, 12, tzinfo=UTC))


