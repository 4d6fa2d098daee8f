"""One at a time: leader election on a Lease, and a fence around what the leader writes.

Whoever holds the lease renews it; the others take it over when it was not renewed for as long as its holder promised.
No two clocks are compared: each side measures on its own monotonic clock, the holder from the moment it *sent* the last
renewal that succeeded, the others from the moment they *saw* it. The holder stops earlier than the others begin, so
there is a time without a leader and never one with two.

Stopping is not a matter of being told in time. A process that was suspended or starved wakes up in the middle of a
write; so every write asks the fence first (`Leadership.fenced`), and what the fence cannot catch, a request that was
sent in time and arrives late, has to be harmless by itself: it carries a UID or revision, or makes an object whose name
follows from what it is for. Rejected: a token in every object, which no Kubernetes API server would check.
"""

import asyncio
import random
import socket
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from trainmaster.api.core import LEASES
from trainmaster.api.meta import Object, micro_timestamp
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Unreachable
from trainmaster.kube.transport import Request, Response, Stream, Transport
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

T = TypeVar("T")
log = logger("leader")


class Deposed(Unreachable):
    """We may not be the leader any more: the request was not sent."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds. The defaults are those of Kubernetes' own components."""

    lasting: float = 15.0    # how long the others wait after the last renewal they saw
    holding: float = 10.0    # how long we count on it: less, so that requests under way can arrive before they begin
    between: float = 2.0     # renewals, and looks of the others

    def __post_init__(self) -> None:
        if not 0 < self.between < self.holding < self.lasting:
            raise ValueError("a lease is renewed more often than it has to be, and given up before the others take it")


