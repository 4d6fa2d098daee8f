"""One request, one answer: the seam between a client and whatever carries its bytes.

The same client speaks through HTTP (`kube.http`) and, inside the embedded cluster's own process, straight to the server
(`cluster.apiserver.inprocess`). Both carry the same bytes, so nothing can work on one and fail on the other.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks. Header names are in lower case; the query keeps its order and may repeat a name.

    Path and query are as people write them: whoever puts them into a URL encodes them there.
    """

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. What it warns of are headers too, but several of one name, so they are apart."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    warnings: Sequence[str] = ()         # each the value of one `Warning` header


class Stream(Protocol):
    """An answer whose body comes bit by bit: a watch, a log that is followed. Close it to stop the sender."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    """Carries requests. Raises `kube.errors.Unreachable` when no answer came, never for a status code."""

    async def send(self, request: Request) -> Response: ...

    async def open(self, request: Request) -> Stream:
        """Like send, but returns as soon as the head of the answer is there."""
        ...

    async def close(self) -> None: ...
