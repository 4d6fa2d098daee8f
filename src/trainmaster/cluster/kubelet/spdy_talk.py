"""A conversation on SPDY: the client opens one stream for each thing, and names it in a header."""

import asyncio
from collections.abc import AsyncIterator

import orjson

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import spdy
from trainmaster.cluster.kubelet.spdy_session import Session
from trainmaster.cluster.kubelet.talk import ERROR, RESIZE, STDERR, STDIN, STDOUT, Gone, Heard, Typed, size

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_WITH_STATUS = frozenset(PROTOCOLS[:2])
_NAMES = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
# Seconds until a client must have opened its streams, as the kubelet.
_OPENING = 30.0


class SpdyTalk:
    """A client on SPDY, as `talk.Talk`. `opened` before anything else."""

    def __init__(self, session: Session, protocol: str) -> None:
        self._session = session
        self._with_status = protocol in _WITH_STATUS
        self._frames = session.frames()
        self._streams: dict[int, int] = {}       # ours -> the session's number
        self._early: list[spdy.Frame] = []
        self._sizes = b""

    async def opened(self, wanted: set[int]) -> None:
        """Wait until the client has opened these streams. Raises Gone when it does not."""
        try:
            async with asyncio.timeout(_OPENING):
                while not wanted <= self._streams.keys():
                    frame = await anext(self._frames)
                    if isinstance(frame, spdy.Opened):
                        name = frame.headers.get("streamtype", "")
                        if name in _NAMES:
                            self._streams[_NAMES[name]] = frame.stream
                    else:
                        self._early.append(frame)
        except (StopAsyncIteration, TimeoutError) as error:
            raise Gone("the client did not open its streams") from error

    async def heard(self) -> AsyncIterator[Heard]:
        for frame in self._early:
            for found in self._taken(frame):
                yield found
        self._early = []
        async for frame in self._frames:
            for found in self._taken(frame):
                yield found

    def _taken(self, frame: spdy.Frame) -> list[Heard]:
        if isinstance(frame, spdy.Reset) and frame.stream in self._streams.values():
            raise Gone("the client gave up a stream")
        if not isinstance(frame, spdy.Data):
            return []
        if frame.stream == self._streams.get(RESIZE):
            return self._resized(frame.data)
        if frame.stream != self._streams.get(STDIN):
            return []
        return [*([Typed(frame.data)] if frame.data else []), *([Typed(b"")] if frame.fin else [])]

    def _resized(self, data: bytes) -> list[Heard]:
        """Each is a line of JSON; a line may come in pieces."""
        *lines, self._sizes = (self._sizes + data).split(b"\n")
        if self._sizes.endswith(b"}"):
            lines, self._sizes = [*lines, self._sizes], b""
        found = [size(line) for line in lines if line.strip()]
        self._sizes = self._sizes[-256:]
        return [each for each in found if each is not None]

    async def say(self, stream: int, data: bytes) -> None:
        if stream in self._streams:
            await self._session.data(self._streams[stream], data)

    async def end(self, status: Object) -> None:
        said = b""
        if self._with_status:
            said = orjson.dumps(status)
        elif status.get("status") != "Success":
            said = str(status.get("message", "")).encode()
        for stream in (STDOUT, STDERR):
            if stream in self._streams:
                await self._session.data(self._streams[stream], b"", fin=True)
        await self._session.data(self._streams[ERROR], said, fin=True)
        await self.close()

    async def close(self) -> None:
        await self._session.close()
