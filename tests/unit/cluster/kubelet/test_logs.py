"""Reading logs: which lines, in which form, and following without asking."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainmaster.cluster.kubelet.criformat import Stamper
from trainmaster.cluster.kubelet.filewatch import FileWatch
from trainmaster.cluster.kubelet.logs import Wanted, last_words, read
from trainmaster.cluster.kubelet.server import Refused, wanted_of

SECOND = 1_000_000_000
NOON = 1893499200 * SECOND


async def never() -> None:
    raise AssertionError("nobody asked to follow")


async def shown(path: Path, **wanted: Any) -> str:
    return b"".join([chunk async for chunk in read(path, Wanted(**wanted), never, lambda: True)]).decode()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three lines, a second apart; the second is so long that it is kept in pieces."""
    stamper = Stamper(b"stdout")
    lines = [b"one\n", b"x" * 40_000 + b"\n", b"three\n"]
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(stamper.feed(line, NOON + at * SECOND) for at, line in enumerate(lines)))
    return path


LONG = "x" * 40_000


@pytest.mark.parametrize(("expected", "wanted"), [
    pytest.param(f"one\n{LONG}\nthree\n", {}, id="all of it, pieces put together"),
    pytest.param("three\n", {"tail": 1}, id="the last line"),
    pytest.param(f"{LONG}\nthree\n", {"tail": 2}, id="a line in pieces counts as one"),
    pytest.param(f"one\n{LONG}\nthree\n", {"tail": 3}, id="as many as there are"),
    pytest.param(f"one\n{LONG}\nthree\n", {"tail": 99}, id="more than there are"),
    pytest.param("", {"tail": 0}, id="none"),
    pytest.param("three\n", {"since": b"2030-01-01T12:00:02"}, id="since a moment"),
    pytest.param("on", {"limit": 2}, id="no more than so many bytes"),
    pytest.param("2030-01-01T12:00:02.000000000Z three\n", {"tail": 1, "timestamps": True}, id="with times"),
])
async def test_parts_of_a_log(expected: str, wanted: dict[str, Any], log: Path) -> None:
    assert expected == await shown(log, **wanted)


async def test_a_line_in_pieces_has_one_time(log: Path) -> None:
    assert f"2030-01-01T12:00:01.000000000Z {LONG}\n" in await shown(log, timestamps=True)


@pytest.mark.parametrize("count", [1, 1000, 3000])
async def test_a_tail_is_found_from_the_end(count: int, tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(Stamper(b"stderr").feed(b"".join(b"line %d\n" % n for n in range(5000)), NOON))

    assert "".join(f"line {n}\n" for n in range(5000 - count, 5000)) == await shown(path, tail=count)


def test_last_words_are_the_end_of_the_log_without_stamps(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(Stamper(b"stderr").feed(b"".join(b"line %d\n" % n for n in range(200)), NOON))

    words = last_words(path)

    assert ("line 199\n", True) == (words[-9:], len(words) <= 2048)
    assert "2030" not in words


def test_a_container_without_a_log_has_no_last_words(tmp_path: Path) -> None:
    assert "" == last_words(tmp_path / "none")


class Writer:
    """A container's output, line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ended = False
        self._stamper = Stamper(b"stdout")
        path.touch()

    def say(self, line: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(self._stamper.feed(line, NOON))


@pytest.fixture
async def files() -> AsyncIterator[FileWatch]:
    watch = FileWatch()
    yield watch
    watch.close()


async def test_a_follower_is_told_at_once_and_until_the_end(tmp_path: Path, files: FileWatch) -> None:
    writer = Writer(tmp_path / "0.log")
    writer.say(b"one\n")
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    async with files.watching(writer.path) as grown:
        async def changed() -> None:
            await grown.wait()
            grown.clear()

        async def follow() -> None:
            async for chunk in read(writer.path, Wanted(follow=True), changed, lambda: writer.ended):
                heard.put_nowait(chunk)

        follower = asyncio.create_task(follow())
        assert b"one\n" == await heard.get()
        writer.say(b"two\n")
        assert b"two\n" == await heard.get()
        writer.ended = True
        writer.say(b"three\n")
        await follower

    assert b"three\n" == heard.get_nowait()


async def test_a_record_that_is_moved_into_a_directory_is_noticed(tmp_path: Path, files: FileWatch) -> None:
    (tmp_path / "fresh").write_text("")
    (tmp_path / "attempt").mkdir()
    async with files.watching(tmp_path / "attempt") as changed:
        (tmp_path / "fresh").rename(tmp_path / "attempt" / "exit.json")

        await asyncio.wait_for(changed.wait(), 5)


@pytest.mark.parametrize(("expected", "query"), [
    pytest.param(Wanted(), {}, id="nothing said: all"),
    pytest.param(Wanted(follow=True, tail=5), {"follow": "true", "tailLines": "5"}, id="follow the last lines"),
    pytest.param(Wanted(since=b"2030-01-01T11:59:50.000000000Z"), {"sinceSeconds": "10"}, id="seconds ago"),
    pytest.param(Wanted(since=b"2029-12-31T23:00:00.000000000Z"), {"sinceTime": "2030-01-01T00:00:00+01:00"},
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


