"""Output on disk: whole lines in order, nothing lost or added, and no more of it than may be."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cluster.kubelet.logs import chunks, numbers
from trainmaster.cluster.kubelet.output import LONGEST, STDERR, STDOUT, Lines, Log

NOON = 1893499200_000000000
MS = 1_000_000


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(("expected", "given"), [
    pytest.param([], [b""], id="nothing"),
    pytest.param([b"one\n"], [b"one\n"], id="a line"),
    pytest.param([b"one\n\ntwo\n"], [b"one\n\ntwo\n"], id="lines that came together stay together"),
    pytest.param([b"one\n"], [b"o", b"ne", b"\n"], id="a line in pieces is one line"),
    pytest.param([b"one\n", b"two\n"], [b"one\ntw", b"o\n"], id="the beginning of a line waits for its end"),
    pytest.param([b"one\n", b"tail"], [b"one\ntail"], id="what has no newline comes with the end"),
    pytest.param([b"x" * LONGEST, b"y\n"], [b"x" * LONGEST, b"y\n"], id="a very long line is not waited for"),
    pytest.param([b"a\r b\n"], [b"a\r b\n"], id="a carriage return is content"),
])
def test_lines(expected: list[bytes], given: list[bytes]) -> None:
    lines = Lines()

    found = [lines.feed(piece) for piece in given] + [lines.finish()]

    assert expected == [piece for piece in found if piece]


@given(st.lists(st.binary(max_size=60).map(lambda raw: raw * 700 if raw[:1] > b"\xf0" else raw)))
def test_nothing_is_lost_or_added(pieces: list[bytes]) -> None:
    lines = Lines()

    found = b"".join([lines.feed(piece) for piece in pieces])
    kept_back = lines.finish()

    assert len(kept_back) < LONGEST
    assert b"".join(pieces) == found + kept_back


def test_streams_do_not_mix_inside_a_line(directory: int, tmp_path: Path) -> None:
    log = Log(directory)
    for at, (stream, data) in enumerate([(STDOUT, b"one, "), (STDERR, b"bad\n"), (STDOUT, b"two\n"), (STDERR, b"")]):
        log.feed(stream, data, NOON + at * MS)

    assert b"bad\none, two\n" == (tmp_path / "0.log").read_bytes()
    assert [(STDERR, NOON + MS, b"bad\n"), (STDOUT, NOON + 2 * MS, b"one, two\n")] == [
        (chunk.stream, chunk.when, chunk.data) for chunk in chunks(tmp_path)
    ]


def test_what_is_printed_within_a_millisecond_shares_a_time(directory: int, tmp_path: Path) -> None:
    log = Log(directory)
    for at in range(1000):
        log.feed(STDOUT, b"line\n", NOON + at * 1000)

    assert 24 == (tmp_path / "0.idx").stat().st_size


def test_only_the_last_files_are_kept(directory: int, tmp_path: Path) -> None:
    log = Log(directory, 1000, 3)
    for number in range(1000):
        log.feed(STDOUT, b"line %06d\n" % number, NOON + number * MS)

    kept = [int(line.split()[1]) for chunk in chunks(tmp_path) for line in chunk.data.splitlines()]
    assert kept == list(range(kept[0], 1000))
    assert 3 == len(numbers(tmp_path))
    assert 2000 < sum(path.stat().st_size for path in tmp_path.glob("*.log")) <= 3000
    assert 6 == len(list(tmp_path.iterdir()))


def test_rotation_can_be_switched_off(directory: int, tmp_path: Path) -> None:
    log = Log(directory, 1000, 0)
    for number in range(1000):
        log.feed(STDOUT, b"line %06d\n" % number, NOON)

    assert [0] == numbers(tmp_path)
    assert 12_000 == (tmp_path / "0.log").stat().st_size


def test_a_full_disk_is_counted_and_survived(directory: int) -> None:
    log = Log(directory)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._data)
    os.close(full)

    assert 5 == log.feed(STDOUT, b"lost\n", NOON)


@given(st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=40)), max_size=60),
       st.integers(1, 100), st.integers(1, 4))
def test_each_stream_is_in_order_and_whole_up_to_what_was_given_up(
    tmp_path_factory: pytest.TempPathFactory, given: list[tuple[int, bytes]], size: int, keep: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    log = Log(fd, size, keep)
    for at, (stream, data) in enumerate([*given, (STDOUT, b""), (STDERR, b"")]):
        log.feed(stream, data, NOON + at * MS * 2)
    os.close(fd)

    found = [(chunk.stream, chunk.data) for chunk in chunks(folder)]
    for stream in (STDOUT, STDERR):
        said = b"".join(data for each, data in given if each == stream)
        assert said.endswith(b"".join(data for each, data in found if each == stream))
    assert len(numbers(folder)) <= keep
