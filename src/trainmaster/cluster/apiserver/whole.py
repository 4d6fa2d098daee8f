"""An answer that is all there goes out in one piece: status line, headers and body as one write, one record of TLS.

aiohttp's own response keeps a table of headers that handlers may change until the last moment, and gives TLS the head
and the body apart; of what a small request costs, that is a quarter. Here everything is known when the answer is made.
aiohttp still owns the connection: this is one of its responses, of which `prepare` sends all there is.
"""

import re
import time
from functools import lru_cache
from http import HTTPStatus

from aiohttp import HttpVersion, HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from trainmaster.kube.transport import Response

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WITHOUT_BODY = frozenset({204, 304})
_PRIVATE = b"Cache-Control: no-cache, private\r\n"
# A line break would begin another header; no other sign of this sort belongs there, as aiohttp has it.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Whole(web.StreamResponse):
    """`close`: the connection ends with this answer, whatever the client asked for."""

    def __init__(self, answer: Response, *, close: bool = False) -> None:
        super().__init__(status=answer.status)
        self._answer = answer
        self._stays = not close

    @property
    def keep_alive(self) -> bool | None:
        return self._stays

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Raises ConnectionError when the client is gone."""
        self._stays = self._stays and request.keep_alive
        answer, version, writer = self._answer, request.version, request.writer
        empty = answer.status in _WITHOUT_BODY
        head = b"".join((
            _line(version, answer.status), b"" if "Cache-Control" in answer.headers else _PRIVATE,
            *[_header(name, value) for name, value in answer.headers.items()],
            *[_header("Warning", value) for value in answer.warnings],
            b"" if empty else b"Content-Length: %d\r\n" % len(answer.body),
            date(int(time.time())), _connection(version, stays=self._stays)))
        await writer.write_eof(head if empty or request.method == "HEAD" else head + answer.body)
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Everything is sent."""


@lru_cache(maxsize=64)
def _line(version: HttpVersion, status: int) -> bytes:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    return (f"HTTP/{version.major}.{version.minor} {status} {reason}\r\n"
            "Server: trainmaster\r\n").encode()


def _header(name: str, value: str) -> bytes:
    if _CONTROL.search(value) is not None:
        raise ValueError(f"a header cannot have control characters: {name}")
    return f"{name}: {value}\r\n".encode()


@lru_cache(maxsize=1)
def date(second: int) -> bytes:
    """As HTTP writes it, whatever language the machine speaks."""
    now = time.gmtime(second)
    return (f"Date: {_DAYS[now.tm_wday]}, {now.tm_mday:02} {_MONTHS[now.tm_mon - 1]} {now.tm_year} "
            f"{now.tm_hour:02}:{now.tm_min:02}:{now.tm_sec:02} GMT\r\n").encode()


def _connection(version: HttpVersion, *, stays: bool) -> bytes:
    """The end of the head, with what the version does not take for granted."""
    if stays:
        return b"\r\n" if version >= HttpVersion11 else b"Connection: keep-alive\r\n\r\n"
    return b"Connection: close\r\n\r\n" if version >= HttpVersion11 else b"\r\n"
