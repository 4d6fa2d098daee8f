"""Requests over TCP with TLS, or over a Unix socket.

One session per server, made when first used, so that building a client needs no running loop. Redirects are not
followed and proxies and cookies not used: an API server needs none of them, and each could carry the token to
somebody else.
"""

import asyncio
import io
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import aiohttp
from aiohttp.typedefs import LooseHeaders
from yarl import URL

from trainmaster.kube.errors import Unreachable
from trainmaster.kube.tls import ClientCertificate, client_context
from trainmaster.kube.transport import Request, Response

AT_ONCE = 1 << 20  # bytes of a body that are given to aiohttp as they are; it wants larger ones as a file
# struct sockaddr_un holds 108 bytes with the closing zero.
LONGEST_SOCKET_PATH = 107
# A peer that vanished without a word is noticed on a silent watch after 30 + 3 * 10 seconds.
KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
# Tokens of service accounts are replaced in place well before they end; client-go looks once a minute too.
TOKEN_AGE = 60.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: until connected, between two pieces of an answer, and for a whole answer. Streams have no last one."""

    connect: float = 10.0
    read: float = 60.0
    total: float = 300.0


class HttpTransport:
    """Carries requests to one server. `client_cert` and `ca` are PEM; `token_file` is read again as it changes."""

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
        unix_socket: Path | None = None,
        connections: int = 200,
        timeouts: Timeouts | None = None,
    ) -> None:
        self._server = server.rstrip("/")
        self._token = token
        self._token_file = token_file
        self._token_read = float("-inf")
        self._tls = client_context(ca, client_cert, verify=verify) if server.startswith("https:") else None
        self._server_name = server_name or None
        self._socket = _SocketAddress(unix_socket) if unix_socket is not None else None
        self._connections = connections
        self._timeouts = timeouts or Timeouts()
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request) -> Response:
        limits = self._timeouts
        timeout = aiohttp.ClientTimeout(total=limits.total, connect=limits.connect, sock_read=limits.read)
        try:
            async with await self._begin(request, timeout) as answer:
                return Response(answer.status, _lowered(answer.headers), await answer.read())
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, error) from error

    async def open(self, request: Request) -> "HttpStream":
        limits = self._timeouts
        timeout = aiohttp.ClientTimeout(total=None, connect=limits.connect, sock_read=None)
        try:
            async with asyncio.timeout(limits.connect + limits.read):
                answer = await self._begin(request, timeout)
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, error) from error
        return HttpStream(answer, lambda error: self._unreachable(request, error))

    async def plain(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of its own to a Unix socket, for what is not HTTP in the end. Raises OSError."""
        assert self._socket is not None
        try:
            return await asyncio.open_unix_connection(self._socket.path())
        except OSError:
            if not self._socket.reopened():
                raise
            return await asyncio.open_unix_connection(self._socket.path())

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._socket is not None:
            self._socket.close()

    async def _begin(self, request: Request, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        url = URL(self._server + _target(request), encoded=True)
        try:
            return await self._ask(request, url, timeout)
        except aiohttp.ClientConnectorError:
            # The directory of a long socket path may have been made anew since it was opened; nothing was sent yet.
            if self._socket is None or not self._socket.reopened():
                raise
            return await self._ask(request, url, timeout)

    async def _ask(self, request: Request, url: URL, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._connector(), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        body = io.BytesIO(request.body) if len(request.body) > AT_ONCE else request.body or None
        return await self._session.request(
            request.method, url, data=body, headers=self._headers(request.headers), timeout=timeout,
            allow_redirects=False, server_hostname=self._server_name,
        )

    def _connector(self) -> aiohttp.BaseConnector:
        if self._socket is not None:
            return aiohttp.UnixConnector(self._socket.path(), limit=self._connections)
        return aiohttp.TCPConnector(
            limit=self._connections, ssl=self._tls if self._tls is not None else True, socket_factory=_kept_alive
        )

    def _headers(self, given: Mapping[str, str]) -> LooseHeaders:
        headers = dict(given)
        if token := self._current_token():
            headers["authorization"] = f"Bearer {token}"
        return headers

    def _current_token(self) -> str:
        now = asyncio.get_running_loop().time()
        if self._token_file is not None and now - self._token_read >= TOKEN_AGE:
            try:
                self._token = self._token_file.read_text().strip()
            except OSError as error:
                # Between two writes of a mounted file there may be none for a moment; the token we have still counts.
                if not self._token:
                    raise Unreachable(f"the token file {self._token_file} cannot be read: {_short(error)}") from error
            else:
                self._token_read = now
        return self._token

    def _unreachable(self, request: Request, error: BaseException) -> Unreachable:
        return Unreachable(f"{request.method} {request.path} on {self._server}: {_cause(error)}")


class HttpStream:
    """An answer that is still coming. Closing it closes its connection, which is how the sender learns of it."""

    def __init__(self, answer: aiohttp.ClientResponse, failure: Callable[[BaseException], Unreachable]) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = _lowered(answer.headers)
        self._answer = answer
        self._failure = failure

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(error) from error

    async def close(self) -> None:
        # Cut, not wound down: TLS would wait for the other side's goodbye, with nobody left to hear it.
        if (connection := self._answer.connection) is not None and connection.transport is not None:
            connection.transport.abort()
        self._answer.close()


class _SocketAddress:
    """Where a Unix socket is, as connect() takes it: a path that is too long goes through its open directory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._directory: int | None = None

    def path(self) -> str:
        if len(os.fsencode(self._path)) <= LONGEST_SOCKET_PATH:
            return str(self._path)
        if self._directory is None:
            self._directory = self._opened()
        return f"/proc/self/fd/{self._directory}/{self._path.name}"

    def reopened(self) -> bool:
        """Point the open directory to the one that has its name now; False if that is no other or there is none."""
        if self._directory is None:
            return False
        try:
            fresh = self._opened()
        except OSError:
            return False
        try:
            moved = not os.path.samestat(os.fstat(fresh), os.fstat(self._directory))
            os.dup2(fresh, self._directory, inheritable=False)
        finally:
            os.close(fresh)
        return moved

    def close(self) -> None:
        if self._directory is not None:
            os.close(self._directory)
            self._directory = None

    def _opened(self) -> int:
        return os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _target(request: Request) -> str:
    path = quote(request.path, safe="/:@!$&'()*+,;=~")
    return f"{path}?{urlencode(list(request.query), quote_via=quote)}" if request.query else path


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _kept_alive(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        if (option := getattr(socket, name, None)) is not None:      # not every system has all of them
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


def _cause(error: BaseException) -> str:
    """A few words, no address and no header: those are in the sentence around it or not to be shown."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {_short(error.certificate_error)}"
        case TimeoutError():
            return "timed out"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection"
        case aiohttp.ClientPayloadError():
            return "the answer ended early"
        case aiohttp.ClientConnectorError():
            return _short(error.os_error)
        case ssl.SSLError():
            return f"TLS failed: {error.reason or 'handshake'}"
        case OSError():
            return _short(error)
    return f"{type(error).__name__}: {_short(error)}"


def _short(error: BaseException) -> str:
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror | ssl.SSLError) and error.errno:
        return os.strerror(error.errno)    # asyncio writes its own words over the system's
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return text if len(text) <= 200 else text[:200] + "…"
