"""Looking into containers: exec, attach and port-forward, as the kubelet serves them to the API server.

Who may do so was decided by the API server; here is only the node's socket, which nobody else can open.
"""

import contextlib
from collections.abc import Awaitable, Callable

from aiohttp import web

from trainmaster.cluster.kubelet import channels, forwarding, spdy_talk
from trainmaster.cluster.kubelet.attach import attached
from trainmaster.cluster.kubelet.channels import Channels
from trainmaster.cluster.kubelet.conversation import Command, Partner, converse
from trainmaster.cluster.kubelet.exec import start_in
from trainmaster.cluster.kubelet.finding import Refused, container_of, pod_of, running_attempt
from trainmaster.cluster.kubelet.launcher import Launcher
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.pods import Pods
from trainmaster.cluster.kubelet.records import Failed
from trainmaster.cluster.kubelet.spdy_session import MessageWire, PlainWire, Session
from trainmaster.cluster.kubelet.spdy_talk import SpdyTalk
from trainmaster.cluster.kubelet.talk import Asked, Gone, Talk, failed
from trainmaster.runtime.takeover import joined, upgraded

SPDY = "SPDY/3.1"
VERSION_HEADER = "X-Stream-Protocol-Version"


class Visits:
    """Brings clients to containers."""

    def __init__(self, pods: Pods, launcher: Launcher) -> None:
        self._pods = pods
        self._launcher = launcher

    def serve(self, router: web.UrlDispatcher) -> None:
        for method in ("GET", "POST"):
            router.add_route(method, "/exec/{namespace}/{pod}/{container}", self._exec)
            router.add_route(method, "/attach/{namespace}/{pod}/{container}", self._attach)
            router.add_route(method, "/dial/{address}/{port}", self._dial)
            router.add_route(method, "/portForward/{namespace}/{pod}", self._forward)

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        try:
            life, container = self._found(request)
            attempt, shim = running_attempt(life, container)
            asked, argv = _asked(request), request.query.getall("command", [])
            if not argv:
                raise Refused(400, "you must specify the command to run")
        except Refused as refused:
            return web.Response(status=refused.code, text=str(refused))

        async def begin() -> tuple[Partner, Callable[[], None]]:
            running = await start_in(self._launcher, attempt, shim.pidfd, argv, stdin=asked.stdin, tty=asked.tty)
            return Command(running, argv), running.close

        return await _conversation(request, asked, begin)

    async def _attach(self, request: web.Request) -> web.StreamResponse:
        try:
            life, container = self._found(request)
            attempt, _ = running_attempt(life, container)
            asked = _asked(request)
        except Refused as refused:
            return web.Response(status=refused.code, text=str(refused))

        async def begin() -> tuple[Partner, Callable[[], None]]:
            partner = await attached(attempt, stdin=asked.stdin)
            return partner, partner.close

        return await _conversation(request, asked, begin)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        names = request.match_info
        try:
            life = pod_of(self._pods, names["namespace"], names["pod"])
            if life.sandbox is None or life.sandbox.ended:
                raise Refused(400, f'pod "{names["pod"]}" is not running')
            return await self._forwarded(request, life)
        except Refused as refused:
            return web.Response(status=refused.code, text=str(refused))
        except ConnectionError:
            return web.Response(status=400)

    async def _forwarded(self, request: web.Request, life: Life) -> web.StreamResponse:
        """Raises Refused before the upgrade, ConnectionError after it."""
        def connect(port: int) -> Awaitable[forwarding.Connection]:
            return forwarding.connected(self._launcher, life, port)

        upgrade = request.headers.get("Upgrade", "")
        if upgrade.lower() == "websocket":
            ports = forwarding.ports(request.query.getall("port", []))
            socket = channels.upgrade(forwarding.WEBSOCKET_PROTOCOLS)
            await socket.prepare(request)
            if socket.ws_protocol == forwarding.TUNNEL:
                await forwarding.on_spdy(Session(MessageWire(socket)), connect)
            else:
                await forwarding.on_channels(socket, ports, connect)
            return socket
        if upgrade.upper() != SPDY:
            raise Refused(400, "Upgrade request required")
        protocol = negotiated(request, (forwarding.PROTOCOL,))
        reader, writer = upgraded(request, {"Connection": "Upgrade", "Upgrade": SPDY, VERSION_HEADER: protocol})
        await forwarding.on_spdy(Session(PlainWire(reader, writer)), connect)
        return web.Response()

    async def _dial(self, request: web.Request) -> web.StreamResponse:
        """A connection to a pod's address as it is: for HTTP through the API server."""
        address, port = request.match_info["address"], request.match_info["port"]
        try:
            reader, writer = await forwarding.dialled(self._launcher, address, forwarding.ports([port])[0])
        except Refused as refused:
            return web.Response(status=refused.code, text=str(refused))
        except (Failed, OSError) as problem:
            return web.Response(status=503, text=f"dial tcp {address}:{port}: {_short(problem)}")
        try:
            theirs, ours = upgraded(request, {"Connection": "Upgrade", "Upgrade": "tcp"})
            await joined(theirs, ours, reader, writer)
        except ConnectionError:
            return web.Response()
        finally:
            writer.close()
        return web.Response()

    def _found(self, request: web.Request) -> tuple[Life, str]:
        names = request.match_info
        life = pod_of(self._pods, names["namespace"], names["pod"])
        container_of(life, names["container"])
        return life, names["container"]


