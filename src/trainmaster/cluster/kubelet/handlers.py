"""Asking a container something: what probes and lifecycle hooks do, each way of it one function.

The agent lives in the host's network and pods do not, so every connection is made over a socket that the helper made in
the cluster's network: a socket stays where it was made, whoever connects it. Sentences are the kubelet's, because
people search for them.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from trainmaster.api.core import RELEASE
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.records import Failed

AGENT = f"kube-probe/{RELEASE}"
MOST_READ = 10 * 1024
MOST_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)


class Unable(Exception):
    """The question could not be put, so there is no answer to count."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a container said."""

    well: bool
    text: str = ""
    warning: str = ""        # it counts as well, and yet somebody should know


@dataclass(frozen=True, slots=True)
class Target:
    """A running container and the ways to it."""

    container: Object
    address: str
    # (argv, seconds) -> exit code and output; raises Failed, TimeoutError
    run: Callable[[Sequence[str], float], Awaitable[tuple[int, bytes]]]
    open_socket: Callable[[], Awaitable[socket.socket]]       # a TCP socket in the cluster's network


async def ask(target: Target, handler: Object, timeout: float) -> Answer:
    """Put one question. Raises Unable."""
    try:
        if found := handler.get("exec"):
            return await _exec(target, found, timeout)
        if found := handler.get("httpGet"):
            return await _http(target, found, timeout)
        if found := handler.get("tcpSocket"):
            return await _tcp(target, found, timeout)
        if found := handler.get("grpc"):
            return await _grpc(target, found, timeout)
    except Failed as failed:
        raise Unable(str(failed)) from failed
    raise Unable(f"missing probe handler for {target.container['name']}")


async def run_hook(target: Target, hook: Object, timeout: float) -> None:
    """Do what a lifecycle hook says. Raises Unable with what went wrong."""
    if found := hook.get("sleep"):
        seconds = float(found.get("seconds") or 0)
        await asyncio.sleep(min(seconds, timeout))
        return
    if found := hook.get("exec"):
        answer = await _caught(_exec(target, found, timeout))
        if not answer.well:
            raise Unable(f"command {found.get('command')} failed: {answer.text}")
        return
    if found := hook.get("httpGet"):
        url, headers = _request(target, found)
        try:
            async with asyncio.timeout(timeout):
                await _get(target, url, headers)       # an answer is enough, whatever it says
        except TimeoutError as error:
            raise Unable(f'Get "{url}": context deadline exceeded') from error
        except (OSError, aiohttp.ClientError, Failed) as error:
            raise Unable(_http_trouble(url, error)) from error
        return
    raise Unable("missing handler")


async def _caught(answer: Awaitable[Answer]) -> Answer:
    try:
        return await answer
    except Failed as failed:
        raise Unable(str(failed)) from failed


def port_of(container: Object, wanted: object) -> int:
    """A port by number, or by its name among the container's. Raises Unable."""
    if isinstance(wanted, int) or str(wanted).isdecimal():
        found = int(str(wanted))
    else:
        named = {str(port.get("name")): int(port["containerPort"]) for port in container.get("ports") or ()}
        if wanted not in named:
            raise Unable(f"couldn't find port: {str(wanted)!r} in container {container['name']}")
        found = named[str(wanted)]
    if not 0 < found < 65536:
        raise Unable(f"invalid port number: {found}")
    return found


async def _exec(target: Target, spec: Object, timeout: float) -> Answer:
    argv = [str(word) for word in spec.get("command") or ()]
    try:
        code, output = await target.run(argv, timeout)
    except TimeoutError:
        return Answer(False, f'command timed out: "{" ".join(argv)}" timed out after {timeout:g}s')
    return Answer(code == 0, output[:MOST_READ].decode(errors="replace"))


async def _tcp(target: Target, spec: Object, timeout: float) -> Answer:
    host, port = str(spec.get("host") or target.address), port_of(target.container, spec.get("port"))
    try:
        async with asyncio.timeout(timeout):
            (await connected(target, host, port)).close()
    except TimeoutError:
        return Answer(False, f"dial tcp {host}:{port}: i/o timeout")
    except OSError as error:
        return Answer(False, dial_trouble(host, port, error))
    return Answer(True)