def identity() -> str:
    """A name for this process that no other life of it has: a holder that finds itself in the lease is itself."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Leadership:
    """A candidate for one lease. `me` must be unique, see `identity`."""

    def __init__(
        self, client: Client, clock: Clock, *, name: str, namespace: str, me: str, terms: Terms | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._name = name
        self._namespace = namespace
        self._me = me
        self._terms = terms or Terms()
        self._chance = chance or random.Random()  # noqa: S311  spreads load, guards nothing
        self._lease: Object = {}
        self._seen: tuple[Object, float] | None = None       # what the lease said, and since when, on our clock
        self._sent: tuple[float, datetime] | None = None     # when the last renewal that succeeded was sent
        self._told = ""    # what was last said about a server that fails
        self.term = 0    # counts up with every change of the leader, for as long as the lease exists

    @property
    def holder(self) -> str:
        """Who leads, as far as we know."""
        return str((self._lease.get("spec") or {}).get("holderIdentity") or "")

    def holds(self) -> bool:
        """Whether we certainly lead at this moment."""
        if self._sent is None:
            return False
        sent, moment = self._sent
        # The wall clock too: a machine that slept stops the monotonic one. Set forward, it makes us wait for the next
        # renewal; set back, it changes nothing, as the other one still counts.
        slept = self._clock.now() - moment > timedelta(seconds=self._terms.holding)
        return not slept and self._counted_on(sent)

    def fenced(self, transport: Transport) -> "Fenced":
        """The same way, for reads always and for writes only while we lead."""
        return Fenced(transport, self)

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Wait to lead, do the work, stop it when the lead is lost, and wait again; until cancelled or work ends.

        `work` is begun anew each time and has to remember nothing. What it raises is raised.
        """
        while True:
            await self._acquire()
            log.info("leading", lease=self._name, me=self._me, term=self.term)
            working = asyncio.create_task(work())
            renewing = asyncio.create_task(self._renew())
            try:
                await asyncio.wait([working, renewing], return_when=asyncio.FIRST_COMPLETED)
            finally:
                lost = renewing.done()
                await _ended(working)
                await _ended(renewing)
                await self._release()    # only after the last of our work has ended
            if not lost or (not working.cancelled() and working.exception() is not None):
                return working.result()
            log.warning("no longer leading", lease=self._name, me=self._me, holder=self.holder)

    async def _acquire(self) -> None:
        while not await self._tried():
            await self._clock.sleep(self._terms.between * self._chance.uniform(0.8, 1.2))

    async def _tried(self) -> bool:
        try:
            return await self._within(self._terms.holding, self._try())
        except KubeError as error:
            self._tell(error)
            return False

    async def _renew(self) -> None:
        """Return when the lead is lost."""
        assert self._sent is not None
        while True:
            await self._clock.sleep(self._terms.between)
            left = self._sent[0] + self._terms.holding - self._clock.monotonic()
            try:
                renewed = left > 0 and await self._within(left, self._try())
            except KubeError as error:
                self._tell(error)
                renewed = self._counted_on(self._sent[0])    # there is time for another try
            if not renewed:
                self._sent = None
                return

    async def _try(self) -> bool:
        """Take or renew the lease; False if somebody else has it."""
        try:
            if self._sent is None or not self._lease:
                self._look(await self._client.get(LEASES, self._name, self._namespace))
            if self.holder not in ("", self._me) and not self._expired():
                return False
            return await self._write(self._client.replace)
        except NotFound:
            self._lease = {}
            try:
                return await self._write(self._client.create)
            except AlreadyExists:
                return False    # somebody was faster; who, the next look tells
        except Conflict:
            return await self._overtaken()

    async def _overtaken(self) -> bool:
        """The lease changed since we read it: by our own request whose answer was lost, by a passer-by, or a rival."""
        self._look(await self._client.get(LEASES, self._name, self._namespace))
        if self.holder != self._me:
            return False
        try:
            return await self._write(self._client.replace)
        except (Conflict, NotFound) as error:
            raise Unreachable(f"the lease {self._name} changes all the time") from error

    async def _write(self, verb: Callable[..., Awaitable[Object]]) -> bool:
        sent, moment = self._clock.monotonic(), self._clock.now()
        self._look(await verb(LEASES, self._wanted(moment)))
        self._sent = (sent, moment)
        self._told = ""
        self.term = int(self._lease["spec"].get("leaseTransitions") or 0)
        return True

    def _wanted(self, moment: datetime) -> Object:
        spec = self._lease.get("spec") or {}
        now = micro_timestamp(moment)
        terms: Object = {
            **spec, "holderIdentity": self._me, "leaseDurationSeconds": max(1, round(self._terms.lasting)),
            "renewTime": now,
        }
        if self.holder != self._me:
            changes = int(spec.get("leaseTransitions") or 0) + bool(self._lease)
            terms |= {"acquireTime": now, "leaseTransitions": changes}
        about = self._lease.get("metadata") or {"name": self._name, "namespace": self._namespace}
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": about, "spec": terms}

    def _look(self, lease: Object) -> None:
        self._lease = lease
        spec = lease.get("spec") or {}
        if self._seen is None or self._seen[0] != spec:
            self._seen = (spec, self._clock.monotonic())

    def _expired(self) -> bool:
        """Whether the holder has not renewed for as long as it promised, since we look."""
        assert self._seen is not None
        spec, since = self._seen
        lasting = float(spec.get("leaseDurationSeconds") or self._terms.lasting)
        return self._clock.monotonic() - since > lasting

    def _tell(self, error: KubeError) -> None:
        if (cause := type(error).__name__) != self._told:
            self._told = cause
            log.warning("the lease cannot be written, trying again", lease=self._name, me=self._me, cause=error)

    def _counted_on(self, sent: float) -> bool:
        return self._clock.monotonic() - sent < self._terms.holding

    async def _release(self) -> None:
        """Let the others begin at once. If that does not succeed they begin later."""
        held, self._sent = self._sent is not None, None
        if not held or self.holder != self._me:
            return
        terms = {
            **self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1,
            "renewTime": micro_timestamp(self._clock.now()),
        }
        try:
            replaced = self._client.replace(LEASES, {**self._lease, "spec": terms})
            self._look(await self._within(self._terms.between, replaced))
        except KubeError as error:
            log.debug("the lease could not be given back", lease=self._name, cause=error)

    async def _within(self, seconds: float, request: Coroutine[Any, Any, T]) -> T:
        """An answer in time or none: a request that hangs must not keep us from noticing that our time is over."""
        asking = asyncio.create_task(request)
        waiting = asyncio.create_task(self._clock.sleep(seconds))
        try:
            await asyncio.wait([asking, waiting], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise Unreachable(f"no answer about the lease {self._name} within {seconds:.1f} seconds")
            return asking.result()
        finally:
            await _ended(asking)
            await _ended(waiting)


@dataclass(frozen=True, slots=True)
class Fenced:
    """A transport that lets writes through only while we lead. Raises Deposed, which says that nothing was sent."""

    inner: Transport
    leadership: Leadership

    async def send(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD") and not self.leadership.holds():
            raise Deposed(f"{request.method} {request.path}: not the leader at this moment")
        return await self.inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self.inner.open(request)

    async def close(self) -> None:
        await self.inner.close()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Cancel and wait, without raising what it raises: whoever wants its result asks for it."""
    if not task.done():
        task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
