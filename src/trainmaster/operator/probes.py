"""The small HTTP server for those who look after the process: is it alive, is it ready, what does it count.

Plain HTTP, as kubelets and Prometheus ask; nothing of any object is told here. An address that nobody asked for may be
taken by somebody else on a machine that is not a pod of our own: then we go on without and say so.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final, Self

from aiohttp import web

from trainmaster.operator.metrics import Metrics
from trainmaster.runtime.log import logger

NOWHERE: Final = ("", "0")
SHUTDOWN = 1.0

log = logger("probes")


class Taken(Exception):
    """We cannot listen where we were asked to; the message is for the person who asked."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. `asked` if a person said so: then a port that is taken is an error."""

    text: str
    asked: bool = True

    @property
    def host(self) -> str | None:
        return self.text.rpartition(":")[0].strip("[]") or None

    @property
    def port(self) -> int:
        return int(self.text.rpartition(":")[2])


def address(text: str, *, asked: bool, in_pod: bool) -> Address | None:
    """Where to listen, None for nowhere. Raises ValueError for what is no address.

    As upstream writes it, `:8080` is every address of the machine: right for a pod, where the kubelet asks, and too
    much for anybody's laptop unless it was asked for.
    """
    if text in NOWHERE:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text}: write HOST:PORT, :PORT or 0 for nowhere")
    return Address(text if host or asked or in_pod else f"127.0.0.1:{port}", asked)


@dataclass(slots=True)
class Health:
    """What the process says of itself."""

    ready: bool = False
    stands_by: Callable[[], bool] = lambda: False     # another works, and we are there to take over
    checks: dict[str, Callable[[], bool]] = field(default_factory=dict)    # more things that must hold, by name

    def missing(self) -> list[str]:
        """What is not ready yet."""
        synced = self.ready or self.stands_by()
        return [*([] if synced else ["synced"]), *(name for name, holds in self.checks.items() if not holds())]


class Probes:
    """Serves until it is left."""

    def __init__(self, health: Health, metrics: Metrics, probes: Address | None, figures: Address | None) -> None:
        self._health = health
        self._metrics = metrics
        self._wanted = [
            ("health", probes, [web.get("/healthz", self._alive), web.get("/readyz", self._ready)]),
            ("metrics", figures, [web.get("/metrics", self._figures)]),
        ]
        self._stack = AsyncExitStack()
        self.ports: dict[str, int] = {}     # where we listen, by what is there

    async def __aenter__(self) -> Self:
        try:
            for name, place, routes in self._wanted:
                if place is not None:
                    await self._listen(name, place, routes)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _listen(self, name: str, place: Address, routes: list[web.RouteDef]) -> None:
        app = web.Application()
        app.add_routes(routes)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, place.host, place.port).start()
        except OSError as problem:
            if place.asked:
                why = problem.strerror or problem
                words = f"cannot listen on {place.text} for {name}: {why}. Give another address, or 0."
                raise Taken(words) from problem
            log.warning("not listening: the address is taken", what=name, address=place.text, cause=problem.strerror)
            return
        self.ports[name] = runner.addresses[0][1]

    async def _alive(self, _request: web.Request) -> web.Response:
        await asyncio.sleep(0)    # the loop goes round, or nobody gets an answer
        return web.Response(text="ok")

    async def _ready(self, _request: web.Request) -> web.Response:
        missing = self._health.missing()
        if missing:
            return web.Response(status=500, text=f"not ready: {', '.join(missing)}\n")
        return web.Response(text="ok")

    async def _figures(self, _request: web.Request) -> web.Response:
        body, form = self._metrics.page()
        return web.Response(body=body, headers={"Content-Type": form})
