"""HTTP of pods, services and nodes through the API server: `…/proxy/PATH`, WebSockets included.

The server finds the address and has the node open a connection to it; then it sends the request on, without the
client's credentials, and gives back the answer byte for byte, but for the links of pages (`rewriting`). Each has
a connection of its own, which the answer closes: reusing them would save a millisecond and cost the bookkeeping of who
may speak on which.
"""

import asyncio
import contextlib
import random
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from aiohttp import web

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import failures, rewriting
from trainmaster.cluster.apiserver.connecting import Reach
from trainmaster.cluster.apiserver.dialling import dialled
from trainmaster.cluster.apiserver.routing import Place
from trainmaster.kube.transport import Request
from trainmaster.runtime.takeover import PIECE, joined, pump, taken

_PATIENCE = 30.0
# For what is behind the connection to begin its answer. A real server waits as long as its client does; this long, no
# client does, and what never answers may not keep a connection for good.
_LONGEST_THOUGHT = 600.0
_LARGEST_PAGE = 4 << 20      # bytes; the links of a larger one stay as they are
# Between the client and us, or ours to say.
_NOT_PASSED_ON = frozenset({
    "authorization", "connection", "content-length", "cookie", "expect", "host", "keep-alive", "proxy-authorization",
    "te", "trailer", "transfer-encoding", "upgrade",
})
_OF_THE_BODY = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})
# What of a node's own API may be looked at. The rest of it changes things, or has a way in of its own.
_OF_NODES = ("/healthz", "/pods", "/containerLogs/", "/containerFiles/", "/formerPods/", "/metrics", "/stats/")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A name as this path takes it: `[scheme:]name[:port]`."""

    name: str
    port: str = ""
    scheme: str = "http"


@dataclass(frozen=True, slots=True)
class Proxied:
    """An answer that somebody else gives."""

    node: str
    address: str             # behind the node; empty: the node itself is meant
    port: int
    scheme: str
    host: str
    path: str                # path and query over there
    prefix: str              # what stands before the path here
    body: bytes
    reach: Reach
    status: int = 200
    patience: float = _LONGEST_THOUGHT


def wanted(given: str) -> Wanted:
    """Raises Failure 400."""
    parts = given.split(":")
    if len(parts) == 1:
        return Wanted(parts[0])
    if len(parts) == 2:
        return Wanted(parts[0], parts[1])
    if len(parts) == 3 and parts[0] in {"", "http", "https"}:
        return Wanted(parts[1], parts[2], parts[0] or "http")
    raise failures.bad_request(f"invalid name for a proxy: {given[:100]!r}")


def upgrades(headers: Mapping[str, str]) -> bool:
    return "upgrade" in headers.get("connection", "").lower()


def with_slash(request: Request) -> str:
    """Where the root of what is over there is, so that links in it lead somewhere."""
    return f"{request.path}/" + (f"?{urlencode(list(request.query))}" if request.query else "")


def way(
    place: Place, asked: Wanted, thing: Object, endpoints: Object | None, request: Request, reach: Reach | None
) -> Proxied:
    """The way to what is meant. Raises Failure 400 or 503."""
    if reach is None:
        raise failures.unavailable("this server has no way to reach a node")
    query = f"?{urlencode(list(request.query), quote_via=quote)}" if request.query else ""
    path, prefix = (place.rest or "/") + query, request.path.removesuffix(place.rest)
    if place.plural == "nodes":
        if request.method not in {"GET", "HEAD"} or upgrades(request.headers) or not path.startswith(_OF_NODES):
            raise failures.Failure(403, "Forbidden", "only " + ", ".join(_OF_NODES) + " of a node can be read here")
        return Proxied(asked.name, "", 0, "http", "kubelet", path, prefix, b"", reach)
    if place.plural == "services":
        node, address, port = _backend(thing, endpoints or {}, asked)
    else:
        node, address, port = _of_pod(thing, asked)
    where = f"{address}:{port}"
    return Proxied(node, address, port, asked.scheme, where, path, prefix, request.body, reach)


def _of_pod(pod: Object, asked: Wanted) -> tuple[str, str, int]:
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        raise failures.Failure(503, "ServiceUnavailable", f"pod {asked.name} has no address yet")
    ports = [port for container in pod["spec"].get("containers") or () for port in container.get("ports") or ()]
    if not asked.port:
        found = int(ports[0]["containerPort"]) if ports else 80
    elif asked.port.isdecimal():
        found = int(asked.port)
    else:
        named = [int(port["containerPort"]) for port in ports if port.get("name") == asked.port]
        found = named[0] if named else 0
    if not 0 < found < 65536:
        raise failures.bad_request(f"pod {asked.name} has no port {asked.port!r}")
    return str(pod["spec"].get("nodeName") or ""), str(address), found


def _backend(service: Object, endpoints: Object, asked: Wanted) -> tuple[str, str, int]:
    """Any of the ready ones."""
    ports = service["spec"].get("ports") or []
    chosen = [port for port in ports if asked.port in {str(port.get("port")), port.get("name") or ""}] \
        if asked.port else ports[:1] if len(ports) == 1 else []
    if not chosen:
        raise failures.Failure(503, "ServiceUnavailable", f"no port {asked.port!r} of service {asked.name!r}"
                               if asked.port else f"service {asked.name!r} has several ports: say which")
    name = chosen[0].get("name") or ""
    found = [
        (str(address.get("nodeName") or ""), str(address["ip"]), int(port["port"]))
        for subset in endpoints.get("subsets") or () for port in subset.get("ports") or ()
        if (port.get("name") or "") == name for address in subset.get("addresses") or ()
    ]
    if not found:
        raise failures.Failure(503, "ServiceUnavailable", f"no endpoints available for service {asked.name!r}")
    return random.choice(found)  # noqa: S311  no secret


async def relayed(incoming: web.BaseRequest, found: Proxied) -> web.StreamResponse:
    """Send the request on and its answer back. Raises Failure while there is no answer."""
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await _opened(found)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
        raise failures.Failure(503, "ServiceUnavailable",
                               f"error trying to reach service: {str(error)[:200]}") from error
    try:
        writer.write(_request(incoming, found))
        try:
            async with asyncio.timeout(found.patience):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError as error:
            raise failures.Failure(504, "Timeout", "Timeout: the request was passed on, and nothing came back for "
                                   f"{found.patience:.0f}s") from error
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise failures.Failure(503, "ServiceUnavailable", "error trying to reach service: it gave no answer, or "
                                   "one that is no HTTP") from error
        theirs, ours = taken(incoming)
        upgraded = head.split(b" ", 2)[1:2] == [b"101"]
        if not upgraded and _is_page(head):
            head, page = await _rewritten(head, reader, found)
            ours.write(_answer(head, found, closes=True) + page)
        else:
            ours.write(_answer(head, found, closes=not upgraded))
        if upgraded:
            await joined(theirs, ours, reader, writer)
        else:
            with contextlib.closing(ours):
                await pump(reader, ours)
    except ConnectionResetError:
        return web.Response()
    finally:
        writer.close()
    return web.Response()


async def _opened(found: Proxied) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if not found.address:
        return await found.reach(found.node)
    reader, writer = await dialled(found.reach, found.node, found.address, found.port)
    try:
        if found.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE      # a pod's own certificate
            await writer.start_tls(context, server_hostname=None)
    except BaseException:      # whoever is cancelled meanwhile leaves no connection behind
        writer.close()
        raise
    return reader, writer


def _request(incoming: web.BaseRequest, found: Proxied) -> bytes:
    upgrade = incoming.headers.get("Upgrade", "") if upgrades({"connection": incoming.headers.get("Connection", "")}) \
        else ""
    lines = [f"{incoming.method} {found.path} HTTP/1.1", f"Host: {found.host}",
             f"Connection: {'Upgrade' if upgrade else 'close'}", *([f"Upgrade: {upgrade}"] if upgrade else [])]
    lines += [f"{name}: {value}" for name, value in incoming.headers.items() if name.lower() not in _NOT_PASSED_ON]
    if found.body or incoming.method not in {"GET", "HEAD", "DELETE", "OPTIONS"}:
        lines.append(f"Content-Length: {len(found.body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + found.body


def _is_page(head: bytes) -> bool:
    return _field(head, b"content-type").lower().startswith(b"text/html")


def _field(head: bytes, name: bytes) -> bytes:
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return next((value.strip() for key, _, value in lines if key.strip().lower() == name), b"")


async def _rewritten(head: bytes, reader: asyncio.StreamReader, found: Proxied) -> tuple[bytes, bytes]:
    """The head and what there is of a page, with its links changed if that can be done to it."""
    raw = bytearray()
    with contextlib.suppress(ConnectionError):
        while len(raw) <= _LARGEST_PAGE and (piece := await reader.read(PIECE)):
            raw += piece
    chunked = _field(head, b"transfer-encoding").lower() == b"chunked"
    body = rewriting.joined(bytes(raw)) if chunked else bytes(raw)
    plain = rewriting.unpacked(body, _field(head, b"content-encoding").decode("latin-1").lower()) if body else None
    if plain is None or len(raw) > _LARGEST_PAGE:
        return head, bytes(raw)
    page = rewriting.page(plain.decode("latin-1"), found.prefix, found.host).encode("latin-1", "replace")
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _OF_THE_BODY]
    return b"\r\n".join([first, *kept, b"Content-Length: %d" % len(page)]) + b"\r\n\r\n", page


def _answer(head: bytes, found: Proxied, *, closes: bool) -> bytes:
    """The head of an answer as the client gets it: places over there are below ours, and the connection ends."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = []
    for line in lines:
        name, _, value = line.partition(b":")
        if closes and name.strip().lower() in {b"connection", b"keep-alive"}:
            continue
        if name.strip().lower() == b"location":
            there = rewriting.location(value.strip().decode("latin-1"), found.prefix, found.host)
            line = b"Location: " + there.encode("latin-1", "replace")
        kept.append(line)
    return b"\r\n".join([first, *kept, *([b"Connection: close"] if closes else [])]) + b"\r\n\r\n"
