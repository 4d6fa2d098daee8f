"""Credentials from a program that a kubeconfig names (exec plug-ins, client.authentication.k8s.io).

The program is started directly, never through a shell, with nothing to read and a time to answer in. What it gives is
kept until it expires or the server says 401; then it is asked once, however many requests wait for it, and the request
that was refused is sent again: it was not carried out. Its output never appears in a message, as it is a secret.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import orjson

from trainmaster.api.meta import Object, moment
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.tls import ClientCertificate
from trainmaster.kube.transport import Request, Response, Stream, Transport

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
# Seconds that a program has to answer: it may ask somebody on the network. And how soon after an answer that the server
# did not like it is asked again: a program that always says the same must not be started for every request.
PATIENCE, PAUSE = 60.0, 10.0
LARGEST_ANSWER = 1 << 20


class NoCredentials(Unreachable):
    """The program gave nothing that can be used; the request was not sent."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What to start. `cluster` is told to the program if it wants to know."""

    command: str
    args: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = VERSIONS[0]
    hint: str = ""
    cluster: Object | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Credential:
    """Who we are, for as long as it lasts."""

    token: str = field(default="", repr=False)
    certificate: ClientCertificate | None = field(default=None, repr=False)
    expires: datetime | None = None


async def asked(plugin: Plugin, environment: Mapping[str, str], patience: float = PATIENCE) -> Credential:
    """Start the program and read what it prints. Raises NoCredentials."""
    spec: Object = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    told = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    environment = {
        **environment, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": orjson.dumps(told).decode(),
    }
    try:
        program = await asyncio.create_subprocess_exec(
            plugin.command, *plugin.args, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env=environment, start_new_session=True, limit=LARGEST_ANSWER,
        )
    except OSError as error:
        hint = f" {plugin.hint.strip()}" if plugin.hint else ""
        raise NoCredentials(f"the program {plugin.command} cannot be started: {error.strerror}.{hint}") from error
    try:
        async with asyncio.timeout(patience):
            output, complaint = await asyncio.gather(_read(program.stdout), _read(program.stderr))
            code = await program.wait()
    except TimeoutError:
        await _end(program)
        raise NoCredentials(f"the program {plugin.command} did not answer within {patience:.0f} seconds") from None
    except asyncio.CancelledError:
        await _end(program)
        raise
    if code != 0:
        said = complaint.decode(errors="replace").strip()
        raise NoCredentials(
            f"the program {plugin.command} failed with code {code}" + (f": {said[-200:]}" if said else "")
        )
    return understood(output, plugin)


def understood(output: bytes, plugin: Plugin) -> Credential:
    """The credential in what a program printed. Raises NoCredentials, without quoting it."""
    try:
        answer = orjson.loads(output)
        status = answer["status"]
        if (answer["kind"], answer["apiVersion"]) != ("ExecCredential", plugin.api_version):
            raise NoCredentials(f"the program {plugin.command} answered in another form than {plugin.api_version}")
        token = status.get("token") or ""
        pem = [status.get(name) or "" for name in ("clientCertificateData", "clientKeyData")]
        if not isinstance(token, str) or not all(isinstance(part, str) for part in pem):
            raise TypeError("not text")
        expires = moment(status["expirationTimestamp"]) if status.get("expirationTimestamp") else None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise NoCredentials(f"the program {plugin.command} printed something else than an ExecCredential") from None
    if bool(pem[0]) != bool(pem[1]):
        raise NoCredentials(f"the program {plugin.command} gave a certificate without its key, or a key alone")
    if not token and not pem[0]:
        raise NoCredentials(f"the program {plugin.command} gave neither a token nor a certificate")
    identity = ClientCertificate(pem[0].encode(), pem[1].encode()) if pem[0] else None
    return Credential(token, identity, expires)


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None
    found = bytearray()
    while chunk := await stream.read(1 << 16):
        if len(found) <= LARGEST_ANSWER:    # read on, so that it can end; what is too long is no JSON any more
            found += chunk
    return bytes(found)


