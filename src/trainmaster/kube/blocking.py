"""Requests over TCP with TLS, one after the other, for programs that need no event loop.

The client is written once, with `async def`; over this transport none of its coroutines ever waits for a loop, so that
`done` runs each to its end in one step. A short command is spared asyncio and aiohttp, which take longer to load than
the command to run, and a notebook, whose own loop runs already, can call it like any function. Rejected: a second
client without `async` (two of everything), and `asyncio.run` for each call (refused where a loop runs).
"""

import http.client
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from trainmaster.kube.errors import Unreachable
from trainmaster.kube.tls import ClientCertificate, client_context
from trainmaster.kube.transport import Request, Response

if TYPE_CHECKING:
    from trainmaster.kube.credentials import Credential

T = TypeVar("T")

CONNECT, READ = 10.0, 60.0       # seconds: until connected, and between two pieces of an answer
PIECE = 1 << 16
# A peer that vanished without a word is noticed on a silent watch after 30 + 3 * 10 seconds.
KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


def done(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that waits for nothing but this transport."""
    try:
        work.send(None)
    except StopIteration as ended:
        found: T = ended.value
        return found
    work.close()
    raise RuntimeError("this needs an event loop; use the asynchronous client")


def each(items: AsyncGenerator[T, None]) -> Iterator[T]:
    """What an asynchronous generator yields, one by one; it is closed with this one."""
    try:
        while True:
            try:
                found = done(items.__anext__())
            except StopAsyncIteration:
                return
            yield found
    finally:
        done(items.aclose())


class BlockingClock:
    """The machine's clock for those who wait without a loop."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))  # noqa: ASYNC251  there is no loop that could do something else meanwhile

    async def sleep_until(self, moment: datetime) -> None:
        await self.sleep((moment - self.now()).total_seconds())


class BlockingTransport:
    """Carries requests to one server over one connection that is kept; each stream has one of its own.

    `credential` is asked for what a program says; called with the one that the server refused, it may know another.
    """

    def __init__(
        self,
        server: str,
        *,
        token: str = "",
        token_file: Path | None = None,
        ca: bytes | None = None,
        client_cert: ClientCertificate | None = None,
        verify: bool = True,
        server_name: str = "",
        credential: "Callable[[Credential | None], Credential] | None" = None,
        patience: float = READ,
    ) -> None:
        parts = urlsplit(server)
        self._server = server.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._secure = parts.scheme == "https"
        self._address = (parts.hostname or "", parts.port or (443 if self._secure else 80))
        self._ca, self._verify = ca, verify
        self._server_name = server_name or self._address[0]
        self._token, self._token_file = token, token_file
        self._tls = client_context(ca, client_cert, verify=verify) if self._secure else None
        self._credential = credential
        self._current: Credential | None = None
        self._kept: _Connection | None = None
        self._alone = threading.Lock()
        self._patience = patience

    async def send(self, request: Request) -> Response:
        with self._alone:
            answer = self._sent(request)
            if answer.status == 401 and self._other_credential():
                answer = self._sent(request)
            return answer

    async def open(self, request: Request) -> "BlockingStream":
        stream = self._opened(request)
        if stream.status == 401 and self._other_credential():
            await stream.close()
            stream = self._opened(request)
        return stream

    async def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _sent(self, request: Request) -> Response:
        try:
            headers = self._headers(request)     # first: it may say that there must be another connection
            if self._kept is None or self._kept.stale():
                self._kept = self._connection()
            answer = self._kept.asked(self._prefix, request, headers)
            body = answer.read()
        except (OSError, http.client.HTTPException) as error:
            if self._kept is not None:
                self._kept.close()
            self._kept = None
            raise self._unreachable(request, error) from error
        if answer.will_close:
            self._kept.close()
            self._kept = None
        return Response(answer.status, _lowered(answer), body)

    def _opened(self, request: Request) -> "BlockingStream":
        connection: _Connection | None = None
        try:
            headers = self._headers(request)
            connection = self._connection()
            answer = connection.asked(self._prefix, request, headers)
        except (OSError, http.client.HTTPException) as error:
            if connection is not None:
                connection.close()
            raise self._unreachable(request, error) from error
        if connection.sock is not None:
            connection.sock.settimeout(None)
        return BlockingStream(connection, answer, lambda error: self._unreachable(request, error))

    def _connection(self) -> "_Connection":
        return _Connection(self._address, self._tls, self._server_name, self._patience)

    def _headers(self, request: Request) -> dict[str, str]:
        headers = dict(request.headers)
        if self._credential is not None and (self._current is None or _expired(self._current)):
            self._use(self._credential(None))
        token = self._current.token if self._current is not None else ""
        if not token and self._token_file is not None:
            try:
                token = self._token_file.read_text().strip()
            except OSError as error:
                raise Unreachable(f"the token file {self._token_file} cannot be read: {error.strerror}") from error
        if token or self._token:
            headers["authorization"] = f"Bearer {token or self._token}"
        return headers

    def _other_credential(self) -> bool:
        if self._credential is None:
            return False
        refused, found = self._current, self._credential(self._current)
        if found == refused:
            return False
        self._use(found)
        return True

    def _use(self, credential: "Credential") -> None:
        if self._secure and credential.certificate != (self._current.certificate if self._current else None):
            self._tls = client_context(self._ca, credential.certificate, verify=self._verify)
            self._kept = None
        self._current = credential

    def _unreachable(self, request: Request, error: BaseException) -> Unreachable:
        return Unreachable(f"{request.method} {request.path} on {self._server}: {_cause(error)}")


class BlockingStream:
    """An answer that is still coming, on a connection of its own."""

    def __init__(
        self, connection: "_Connection", answer: http.client.HTTPResponse,
        failure: Callable[[BaseException], Unreachable],
    ) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = _lowered(answer)
        self._connection, self._answer, self._failure = connection, answer, failure

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            try:
                piece = self._answer.read1(PIECE)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise self._failure(error) from error
            if not piece:
                return
            yield piece

    async def close(self) -> None:
        self._connection.close()
        self._answer.close()


class _Connection(http.client.HTTPConnection):
    """To one address; the name that the certificate must have may be another."""

    def __init__(
        self, address: tuple[str, int], tls: ssl.SSLContext | None, server_name: str, patience: float
    ) -> None:
        super().__init__(address[0], address[1], timeout=patience)
        self._tls, self._server_name = tls, server_name

    def connect(self) -> None:
        # As bytes: text would be sent through the tables of international names, which take long to load.
        name = self.host.encode("ascii") if self.host.isascii() else self.host
        place: tuple[Any, int] = (name, self.port)      # bytes will do, which the types do not know
        made = socket.create_connection(place, min(CONNECT, self.timeout or CONNECT))
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE:
            if (option := getattr(socket, name, None)) is not None:      # not every system has all of them
                made.setsockopt(socket.IPPROTO_TCP, option, value)
        try:
            shown = self._server_name.encode("ascii") if self._server_name.isascii() else self._server_name
            self.sock = made if self._tls is None else self._tls.wrap_socket(made, server_hostname=shown)
        except BaseException:
            made.close()
            raise
        self.sock.settimeout(self.timeout)

    def asked(self, prefix: str, request: Request, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        target = prefix + quote(request.path, safe="/:@!$&'()*+,;=~")
        if request.query:
            target += f"?{urlencode(list(request.query), quote_via=quote)}"
        self.request(request.method, target, request.body or None, dict(headers))
        return self.getresponse()

    def stale(self) -> bool:
        """Whether the other side closed it, or said what nobody asked for: seen before anything is sent on it."""
        return self.sock is None or bool(select.select([self.sock], [], [], 0)[0])


def from_program(ask: Callable[[], "Coroutine[Any, Any, Credential]"]) -> "Callable[[Credential | None], Credential]":
    """The credentials of a program, asked for in a thread with a loop of its own; the same again within ten seconds."""
    known: list[tuple[float, Credential]] = []

    def current(refused: "Credential | None") -> "Credential":
        from trainmaster.kube.credentials import PAUSE

        if refused is not None and known and time.monotonic() - known[-1][0] < PAUSE:
            return known[-1][1]
        known[:] = [(time.monotonic(), _aside(ask))]
        return known[-1][1]

    return current


def _aside(ask: "Callable[[], Coroutine[Any, Any, Credential]]") -> "Credential":
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(ask())).result()


def _expired(credential: "Credential") -> bool:
    return credential.expires is not None and credential.expires <= datetime.now(UTC)


def _lowered(answer: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def _cause(error: BaseException) -> str:
    """A few words, no address and no header: those are in the sentence around it or not to be shown."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}"
        case TimeoutError():
            return "timed out"
        case ssl.SSLError():
            return f"TLS failed: {error.reason or 'handshake'}"
        case http.client.RemoteDisconnected():
            return "the server closed the connection"
        case http.client.IncompleteRead():
            return "the answer ended early"
        case socket.gaierror():
            return str(error.strerror)
        case OSError() if error.errno:
            return os.strerror(error.errno)
    return f"{type(error).__name__}: {str(error)[:200]}"
