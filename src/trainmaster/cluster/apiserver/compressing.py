"""Long answers, packed for those who take them: lists, objects and OpenAPI documents above 128 KiB, as Kubernetes does.

Only for clients on another machine, where a line is slower than the packing. Between two processes of one machine it
would make a list several times as expensive for nothing, and no client can tell: HTTP leaves the choice to the server.
A list is packed piece by piece while it is made, so that nobody waits for a long one; streams without an end are left
alone, for a packed event would wait for the next. Rejected: packing in a thread (a piece takes half a millisecond, as
much as handing it over), and levels above the fastest.
"""

import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

from trainmaster.cluster.apiserver.streaming import Streaming
from trainmaster.kube.transport import Response

LONGEST_PLAIN = 128 * 1024
_FASTEST, _GZIP = 1, 16 + zlib.MAX_WBITS
_HEADERS = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
_NEVER = "/openapi/v3"       # kept by clients for a year; Kubernetes does not pack them either


def wanted(headers: Mapping[str, str], path: str, *, near: bool) -> bool:
    """Whether a long answer to this request is packed. `near`: its client is on this machine."""
    taken = (each.strip() for each in headers.get("accept-encoding", "").split(","))
    return not near and "gzip" in taken and not path.startswith(_NEVER)


def whole(answer: Response) -> Response:
    if len(answer.body) <= LONGEST_PLAIN:
        return answer
    packer = _packer()
    return Response(answer.status, {**answer.headers, **_HEADERS}, packer.compress(answer.body) + packer.flush(),
                    answer.warnings)


async def pieces(answer: Streaming) -> Streaming:
    """Reads as much as says whether it is long."""
    if not answer.ends:
        return answer
    source, begun = answer.chunks(), bytearray()
    async for piece in source:
        begun += piece
        if len(begun) > LONGEST_PLAIN:
            return Streaming(answer.status, {**answer.headers, **_HEADERS}, _packed(bytes(begun), source), answer.close)
    return Streaming(answer.status, answer.headers, _plain(bytes(begun)), answer.close)


async def _packed(begun: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    packer = _packer()
    if packed := packer.compress(begun):
        yield packed
    async for piece in rest:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


async def _plain(begun: bytes) -> AsyncGenerator[bytes, None]:
    yield begun


def _packer() -> "zlib._Compress":
    return zlib.compressobj(_FASTEST, wbits=_GZIP)
