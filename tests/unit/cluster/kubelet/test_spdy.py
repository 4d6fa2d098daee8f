"""SPDY frames: what is written is read again, whatever way it is cut; what is no SPDY is refused."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cluster.kubelet.spdy import (
    DICTIONARY,
    MOST_FRAME,
    Broken,
    Data,
    Frame,
    Leaving,
    Opened,
    Ping,
    Reader,
    Replied,
    Reset,
    Writer,
)

numbers = st.integers(1, 2**31 - 1)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)
values = st.text(st.characters(min_codepoint=1, max_codepoint=0x24F), max_size=30)
headers = st.dictionaries(names, values, max_size=5)
frames = st.lists(st.one_of(
    st.builds(Opened, numbers, headers, st.booleans()),
    st.builds(Replied, numbers, headers),
    st.builds(Data, numbers, st.binary(max_size=200), st.booleans()),
    st.builds(Reset, numbers, st.integers(1, 11)),
    st.builds(Ping, st.integers(0, 2**32 - 1)),
    st.builds(Leaving),
), max_size=12)


def written(found: list[Frame]) -> bytes:
    writer = Writer()
    raw = b""
    for frame in found:
        match frame:
            case Opened(stream, given, fin):
                raw += writer.open(stream, given, fin=fin)
            case Replied(stream, given):
                raw += writer.reply(stream, given)
            case Data(stream, data, fin):
                raw += writer.data(stream, data, fin=fin)
            case Reset(stream, status):
                raw += writer.reset(stream, status)
            case Ping(number):
                raw += writer.ping(number)
            case Leaving():
                raw += writer.leave(1)
    return raw


@given(frames, st.integers(1, 50))
def test_frames_are_read_as_they_were_written(found: list[Frame], piece: int) -> None:
    raw, reader = written(found), Reader()

    assert found == [frame for at in range(0, len(raw), piece) for frame in reader.feed(raw[at:at + piece])]


def test_the_dictionary_is_the_protocols() -> None:
    """The other side refuses headers that were made with another one, by this sum."""
    assert (1423, 0xE3C6A7C2) == (len(DICTIONARY), zlib.adler32(DICTIONARY))


def test_what_nobody_needs_is_passed_over() -> None:
    settings = struct.pack(">III", 0x80030004, 4, 0)
    window = struct.pack(">IIII", 0x80030009, 8, 1, 65536)

    assert [Ping(1)] == list(Reader().feed(settings + window + Writer().ping(1)))


@pytest.mark.parametrize("raw", [
    pytest.param(struct.pack(">II", 0x80020001, 10) + b"\0" * 10, id="another version"),
    pytest.param(struct.pack(">II", 1, MOST_FRAME + 1), id="a frame that is too large"),
    pytest.param(struct.pack(">II", 0x80030001, 20) + b"\0" * 20, id="headers that are not compressed"),
    pytest.param(struct.pack(">II", 0x80030006, 2) + b"\0" * 2, id="a ping without a number"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="something else"),
])
def test_what_is_no_spdy_is_refused(raw: bytes) -> None:
    with pytest.raises(Broken):
        list(Reader().feed(raw))


def test_headers_that_grow_without_end_are_refused() -> None:
    packed = zlib.compressobj(zdict=DICTIONARY)
    block = packed.compress(b"\0" * 10_000_000) + packed.flush(zlib.Z_SYNC_FLUSH)
    frame = struct.pack(">III", 0x80030002, 4 + len(block), 1) + block

    with pytest.raises(Broken, match="bytes of headers"):
        list(Reader().feed(frame))
