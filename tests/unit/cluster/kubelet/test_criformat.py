"""Output as log lines, whatever way it is cut into chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cluster.kubelet.criformat import LONGEST, Stamper, timestamp

T = b"2030-01-01T12:00:00.000000005Z"
NOW = 1893499200_000000005


def written(*chunks: bytes) -> bytes:
    stamper = Stamper(b"stdout")
    return b"".join(stamper.feed(chunk, NOW) for chunk in chunks) + stamper.finish(NOW)


@pytest.mark.parametrize(("expected", "chunks"), [
    pytest.param([], [b""], id="nothing"),
    pytest.param([b"F one"], [b"one\n"], id="a line"),
    pytest.param([b"F one", b"F ", b"F two"], [b"one\n\ntwo\n"], id="empty lines count"),
    pytest.param([b"F one"], [b"o", b"ne", b"\n"], id="a line in pieces is one line"),
    pytest.param([b"F one", b"F tail"], [b"one\ntail"], id="what has no newline at the end is a line"),
    pytest.param([b"P " + b"x" * LONGEST, b"F y"], [b"x" * LONGEST + b"y\n"], id="a long line is cut"),
    pytest.param([b"F a\r b"], [b"a\r b\n"], id="a carriage return is content"),
])
def test_lines(expected: list[bytes], chunks: list[bytes]) -> None:
    assert b"".join(T + b" stdout " + line + b"\n" for line in expected) == written(*chunks)


def test_times_have_one_length_and_compare_as_text() -> None:
    assert timestamp(NOW) == T
    assert timestamp(NOW) < timestamp(NOW + 1)


@given(st.lists(st.binary(max_size=60)))
def test_nothing_is_lost_or_added(chunks: list[bytes]) -> None:
    lines = written(*chunks).split(b"\n")[:-1]

    content = b"".join(line[40:] + (b"\n" if line[38:39] == b"F" else b"") for line in lines)

    assert b"".join(chunks).removesuffix(b"\n") == content.removesuffix(b"\n")
