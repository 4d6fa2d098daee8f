"""The frames of SPDY/3.1, as far as kubectl uses them: streams, data, resets, pings. Pure: bytes in, frames out.

kubectl before 1.30 speaks it for exec and attach, and every kubectl for port-forward (since 1.31 inside a WebSocket).
Nobody keeps a library for it any more. What is left out is what kubectl's side leaves out too: flow control by windows
(the connection's own has to do), pushed streams, settings, credentials. Header blocks are compressed with one state per
direction and a dictionary that the protocol prescribes.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

VERSION = 3
FIN = 0x01
# kubectl sends at most 32 KiB at once; a header block of ours has a dozen short headers.
MOST_FRAME = 1 << 20
MOST_HEADERS = 1 << 16
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_STATUSES = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
)
_VALUES = (
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,"
    "image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivate"
    "max-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
# The protocol's own, byte for byte: the other side checks its sum.
DICTIONARY = b"".join(
    struct.pack(">I", len(word)) + word.replace("_", " ").encode() for word in _WORDS.split()
) + (_STATUSES + _VALUES).encode()


class Broken(Exception):
    """What came is not SPDY, or more of it than anybody needs."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The other side wants a stream."""

    stream: int
    headers: Mapping[str, str]
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Replied:
    """The other side took a stream."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Data:
    stream: int
    data: bytes
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    stream: int
    status: int


@dataclass(frozen=True, slots=True)
class Ping:
    number: int


@dataclass(frozen=True, slots=True)
class Leaving:
    """The other side opens no more streams."""


Frame: TypeAlias = Opened | Replied | Data | Reset | Ping | Leaving


class Reader:
    """Frames from bytes that come in pieces of any size."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """All frames that are complete now, but for kinds that nobody needs. Raises Broken."""
        self._held += data
        while len(self._held) >= 8:
            first, second = struct.unpack_from(">II", self._held)
            flags, size = second >> 24, second & 0xFFFFFF
            if size > MOST_FRAME:
                raise Broken(f"a frame of {size} bytes")
            if len(self._held) < 8 + size:
                return
            body = bytes(self._held[8:8 + size])
            del self._held[:8 + size]
            frame = self._control(first, flags, body) if first >> 31 else Data(first, body, bool(flags & FIN))
            if frame is not None:
                yield frame

    def _control(self, first: int, flags: int, body: bytes) -> Frame | None:
        version, kind = first >> 16 & 0x7FFF, first & 0xFFFF
        if version != VERSION:
            raise Broken(f"version {version}")
        try:
            match kind:
                case 1:
                    stream = struct.unpack_from(">I", body)[0] & 0x7FFFFFFF
                    return Opened(stream, self._headers(body[10:]), bool(flags & FIN))
                case 2:
                    return Replied(struct.unpack_from(">I", body)[0] & 0x7FFFFFFF, self._headers(body[4:]))
                case 3:
                    stream, status = struct.unpack(">II", body)
                    return Reset(stream & 0x7FFFFFFF, status)
                case 6:
                    return Ping(struct.unpack(">I", body)[0])
                case 7:
                    return Leaving()
                case 8:
                    self._headers(body[4:])        # further headers: of no use, but the state of the decompression
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise Broken(f"a frame of kind {kind}: {error}") from error
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        raw = self._zlib.decompress(block, MOST_HEADERS)
        if self._zlib.unconsumed_tail:
            raise Broken(f"more than {MOST_HEADERS} bytes of headers")
        count, at = struct.unpack_from(">I", raw)[0], 4
        found = {}
        for _ in range(count):
            name, at = _text(raw, at)
            value, at = _text(raw, at)
            found[name.lower()] = value.partition("\0")[0]
        return found


class Writer:
    """Bytes for frames."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(zdict=DICTIONARY)

    def open(self, stream: int, headers: Mapping[str, str], *, fin: bool = False) -> bytes:
        body = struct.pack(">IIH", stream, 0, 0) + self._headers(headers)
        return _control(_SYN_STREAM, body, FIN if fin else 0)

    def reply(self, stream: int, headers: Mapping[str, str] | None = None) -> bytes:
        return _control(_SYN_REPLY, struct.pack(">I", stream) + self._headers(headers or {}))

    def data(self, stream: int, data: bytes, *, fin: bool = False) -> bytes:
        return struct.pack(">II", stream, (FIN if fin else 0) << 24 | len(data)) + data

    def reset(self, stream: int, status: int = 5) -> bytes:
        """5: cancelled; 3: refused."""
        return _control(_RST_STREAM, struct.pack(">II", stream, status))

    def ping(self, number: int) -> bytes:
        return _control(_PING, struct.pack(">I", number))

    def leave(self, last: int) -> bytes:
        return _control(_GOAWAY, struct.pack(">II", last, 0))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        raw = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name.lower(), value):
                raw += struct.pack(">I", len(text.encode())) + text.encode()
        return self._zlib.compress(raw) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


def _control(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack(">II", 1 << 31 | VERSION << 16 | kind, flags << 24 | len(body)) + body


def _text(raw: bytes, at: int) -> tuple[str, int]:
    size = struct.unpack_from(">I", raw, at)[0]
    if at + 4 + size > len(raw):
        raise struct.error("a header longer than its block")
    return raw[at + 4:at + 4 + size].decode(), at + 4 + size
