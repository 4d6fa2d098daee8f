"""The server on a socket: TLS, bearer tokens, limits; everything else is `server.ApiServer.handle`.

aiohttp's low-level server without its application layer: routing and errors are ours already. A body is read with a
limit and a time, an answer written with a time, so that a client that stalls costs a connection and nothing else. Most
bodies are there with their head: those need neither a timer nor a place in the queue.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import ClientPayloadError, web
from aiohttp.http import HttpProcessingError

from trainmaster.cluster.apiserver import bodies, compressing, failures, impersonation, layout, websockets
from trainmaster.cluster.apiserver.answers import refusal
from trainmaster.cluster.apiserver.auth import ANONYMOUS, Authenticator, Identity, certified
from trainmaster.cluster.apiserver.connecting import Tunnel, passed_on
from trainmaster.cluster.apiserver.health import NAMES as HEALTH
from trainmaster.cluster.apiserver.pace import Pace, Patience
from trainmaster.cluster.apiserver.proxying import Proxied, relayed
from trainmaster.cluster.apiserver.routing import LONGEST_QUERY, Query
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.apiserver.streaming import Streaming
from trainmaster.cluster.apiserver.whole import Whole
from trainmaster.kube.transport import Request

# Seconds a client has to send its body, and to take the next piece of a stream.
SLOWEST_BODY = 30.0
SLOWEST_READER = 60.0
LONGEST_LINE = LONGEST_QUERY + 8192
LONGEST_HEADER = 16 * 1024
# Bytes of a stream that are kept for a reader before the sender waits.
MOST_WAITING = 256 * 1024

# What aiohttp has to say; a request that is not HTTP is its sender's fault and no error of ours.
_log = logging.getLogger("trainmaster.http")
_log.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that accepts connections."""

    port: int
    runner: web.ServerRunner

    async def stop(self) -> None:
        """Accept nothing more, end what is open."""
        await self.runner.cleanup()


async def serve(server: ApiServer, tokens: Authenticator, ssl_context: ssl.SSLContext, host: str = "127.0.0.1",
                port: int = 0) -> Listening:
    """Listen. Raises OSError when the address is taken."""
    server.recognise(tokens.identify)
    front = web.Server(_Front(server, tokens).answer, access_log=None, handler_cancellation=True, tcp_keepalive=True,
                       max_line_size=LONGEST_LINE, max_field_size=LONGEST_HEADER, logger=_log,
                       auto_decompress=False)      # a few bytes could become gigabytes before anybody counts them
    runner = web.ServerRunner(front, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=ssl_context)
    await site.start()
    return Listening(runner.addresses[0][1], runner)


