"""A transport that does what networks, servers and processes do on bad days.

It sits between a client and the real transport, so that everything above it is the code that ships. Each request asks a
plan for the one thing that shall go wrong with it; a plan with a seed goes wrong the same way every time.

For crash points: run a story once without faults, look at `writes`, then run it again with `die_after=1`, `2`, ...
(see `crash_points`). The write is carried out and nothing after it happens in that life: the moment that loses most.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import orjson

from trainmaster.kube.errors import Unreachable
from trainmaster.kube.lines import lines
from trainmaster.kube.transport import Request, Response, Stream, Transport
from trainmaster.runtime.clock import Clock

T = TypeVar("T")


class Died(BaseException):
    """The process ended here. Not an Exception, so that no loop which survives failures survives this."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The request never arrives."""


@dataclass(frozen=True, slots=True)
class Lose:
    """The request is carried out; its answer never arrives."""


@dataclass(frozen=True, slots=True)
class Delay:
    """The request arrives late; other requests overtake it."""

    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Repeat:
    """The request arrives twice, and the second answer is the one we see."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The server answers with a failure and does nothing."""

    code: int
    reason: str = ""
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Old:
    """A list is answered as it was the first time it was asked for: by a server that is behind."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A stream ends after so many lines: cleanly, or (`torn`) in the middle of the next one, with an error."""

    lines: int = 0
    torn: bool = False


@dataclass(frozen=True, slots=True)
class Expire:
    """A watch reports after so many events that its revision is too old."""

    lines: int = 0


@dataclass(frozen=True, slots=True)
class Stutter:
    """Every line of a stream comes twice, and the first of all once more after each."""


Fault = Refuse | Lose | Delay | Repeat | Answer | Old | Cut | Expire | Stutter
# What goes wrong with a request, which is the n-th (from 1) of this transport.
Plan = Callable[[Request, int], Fault | None]

EVERYTHING: tuple[Fault, ...] = (
    Refuse(), Lose(), Delay(0.1), Delay(5.0), Repeat(), Answer(409, "Conflict"), Answer(429, "TooManyRequests"),
    Answer(500, "InternalError"), Answer(503, "ServiceUnavailable"), Old(), Cut(0), Cut(1), Cut(2, torn=True),
    Expire(0), Expire(2), Stutter(),
)


def nothing(request: Request, number: int) -> None:
    """The plan of a good day."""


def seeded(seed: int, rate: float = 0.3, faults: Sequence[Fault] = EVERYTHING, until: int | None = None) -> Plan:
    """Each request goes wrong with a chance of `rate`; none after the `until`-th, so that things can come to rest."""
    chance = random.Random(seed)  # noqa: S311  repeatable on purpose

    def plan(request: Request, number: int) -> Fault | None:
        roll, pick = chance.random(), chance.random()
        fitting = [fault for fault in faults if fits(fault, request)]
        if not fitting or roll >= rate or (until is not None and number > until):
            return None
        return fitting[int(pick * len(fitting))]

    return plan


def scripted(faults: Mapping[int, Fault]) -> Plan:
    """The n-th request goes wrong in the way that is written down for it."""
    return lambda _, number: faults.get(number)


def on(method: str, part: str, *faults: Fault | None) -> Plan:
    """The first, second, ... request with this method and this part of a path go wrong in these ways, no others."""
    left = list(faults)
    return lambda request, _: left.pop(0) if left and request.method == method and part in request.path else None


def fits(fault: Fault, request: Request) -> bool:
    """Whether a fault can happen to a request at all."""
    streaming = is_stream(request)
    match fault:
        case Cut() | Stutter():
            return streaming
        case Expire():
            return _is_watch(request)
        case Old():
            return request.method == "GET" and not streaming
        case Repeat() | Answer(409):
            return is_write(request)
        case Lose():
            return not streaming
    return True


def is_write(request: Request) -> bool:
    return request.method not in ("GET", "HEAD")


def is_stream(request: Request) -> bool:
    return _is_watch(request) or request.path.endswith("/log")