async def _end(program: asyncio.subprocess.Process) -> None:
    """It does not go on, nor does what it started: it leads a session of its own."""
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    await program.wait()


class Credentials:
    """What the program said last. One question at a time."""

    def __init__(
        self, plugin: Plugin, environment: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._plugin = plugin
        self._environment = environment
        self._now = now
        self._current: Credential | None = None
        self._since: datetime | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> Credential:
        async with self._asking:
            if self._current is None or (self._current.expires is not None and self._current.expires <= self._now()):
                await self._ask()
            assert self._current is not None
            return self._current

    async def instead_of(self, refused: Credential) -> Credential:
        """Another one than the server refused, if there is another one by now."""
        async with self._asking:
            recent = self._since is not None and abs((self._now() - self._since).total_seconds()) < PAUSE
            if self._current is refused and not recent:
                await self._ask()
            assert self._current is not None
            return self._current

    async def _ask(self) -> None:
        self._current = await asked(self._plugin, os.environ if self._environment is None else self._environment)
        self._since = self._now()


@dataclass(slots=True, eq=False)
class _Line:
    """A transport for one certificate. The last to leave one that is no longer used closes it."""

    transport: Transport
    certificate: ClientCertificate | None
    users: int = 0
    retired: bool = False

    async def leave(self) -> None:
        self.users -= 1
        if self.retired and not self.users:
            await self.transport.close()


class PluginTransport:
    """Carries requests with the credentials of a program. `connect` makes a transport for a certificate."""

    def __init__(self, credentials: Credentials, connect: Callable[[ClientCertificate | None], Transport]) -> None:
        self._credentials = credentials
        self._connect = connect
        self._line: _Line | None = None
        self._retired: list[_Line] = []    # those with streams that go on

    async def send(self, request: Request) -> Response:
        credential = await self._credentials.current()
        answer = await self._send(request, credential)
        if answer.status == 401 and (other := await self._credentials.instead_of(credential)) is not credential:
            return await self._send(request, other)
        return answer

    async def open(self, request: Request) -> Stream:
        credential = await self._credentials.current()
        stream = await self._open(request, credential)
        if stream.status == 401 and (other := await self._credentials.instead_of(credential)) is not credential:
            await stream.close()
            return await self._open(request, other)
        return stream

    async def close(self) -> None:
        for line in (*self._retired, *([self._line] if self._line is not None else [])):
            await line.transport.close()
        self._retired.clear()
        self._line = None

    async def _send(self, request: Request, credential: Credential) -> Response:
        line = await self._joined(credential)
        try:
            return await line.transport.send(_signed(request, credential))
        finally:
            await line.leave()

    async def _open(self, request: Request, credential: Credential) -> "_Stream":
        line = await self._joined(credential)
        try:
            stream = await line.transport.open(_signed(request, credential))
        except BaseException:
            await line.leave()
            raise
        return _Stream(stream.status, stream.headers, stream, line)

    async def _joined(self, credential: Credential) -> _Line:
        line = self._line
        if line is not None and line.certificate == credential.certificate:
            line.users += 1
            return line
        self._line, old = _Line(self._made(credential), credential.certificate, users=1), line
        line = self._line
        self._retired = [each for each in self._retired if each.users]
        if old is not None:
            self._retired.append(old)
            old.retired = True
            old.users += 1    # so that leaving closes it, if nobody else uses it
            await old.leave()
        return line

    def _made(self, credential: Credential) -> Transport:
        try:
            return self._connect(credential.certificate)
        except ValueError as error:
            raise NoCredentials(f"what the program gave cannot be used: {error}") from error


@dataclass(slots=True)
class _Stream:
    """A stream that says when it is over."""

    status: int
    headers: Mapping[str, str]
    inner: Stream
    line: _Line
    closed: bool = False

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self.inner.chunks():
            yield chunk

    async def close(self) -> None:
        await self.inner.close()
        if not self.closed:
            self.closed = True
            await self.line.leave()


def _signed(request: Request, credential: Credential) -> Request:
    if not credential.token:
        return request
    return replace(request, headers={**request.headers, "authorization": f"Bearer {credential.token}"})
