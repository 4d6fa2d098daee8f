"""A program in a container, with its standard streams on this side: exec over a WebSocket, as kubectl does since 1.31.

Each message begins with the number of its channel. Version 5 can also say that standard input has ended, which 4
cannot; both are offered, and those who must end the input ask what was agreed. SPDY, the older way, is not spoken.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import aiohttp
import orjson

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object
from trainmaster.kube.errors import Forbidden, NotFound, Unreachable, from_status
from trainmaster.kube.kubeconfig import Access
from trainmaster.kube.tls import ClientCertificate, client_context

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
CONNECT = 30.0
LARGEST = 16 << 20      # bytes of one message; kubelets send at most 32 KiB
BEAT = 30.0             # seconds between pings, so that a peer that is gone is noticed


class NoStreams(Exception):
    """The server does not run commands over WebSockets."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, and where."""

    namespace: str
    pod: str
    words: Sequence[str]
    container: str = ""
    stdin: bool = False
    tty: bool = False

    @property
    def target(self) -> str:
        query = [("command", word) for word in self.words]
        query += [("container", self.container)] if self.container else []
        query += [(name, "true") for name, wanted in (("stdin", self.stdin), ("stdout", True),
                                                      ("stderr", not self.tty), ("tty", self.tty)) if wanted]
        return f"{PODS.path(self.namespace, self.pod, 'exec')}?{urlencode(query, quote_via=quote)}"


class Running:
    """A command that runs. Iterate over what it prints; then `status` says how it ended."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.status: Object = {}

    @property
    def can_end_input(self) -> bool:
        return self._socket.protocol == V5

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """STDOUT or STDERR, and what came on it."""
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel == ERROR and data:
                self.status = orjson.loads(data)
            elif channel in (STDOUT, STDERR) and data:
                yield channel, data

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(bytes([STDIN]) + data)

    async def end_input(self) -> None:
        if self.can_end_input:
            await self._socket.send_bytes(bytes([CLOSE, STDIN]))

    async def resize(self, columns: int, lines: int) -> None:
        await self._socket.send_bytes(bytes([RESIZE]) + orjson.dumps({"Width": columns, "Height": lines}))

    @property
    def exit_code(self) -> int:
        """That of the command. Raises ApiError if it could not be run, Unreachable if nobody said how it ended."""
        return exit_code(self.status)


def exit_code(status: Object) -> int:
    if status.get("status") == "Success":
        return 0
    if not status:
        raise Unreachable("the connection ended before the command did")
    if status.get("reason") == "NonZeroExitCode":
        for cause in (status.get("details") or {}).get("causes") or ():
            if cause.get("reason") == "ExitCode" and str(cause.get("message", "")).isdigit():
                return int(cause["message"])
    raise from_status(int(status.get("code") or 500), status)


@asynccontextmanager
async def running(access: Access, command: Command) -> AsyncIterator[Running]:
    """The command, until the end of the block. Raises NoStreams, Forbidden, NotFound, Unreachable."""
    headers, identity = await _credentials(access)
    tls = client_context(access.ca, identity, verify=access.verify) if access.server.startswith("https:") else True
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT)
    async with aiohttp.ClientSession(trust_env=False, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
        try:
            async with asyncio.timeout(CONNECT):      # a server may also take the connection and say nothing
                socket = await session.ws_connect(
                    access.server.rstrip("/") + command.target, protocols=(V5, V4), headers=headers, ssl=tls,
                    max_msg_size=LARGEST, heartbeat=BEAT, autoping=True, server_hostname=access.server_name or None,
                )
        except aiohttp.WSServerHandshakeError as problem:
            raise _refused(problem.status, command) from problem
        except TimeoutError as problem:
            raise Unreachable(f"exec on {access.server}: timed out") from problem
        except (aiohttp.ClientError, OSError) as problem:
            raise Unreachable(f"exec on {access.server}: {problem}") from problem
        if socket.protocol not in (V5, V4):
            await socket.close()
            raise NoStreams("the server speaks none of the protocols of exec over a WebSocket")
        try:
            yield Running(socket)
        finally:
            await socket.close()


def _refused(code: int, command: Command) -> Exception:
    """What an answer means that is no WebSocket; its body, which would say it, cannot be had."""
    if code in (401, 403):
        return Forbidden(code, "Forbidden", "it takes the right to get, on newer servers to create, pods/exec")
    if code == 404:
        inside = f" with a container {command.container}" if command.container else ""
        return NotFound(code, "NotFound", f"there is no pod {command.namespace}/{command.pod}{inside} that runs")
    return NoStreams(f"the server answered {code} to exec over a WebSocket")


async def _credentials(access: Access) -> tuple[Mapping[str, str], ClientCertificate | None]:
    token, identity = access.token, None
    if access.client_cert and access.client_key:
        identity = ClientCertificate(access.client_cert, access.client_key)
    if access.token_file is not None:
        token = access.token_file.read_text().strip()
    if access.plugin is not None:
        from trainmaster.kube.credentials import asked

        given = await asked(access.plugin, os.environ)
        token, identity = given.token or token, given.certificate or identity
    return {"authorization": f"Bearer {token}"} if token else {}, identity