@dataclass(frozen=True, slots=True)
class Write:
    """A write that was carried out."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(slots=True)
class Faults:
    """A Transport with faults. After its death every request raises Died."""

    inner: Transport
    clock: Clock
    plan: Plan = nothing
    die_after: int | None = None
    writes: list[Write] = field(default_factory=list)
    injected: list[tuple[int, Fault]] = field(default_factory=list)
    died: bool = False
    down: bool = False
    _requests: int = 0
    _open: "set[_Faulty]" = field(default_factory=set)
    _answers: dict[tuple[str, tuple[tuple[str, str], ...]], Response] = field(default_factory=dict)

    async def send(self, request: Request) -> Response:
        fault = await self._before(request)
        if isinstance(fault, Answer):
            return Response(fault.code, _headers(fault), _status(fault))
        if isinstance(fault, Repeat):
            await self._carry_out(request)
        answer = await self._carry_out(request)
        if isinstance(fault, Lose):
            raise Unreachable(f"{request.method} {request.path}: the answer was lost (injected)")
        if request.method != "GET" or answer.status != 200 or not _is_list(answer):
            return answer
        first = self._answers.setdefault((request.path, tuple(request.query)), answer)
        return first if isinstance(fault, Old) else answer

    async def open(self, request: Request) -> Stream:
        fault = await self._before(request)
        if isinstance(fault, Answer):
            return _Failure(fault.code, _headers(fault), _status(fault))
        stream = await self.inner.open(request)
        faulty = _Faulty(stream.status, stream.headers, stream, fault, self)
        self._open.add(faulty)
        return faulty

    async def close(self) -> None:
        await self.inner.close()

    async def disconnect(self) -> None:
        """The network goes away: streams end, requests are refused, until `connect`."""
        self.down = True
        for stream in list(self._open):
            await stream.close()

    def connect(self) -> None:
        self.down = False

    def closed(self, stream: "_Faulty") -> None:
        self._open.discard(stream)

    async def _before(self, request: Request) -> Fault | None:
        self.stay_dead()
        self._requests += 1
        fault = self.plan(request, self._requests)
        if fault is not None and fits(fault, request):
            self.injected.append((self._requests, fault))
        else:
            fault = None
        if self.down or isinstance(fault, Refuse):
            raise Unreachable(f"{request.method} {request.path}: refused (injected)")
        if isinstance(fault, Delay):
            await self.clock.sleep(fault.seconds)
            self.stay_dead()
        return fault

    async def _carry_out(self, request: Request) -> Response:
        answer = await self.inner.send(request)
        self.stay_dead()
        if is_write(request) and answer.status < 300:
            self.writes.append(Write(request.method, request.path))
            if self.die_after is not None and len(self.writes) >= self.die_after:
                self.died = True
        self.stay_dead()
        return answer

    def stay_dead(self) -> None:
        if self.died:
            raise Died(f"died after write {len(self.writes)}: {self.writes[-1]}")


def is_death(error: BaseException) -> bool:
    """Whether an exception, or one inside of a group, is the injected end of the process."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_death(inner) for inner in error.exceptions)
    return isinstance(error, Died)


async def crash_points(
    story: Callable[[int | None], Awaitable[tuple[Sequence[Write], T]]],
) -> AsyncIterator[tuple[str, T, T]]:
    """For every write of a story: where it died, how it ends without dying, how it ends after dying and coming back.

    `story(None)` runs clean, `story(n)` dies after its n-th write and starts over; both return the writes of the first
    life and the state in which all came to rest.
    """
    writes, clean = await story(None)
    for number, write in enumerate(writes, start=1):
        _, end = await story(number)
        yield f"died after write {number}: {write}", clean, end


@dataclass(slots=True, eq=False)
class _Faulty:
    """A stream with a fault, or one that only has to end with its process."""

    status: int
    headers: Mapping[str, str]
    inner: Stream
    fault: Fault | None
    life: Faults

    async def chunks(self) -> AsyncIterator[bytes]:
        if self.status != 200 or self.fault is None:
            async for chunk in self.inner.chunks():
                self.life.stay_dead()
                yield chunk
            return
        whole, first, sent = lines(self.inner.chunks()), b"", 0
        while True:
            match self.fault:
                case Cut(limit, torn=False) if sent >= limit:
                    return
                case Expire(limit) if sent >= limit:
                    yield _expired()
                    return
            line = await anext(whole, None)
            self.life.stay_dead()
            if line is None:
                return
            match self.fault:
                case Cut(limit) if sent >= limit:
                    yield line[: len(line) // 2]
                    raise Unreachable("the stream was torn (injected)")
                case Stutter():
                    first = first or line
                    yield line + b"\n" + line + b"\n" + first + b"\n"
                case _:
                    yield line + b"\n"
            sent += 1

    async def close(self) -> None:
        self.life.closed(self)
        await self.inner.close()


@dataclass(slots=True)
class _Failure:
    status: int
    headers: Mapping[str, str]
    body: bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.body

    async def close(self) -> None:
        pass


def _is_watch(request: Request) -> bool:
    return request.method == "GET" and any(
        name == "watch" and value.lower() in ("true", "1") for name, value in request.query
    )


def _is_list(answer: Response) -> bool:
    return str(orjson.loads(answer.body).get("kind", "")).endswith("List")


def _headers(fault: Answer) -> dict[str, str]:
    found = {"content-type": "application/json"}
    return found if fault.retry_after is None else found | {"retry-after": str(fault.retry_after)}


def _status(fault: Answer) -> bytes:
    return orjson.dumps({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": fault.code, "reason": fault.reason,
        "message": f"{fault.reason or fault.code} (injected)",
    })


def _expired() -> bytes:
    status = {
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old resource version (injected)",
    }
    return orjson.dumps({"type": "ERROR", "object": status}) + b"\n"
