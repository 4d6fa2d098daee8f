"""Requests that become connections: exec, attach and port-forward, passed on to the node that runs the pod.

The server decides whether the client may and where it leads; from the upgrade on it only moves bytes. Which protocol
they are in (WebSocket, SPDY) is between the client and the node, as in Kubernetes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote, urlencode

from aiohttp import web
from multidict import CIMultiDict

from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver import failures
from trainmaster.cluster.apiserver.logs import container_of
from trainmaster.cluster.apiserver.routing import Query
from trainmaster.runtime.takeover import PIECE, joined, upgraded

Reach: TypeAlias = Callable[[str], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

EXEC = Resource("", "v1", "podexecoptions", "PodExecOptions")
ATTACH = Resource("", "v1", "podattachoptions", "PodAttachOptions")
PORT_FORWARD = Resource("", "v1", "podportforwardoptions", "PodPortForwardOptions")
# Seconds in which a node must answer. The command itself is started only after the upgrade.
_PATIENCE = 30.0
_MOST_SAID = 4096
_HOP = frozenset({"authorization", "host", "content-length", "transfer-encoding", "cookie"})
# The API's names for the streams, and the kubelet's.
_STREAMS = (("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty"))


@dataclass(frozen=True, slots=True)
class Tunnel:
    """An answer that is a connection to a node."""

    node: str
    target: str                  # path and query on the node
    reach: Reach
    status: int = 101


def options(subresource: str, query: Query) -> tuple[Resource, Object]:
    """What is asked for, as the object that webhooks are shown. Raises Failure 400."""
    if subresource == "portforward":
        said = (port for given in query.all("ports") for port in given.split(","))
        ports = [int(port) for port in said if port.isascii() and port.isdigit() and len(port) < 10]
        return PORT_FORWARD, {"ports": ports} if ports else {}
    found: Object = {name: query.flag(name) for name, _ in _STREAMS if query.flag(name)}
    if query.text("container"):
        found["container"] = query.text("container")
    if subresource == "exec":
        return EXEC, {**found, "command": query.all("command")}
    return ATTACH, found


def tunnel(pod: Object, subresource: str, query: Query, reach: Reach | None) -> Tunnel:
    """The way to the pod. Raises Failure 400 or 503."""
    meta, node = pod["metadata"], (pod.get("spec") or {}).get("nodeName")
    if subresource == "portforward":
        place, asked = "portForward", [("port", port) for given in query.all("ports") for port in given.split(",")]
        container = ""
    else:
        container = "/" + container_of(pod, query.text("container"))
        place = subresource
        asked = [(theirs, "1") for ours, theirs in _STREAMS if query.flag(ours)]
        asked += [("command", word) for word in query.all("command")] if subresource == "exec" else []
    if not node:
        raise failures.bad_request(f"pod {meta['name']} does not have a host assigned")
    if reach is None:
        raise failures.unavailable("this server has no way to reach a node")
    path = quote(f"/{place}/{meta['namespace']}/{meta['name']}{container}")
    return Tunnel(str(node), f"{path}?{urlencode(asked, quote_via=quote)}" if asked else path, reach)


async def passed_on(incoming: web.BaseRequest, way: Tunnel) -> web.StreamResponse:
    """Connect a client with the node until either is done. Raises Failure when the node does not upgrade."""
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await way.reach(way.node)
    except (OSError, TimeoutError) as error:
        raise failures.unavailable(f"node {way.node} cannot be reached: {str(error)[:200]}") from error
    try:
        try:
            async with asyncio.timeout(_PATIENCE):
                writer.write(_head(incoming, way.target))
                status, headers = await answer_of(reader)
                if status != 101:
                    raise await complaint(status, headers, reader)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
            raise failures.unavailable(f"node {way.node} gave no answer: {str(error)[:200]}") from error
        await joined(*upgraded(incoming, headers), reader, writer)
    except ConnectionResetError:
        return web.Response()
    finally:
        writer.close()
    return web.Response()


def _head(incoming: web.BaseRequest, target: str) -> bytes:
    lines = [f"{incoming.method} {target} HTTP/1.1", "Host: kubelet"]
    lines += [f"{name}: {value}" for name, value in incoming.headers.items() if name.lower() not in _HOP]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, CIMultiDict[str]]:
    """The head of an HTTP answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers: CIMultiDict[str] = CIMultiDict()
    for line in head[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers.add(name.strip(), value.strip())
    return int(head[0].split()[1]), headers


async def complaint(status: int, headers: CIMultiDict[str], reader: asyncio.StreamReader) -> failures.Failure:
    """What a node says instead of upgrading."""
    size = min(_MOST_SAID, int(headers.get("Content-Length", "0")), PIECE)
    said = (await reader.readexactly(size)).decode("utf-8", "replace").strip()
    code = status if 400 <= status < 500 else 500
    reason = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 500: "InternalError"}.get(code, "")
    return failures.Failure(code, reason, said or f"the node answered {status}")