def _asked(request: web.Request) -> Asked:
    """The streams that a request names in the kubelet's words. Raises Refused."""
    flags = [request.query.get(name, "") in {"1", "true"} for name in ("input", "output", "error", "tty")]
    if not any(flags[:3]):
        raise Refused(400, "you must specify at least 1 of stdin, stdout, stderr")
    return Asked(*flags)


async def _conversation(
    request: web.Request, asked: Asked, begin: Callable[[], Awaitable[tuple[Partner, Callable[[], None]]]]
) -> web.StreamResponse:
    """Upgrade the connection, begin, and talk to the end. What `begin` cannot do is told on the new connection."""
    try:
        response, talk = await _upgraded(request, asked)
    except Refused as refused:
        return web.Response(status=refused.code, text=str(refused))
    except (Gone, ConnectionError):
        return web.Response(status=400)
    try:
        try:
            partner, leave = await begin()
        except (Failed, OSError) as problem:
            with contextlib.suppress(ConnectionError):
                await talk.end(failed(f"error executing command in container: {problem}"))
            return response
        try:
            await converse(talk, partner, asked)
        finally:
            leave()
    finally:
        await talk.close()
    return response


async def _upgraded(request: web.Request, asked: Asked) -> tuple[web.StreamResponse, Talk]:
    """Raises Refused before, Gone or ConnectionError after the upgrade."""
    upgrade = request.headers.get("Upgrade", "")
    if upgrade.lower() == "websocket":
        socket = channels.upgrade(channels.PROTOCOLS)
        await socket.prepare(request)
        return socket, Channels(socket)
    if upgrade.upper() != SPDY:
        raise Refused(400, "Upgrade request required")
    protocol = negotiated(request, spdy_talk.PROTOCOLS)
    reader, writer = upgraded(request, {"Connection": "Upgrade", "Upgrade": SPDY, VERSION_HEADER: protocol})
    talk = SpdyTalk(Session(PlainWire(reader, writer)), protocol)
    try:
        await talk.opened(asked.streams)
    except BaseException:
        writer.close()
        raise
    return web.Response(), talk


def _short(problem: Exception) -> str:
    return "connect: connection refused" if isinstance(problem, ConnectionRefusedError) else str(problem)


def negotiated(request: web.Request, known: tuple[str, ...]) -> str:
    """The first version that the client offers and we know; without an offer the oldest. Raises Refused."""
    offered = [
        version.strip() for header in request.headers.getall(VERSION_HEADER, []) for version in header.split(",")
    ]
    found = next((version for version in offered if version in known), "")
    if offered and not found:
        raise Refused(403, f"unable to upgrade: unable to negotiate protocol: client supports [{' '.join(offered)}], "
                           f"server accepts [{' '.join(known)}]")
    return found or known[-1]