class _Front:
    def __init__(self, server: ApiServer, tokens: Authenticator) -> None:
        self._server = server
        self._tokens = tokens
        self._pace = Pace()

    def _identified(self, incoming: web.BaseRequest) -> Identity | None:
        """By certificate, by a token that was given out, by the token of an account; in the order of Kubernetes."""
        if (certificate := incoming.get_extra_info("peercert")) and (who := certified(certificate)) is not None:
            return who
        header = incoming.headers.get("Authorization", "")
        if not header or (who := self._tokens.identify(header)) is not None:
            return who if header else None
        scheme, _, token = header.partition(" ")
        found = self._server.accounts.identify(token.strip()) if scheme.lower() == "bearer" else None
        return None if found is None else found[0]

    async def answer(self, incoming: web.BaseRequest) -> web.StreamResponse:
        url = incoming.rel_url
        path = url.raw_path
        who = self._identified(incoming)
        if who is None and path.strip("/").partition("/")[0] in HEALTH:
            who = ANONYMOUS
        if who is None:
            return Whole(refusal(failures.unauthorized()))
        try:
            body = await self._body(incoming, path)
        except failures.Failure as failure:
            return Whole(refusal(failure), close=True)
        headers = _together(incoming.headers.items())
        query = tuple(url.query.items()) if url.raw_query_string else ()
        found = await self._server.handle(Request(incoming.method, path, query, headers, body), who)
        if isinstance(found, Tunnel | Proxied):
            try:
                return await (passed_on(incoming, found) if isinstance(found, Tunnel) else relayed(incoming, found))
            except failures.Failure as failure:
                return Whole(refusal(failure))
        if isinstance(found, Streaming) and websockets.wanted(headers, found):
            return await websockets.sent(incoming, found, SLOWEST_READER)
        if isinstance(found, Streaming):
            packs = found.ends and compressing.wanted(headers, path, near=_near(incoming))
            return await self._streamed(incoming, await compressing.pieces(found) if packs else found)
        if path.startswith("/api") and layout.in_lines(headers, Query(query)):
            found = layout.laid_out(found)
        packs = len(found.body) > compressing.LONGEST_PLAIN and compressing.wanted(headers, path, near=_near(incoming))
        return Whole(compressing.whole(found) if packs else found)

    async def _body(self, incoming: web.BaseRequest, path: str) -> bytes:
        """Raises Failure 408, 413 or 429."""
        if not incoming.body_exists:
            return b""
        if (incoming.content_length or 0) > bodies.MOST_BYTES:
            raise failures.too_large(bodies.MOST_BYTES)
        if incoming.content.is_eof() and incoming.content.exception() is None:
            found = incoming.content.read_nowait()
            if len(found) > bodies.MOST_BYTES:
                raise failures.too_large(bodies.MOST_BYTES)
            return found
        with self._server.traffic.slot(path):      # a body takes memory from its first byte on
            return await _awaited(incoming)

    async def _streamed(self, incoming: web.BaseRequest, stream: Streaming) -> web.StreamResponse:
        response = web.StreamResponse(status=stream.status, headers=_headers(stream.headers))
        if stream.length is None:
            response.enable_chunked_encoding()
        else:
            response.content_length = stream.length
        transport = incoming.transport
        if transport is None:                      # the client went before it was answered
            await stream.close()
            return response
        transport.set_write_buffer_limits(high=MOST_WAITING)
        if stream.tempo is not None:
            stream.tempo.rest = self._pace.rest
        patience = Patience(SLOWEST_READER, transport.abort)
        try:
            patience.begin()
            await response.prepare(incoming)
            patience.end()
            if incoming.method != "HEAD":
                await self._send(stream, response, patience)
            with suppress(ConnectionError):
                await response.write_eof()
        except ConnectionError:
            response.force_close()
            transport.abort()
        finally:
            patience.stop()
            await stream.close()
        return response

    async def _send(self, stream: Streaming, response: web.StreamResponse, patience: Patience) -> None:
        async for chunk in stream.chunks():
            began = time.perf_counter()
            patience.begin()
            await response.write(chunk)
            patience.end()
            if stream.tempo is not None:
                self._pace.told(time.perf_counter() - began)


async def _awaited(incoming: web.BaseRequest) -> bytes:
    """Raises Failure 413 or 408."""
    found = bytearray()
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            async for chunk in incoming.content.iter_any():
                found += chunk
                if len(found) > bodies.MOST_BYTES:
                    raise failures.too_large(bodies.MOST_BYTES)
    except TimeoutError as error:
        raise failures.Failure(408, "Timeout", "the body of the request did not arrive in time") from error
    except (HttpProcessingError, ClientPayloadError, web.RequestPayloadError) as error:
        raise failures.bad_request(f"the body of the request is broken: {str(error)[:100]}") from error
    return bytes(found)


def _near(incoming: web.BaseRequest) -> bool:
    """Whether the client is on this machine: it then comes from the address that it goes to."""
    ends = [incoming.get_extra_info(end) for end in ("peername", "sockname")]
    return any(end is None for end in ends) or ends[0][0] == ends[1][0]


def _together(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By lower-case name. The last of several counts, but for those of an impersonation, where all do."""
    found: dict[str, str] = {}
    for given, value in pairs:
        name = given.lower()
        again = name in found and name.startswith(impersonation.PREFIX)
        found[name] = f"{found[name]}{impersonation.SEPARATOR}{value}" if again else value
    return found


def _headers(found: Mapping[str, str]) -> dict[str, str]:
    return {"Server": "trainmaster", "Cache-Control": "no-cache, private", **found}
