"""The transport inside the process: the same chain as the wire, without the wire.

A part of ours that lives beside the server sends the bytes it would send over HTTP and is answered with bytes; it has
an identity like everybody else and shares no object with the server.
"""

from collections.abc import AsyncIterator, Mapping

from trainmaster.cluster.apiserver.answers import refusal
from trainmaster.cluster.apiserver.auth import Identity
from trainmaster.cluster.apiserver.connecting import Tunnel
from trainmaster.cluster.apiserver.failures import bad_request
from trainmaster.cluster.apiserver.proxying import Proxied
from trainmaster.cluster.apiserver.server import ApiServer
from trainmaster.cluster.apiserver.streaming import Streaming
from trainmaster.kube.transport import Request, Response, Stream

# What becomes a connection needs one.
_NO_CONNECTION = refusal(bad_request("Upgrade request required"))


class InProcess:
    """A `kube.transport.Transport` that speaks for one identity."""

    def __init__(self, server: ApiServer, who: Identity) -> None:
        self._server = server
        self._who = who

    async def send(self, request: Request) -> Response:
        answer = await self._server.handle(request, self._who)
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, Tunnel | Proxied):
            return _NO_CONNECTION
        try:
            body = b"".join([chunk async for chunk in answer.chunks()])
        finally:
            await answer.close()
        return Response(answer.status, answer.headers, body)

    async def open(self, request: Request) -> Stream:
        answer = await self._server.handle(request, self._who)
        if isinstance(answer, Tunnel | Proxied):
            return _Whole(_NO_CONNECTION)
        return answer if isinstance(answer, Streaming) else _Whole(answer)

    async def close(self) -> None:
        """Nothing is held: the server goes on for the others."""


class _Whole:
    """A whole answer read as a stream."""

    def __init__(self, response: Response) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self._body = response.body

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body

    async def close(self) -> None:
        return