async def _grpc(target: Target, spec: Object, timeout: float) -> Answer:
    from trainmaster.cluster.kubelet import grpchealth  # HTTP/2 is for the few who ask so

    port = port_of(target.container, spec.get("port"))
    where = f"{target.address}:{port}"
    try:
        async with asyncio.timeout(timeout):
            try:
                stream = await connected(target, target.address, port)
            except OSError as error:
                trouble = dial_trouble(target.address, port, error)
                return Answer(False, f'error: failed to connect service at "{where}": {trouble}')
            return Answer(*await grpchealth.check(stream, where, str(spec.get("service") or "")))
    except TimeoutError:
        return Answer(False, f'timeout: failed to connect service "{where}" within {timeout:g}s: '
                             "context deadline exceeded")


async def connected(target: Target, host: str, port: int) -> socket.socket:
    """A connection inside the cluster's network."""
    stream = await target.open_socket()
    try:
        await asyncio.get_running_loop().sock_connect(stream, (host, port))
    except BaseException:
        stream.close()
        raise
    return stream


def dial_trouble(host: str, port: int, error: OSError) -> str:
    if error.errno is not None and error.errno in errno.errorcode:
        return f"dial tcp {host}:{port}: connect: {os.strerror(error.errno).lower()}"
    return f"dial tcp {host}:{port}: {error}"


async def _http(target: Target, spec: Object, timeout: float) -> Answer:
    url, headers = _request(target, spec)
    try:
        async with asyncio.timeout(timeout):
            for _ in range(MOST_REDIRECTS):
                status, body, location = await _get(target, url, headers)
                if not location:
                    break
                if URL(location).host != url.host:
                    return Answer(True, warning=f"Probe terminated redirects, Response body: {body}")
                url = URL(location)
            else:
                return Answer(False, f'Get "{url}": stopped after {MOST_REDIRECTS} redirects')
    except TimeoutError:
        return Answer(False, f'Get "{url}": context deadline exceeded '
                             "(Client.Timeout exceeded while awaiting headers)")
    except (OSError, aiohttp.ClientError) as error:
        return Answer(False, _http_trouble(url, error))
    if 200 <= status < 400:
        return Answer(True, body)
    return Answer(False, f"HTTP probe failed with statuscode: {status}")


def _request(target: Target, spec: Object) -> tuple[URL, CIMultiDict[str]]:
    host, port = str(spec.get("host") or target.address), port_of(target.container, spec.get("port"))
    scheme = str(spec.get("scheme") or "HTTP").lower()
    path = "/" + str(spec.get("path") or "").lstrip("/")
    headers: CIMultiDict[str] = CIMultiDict({"User-Agent": AGENT, "Accept": "*/*", "Connection": "close"})
    given = [(str(one.get("name")), str(one.get("value") or "")) for one in spec.get("httpHeaders") or ()]
    for name, _ in given:
        headers.popall(name, None)
    for name, value in given:
        if value or name.lower() not in ("accept", "user-agent"):      # an empty one of these means: do not send it
            headers.add(name, value)
    return URL(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}{path}", encoded=True), headers


async def _get(target: Target, url: URL, headers: CIMultiDict[str]) -> tuple[int, str, str]:
    """Status, beginning of the body, and where it redirects to."""
    stream = await target.open_socket()
    # One connection, over the socket that was made for it. A certificate proves nothing here and is not looked at.
    connector = aiohttp.TCPConnector(
        socket_factory=lambda _: stream, force_close=True, ssl=False, family=socket.AF_INET, limit=1
    )
    try:
        async with aiohttp.ClientSession(
            connector=connector, auto_decompress=False, skip_auto_headers=("Accept-Encoding", "User-Agent", "Accept")
        ) as session, session.get(url, headers=headers, allow_redirects=False) as response:
            body = (await response.content.read(MOST_READ)).decode(errors="replace")
            location = response.headers.get("Location", "") if response.status in _REDIRECTS else ""
            return response.status, body, urljoin(str(url), location) if location else ""
    finally:
        stream.close()


def _http_trouble(url: URL, error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return f'Get "{url}": {dial_trouble(url.host or "", url.port or 0, error.os_error)}'
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return f'Get "{url}": EOF'
    if isinstance(error, aiohttp.ClientPayloadError):
        return f'Get "{url}": unexpected EOF'
    return f'Get "{url}": {error}'
