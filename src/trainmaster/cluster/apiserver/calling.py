"""Calls of webhooks over HTTPS: whom to call, within which bounds, and what is said when it did not work.

A webhook is a program of somebody else. It gets one POST and its own time, may answer with so many bytes, may not send
us elsewhere, and must show a certificate that its configuration trusts. Sessions and connections are kept, one pool for
all. What goes wrong is told in Go's words where there are such: they are what people know and search for.
"""

import asyncio
import errno
import ipaddress
import os
import random
import socket
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import aiohttp
import orjson
from yarl import URL

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import bodies
from trainmaster.cluster.apiserver.connecting import Reach
from trainmaster.cluster.apiserver.dialling import dialled, posted
from trainmaster.cluster.apiserver.matching import Hook, Service
from trainmaster.cluster.apiserver.reviews import Broken
from trainmaster.kube.tls import client_context

MOST_BYTES = 3 * 1024 * 1024
# What of an answer that is no answer is quoted.
MOST_QUOTED = 200
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, */*", "Accept-Encoding": "identity",
            "User-Agent": "trainmaster-apiserver-admission"}
# As client-go puts them; any other code is a server error of unknown kind.
_SAID = {
    401: "the server has asked for the client to provide credentials",
    403: "forbidden",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
}
_UNTRUSTED = frozenset({2, 18, 19, 20, 21})      # OpenSSL's numbers for an issuer that nobody vouches for
_EXPIRED, _NOT_YET, _OTHER_HOST, _OTHER_ADDRESS = 10, 9, 62, 64


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a webhook is reached: what is dialled, and who must answer there."""

    url: URL
    node: str = ""                      # whose node leads there; empty: it is dialled from here
    server_name: str | None = None      # if the certificate is for another name than the one that is dialled
    said: str = ""                      # the URL as people know it


class Unresolved(Exception):
    """A Service that leads nowhere, and why."""


class Find(Protocol):
    """From a Service to an address, a port and, if it is a pod's, the node of that."""

    def __call__(self, service: Service, *, pods: bool) -> tuple[str, int, str]:
        """Raises Unresolved."""


class Calls:
    """The client side of all webhooks. `reach` opens connections to nodes, where there is a way to them."""

    def __init__(self, find: Find, reach: Reach | None = None) -> None:
        self._find = find
        self._reach = reach
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, hook: Hook, review: bytes, seconds: float) -> Json:
        """The answer of a webhook. Raises Broken."""
        place = self.destination(hook)
        context = _context(hook.authority)
        try:
            status, body = await self._post(place, review, context, seconds)
        except (aiohttp.ClientError, OSError, EOFError, ValueError) as error:
            raise Broken(f'failed to call webhook: Post "{place.said}": {_cause(error, place)}') from error
        if not 200 <= status <= 206:
            raise Broken(f"failed to call webhook: {_complaint(status, body)}")
        return _read(body)

    async def close(self) -> None:
        """Calls under way fail."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def destination(self, hook: Hook) -> Destination:
        """Raises Broken."""
        query = f"timeout={hook.seconds}s"
        if hook.service is None:
            said = f"{hook.url}?{query}"
            try:
                return Destination(URL(hook.url).with_query(query), said=said)
            except ValueError as error:      # a host that is none; what is stored is judged by other rules
                raise Broken(f'failed to call webhook: Post "{said}": {str(error)[:MOST_QUOTED]}') from error
        service = hook.service
        name = f"{service.name}.{service.namespace}.svc"
        said = f"https://{name}:{service.port}{service.path}?{query}"
        try:
            host, port, node = self._find(service, pods=self._reach is not None)
        except Unresolved as error:
            raise Broken(f'failed to call webhook: Post "{said}": {error}') from error
        url = URL.build(scheme="https", host=host, port=port, path=service.path, query_string=query)
        return Destination(url, node, name, said)

    async def _post_inside(self, place: Destination, review: bytes, context: ssl.SSLContext) -> tuple[int, bytes]:
        """To a pod. Each call has a connection of its own: who it is may be another the next time."""
        assert self._reach is not None
        name = str(place.server_name)
        lines = [f"POST {place.url.raw_path_qs} HTTP/1.1", f"Host: {name}", "Connection: close",
                 f"Content-Length: {len(review)}", *(f"{key}: {value}" for key, value in _HEADERS.items())]
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        connection = await dialled(self._reach, place.node, str(place.url.host), int(place.url.port or 0))
        return await posted(connection, context, name, head, review, MOST_BYTES)

    async def _post(self, place: Destination, review: bytes, context: ssl.SSLContext, seconds: float
                    ) -> tuple[int, bytes]:
        if place.node:
            async with asyncio.timeout(seconds):
                return await self._post_inside(place, review, context)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False,
                auto_decompress=False)      # a few bytes could become gigabytes before anybody counts them
        headers = _HEADERS if place.server_name is None else {**_HEADERS, "Host": place.server_name}
        async with self._session.post(
            place.url, data=review, headers=headers, ssl=context, server_hostname=place.server_name,
            allow_redirects=False, timeout=aiohttp.ClientTimeout(total=seconds),
        ) as answer:
            found = bytearray()
            async for chunk in answer.content.iter_any():
                found += chunk
                if len(found) > MOST_BYTES:
                    raise ValueError(f"the answer is larger than {MOST_BYTES} bytes")
            return answer.status, bytes(found)


def endpoint(
    service: Object | None, endpoints: Object | None, wanted: Service, *, pods: bool
) -> tuple[str, int, str]:
    """An address and port that serve a port of a Service, outside of the cluster's network if there is one; else those
    of a pod, and its node, if `pods` can be reached. Raises Unresolved."""
    if service is None:
        raise Unresolved(f'service "{wanted.name}" not found')
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName")), wanted.port, ""
    port = next((port for port in spec.get("ports") or () if port.get("port") == wanted.port), None)
    if port is None:
        raise Unresolved(f'no service port {wanted.port} found for service "{wanted.name}"')
    inside: list[tuple[str, int, str]] = []
    for subset in (endpoints or {}).get("subsets") or ():
        number = next((each.get("port") for each in subset.get("ports") or ()
                       if (each.get("name") or "") == (port.get("name") or "")), None)
        for address in subset.get("addresses") or () if number else ():
            if (address.get("targetRef") or {}).get("kind") != "Pod":
                return str(address.get("ip")), int(number or 0), ""
            inside.append((str(address.get("ip")), int(number or 0), str(address.get("nodeName") or "")))
    if reachable := [one for one in inside if one[2] and pods]:
        return random.choice(reachable)  # noqa: S311  no secret
    if inside:
        raise Unresolved(f'service "{wanted.name}" leads to pods, whose network this server cannot reach: serve the '
                         "webhook on this machine and name it by a url, or by Endpoints with an address of the machine")
    raise Unresolved(f'no endpoints available for service "{wanted.name}"')


@lru_cache(maxsize=256)
def _trusted(authority: bytes) -> ssl.SSLContext:
    return client_context(authority or None, None)


def _context(authority: bytes) -> ssl.SSLContext:
    """Raises Broken."""
    try:
        return _trusted(authority)
    except ValueError as error:
        raise Broken("could not get REST client: unable to load root certificates: unable to parse bytes as PEM "
                     "block") from error


def _read(body: bytes) -> Json:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Broken(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from error
    if bodies.depth(found) > bodies.DEEPEST:
        raise Broken(f"failed to call webhook: the answer is nested more than {bodies.DEEPEST} levels deep")
    return found


def _complaint(status: int, body: bytes) -> str:
    """What an answer with an error code says: its own Status, else what its code means."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        said = None
    if isinstance(said, dict) and said.get("kind") == "Status" and said.get("message"):
        return str(said["message"])[:MOST_QUOTED]
    if 300 <= status < 400:
        return f"it answered with a redirect ({status}), which is not followed"
    if status in _SAID:
        return _SAID[status]
    text = body[:MOST_QUOTED].decode("utf-8", "replace").strip() or "unknown"
    if status < 500:
        return f"the server responded with the status code {status} but did not return more information ({text})"
    return f'an error on the server ("{text}") has prevented the request from succeeding'


def _cause(error: Exception, place: Destination) -> str:
    dialled = f"dial tcp {place.url.host}:{place.url.port}"
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _distrust(error.certificate_error, place)
        case TimeoutError():
            return "context deadline exceeded"
        case ssl.SSLCertVerificationError():
            return _distrust(error, place)
        case ssl.SSLError():
            return f"tls: {error.strerror or 'handshake failure'}"
        case EOFError():
            return "EOF"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {place.url.host}: no such host"
        case aiohttp.ClientConnectorSSLError():
            return f"tls: {error.os_error.strerror or 'handshake failure'}"
        case aiohttp.ClientConnectorError():
            return f"{dialled}: connect: {_words(error.os_error)}"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "EOF"
        case OSError():
            return _words(error)
    return f"{str(error)[:MOST_QUOTED] or type(error).__name__}"


def _words(error: OSError) -> str:
    if isinstance(error, socket.gaierror) or not error.errno:
        return str(error.strerror or error)[:MOST_QUOTED]
    return "no route to host" if error.errno == errno.EHOSTUNREACH else os.strerror(error.errno).lower()


def _distrust(error: Exception, place: Destination) -> str:
    number = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0
    name = place.server_name or str(place.url.host)
    if number in _UNTRUSTED:
        why = "certificate signed by unknown authority"
    elif number in {_EXPIRED, _NOT_YET}:
        why = "certificate has expired or is not yet valid"
    elif number == _OTHER_ADDRESS or (number == _OTHER_HOST and _is_address(name)):
        why = f"cannot validate certificate for {name} because it doesn't contain any IP SANs"
    elif number == _OTHER_HOST:
        why = f"certificate is not valid for {name}"
    else:
        why = str(error)[:MOST_QUOTED]
    return f"tls: failed to verify certificate: x509: {why}"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
