"""The kubelet's own HTTP API, on a Unix socket in the runtime directory: logs, visits, health, drain.

A Unix socket of mode 0600 in a directory of mode 0700 needs neither port nor token, and nobody off this machine can
reach it. The API server speaks to it for `pods/log` and its like; `trainmaster down` for `/drain`.
"""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from aiohttp import web

from trainmaster.api.meta import moment
from trainmaster.cluster.kubelet import logs, reap, records
from trainmaster.cluster.kubelet.filewatch import FileWatch
from trainmaster.cluster.kubelet.finding import Refused, attempt_of, container_of, pod_of
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.pods import Pods
from trainmaster.cluster.kubelet.streaming import streamed
from trainmaster.cluster.kubelet.usage import Usage
from trainmaster.cluster.kubelet.visits import Visits
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.first import first


class Part(Protocol):
    """Something else that is served here."""

    def serve(self, router: web.UrlDispatcher) -> None: ...


class Server:
    """Serves what the pods of this node have to show."""

    def __init__(
        self, pods: Pods, visits: Visits, further: Sequence[Part], usage: Usage, clock: Clock,
        drain: Callable[[], Awaitable[None]],
    ) -> None:
        self._pods = pods
        self._visits = visits
        self._further = further
        self._usage = usage
        self._clock = clock
        self._drain = drain
        self._files = FileWatch()

    async def run(self, path: Path, ready: Callable[[], None]) -> None:
        """Serve on a Unix socket until cancelled."""
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_post("/drain", self._drained)
        application.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        application.router.add_get("/stats/summary", self._summary)
        application.router.add_get("/pods", self._listed)
        self._visits.serve(application.router)
        for part in self._further:
            part.serve(application.router)
        # Cancellation: a follower that went away must not be waited for until its container speaks again.
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        listener = listen(path)
        try:
            await web.SockSite(runner, listener).start()
            ready()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()
            self._files.close()
            listener.close()
            path.unlink(missing_ok=True)

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _drained(self, _: web.Request) -> web.Response:
        await self._drain()
        return web.Response(text="drained")

    async def _summary(self, _: web.Request) -> web.Response:
        return web.json_response(await self._usage.summary(self._pods.all()))

    async def _listed(self, _: web.Request) -> web.Response:
        items = [life.pod for life in self._pods.all()]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        try:
            names = request.match_info
            life, container = pod_of(self._pods, names["namespace"], names["pod"]), names["container"]
            container_of(life, container)
            query = request.query
            wanted = wanted_of(dict(query), self._clock.now())
            number = attempt_of(life, container, previous=query.get("previous") in ("true", "1"))
        except Refused as refused:
            return web.Response(status=refused.code, text=str(refused))
        return await streamed(request, self._content(life, container, number, wanted), "text/plain")

    async def _content(
        self, life: Life, container: str, number: int, wanted: logs.Wanted
    ) -> AsyncGenerator[bytes, None]:
        path, directory = life.places.log(container, number), life.places.attempt(container, number)

        def ended() -> bool:
            return records.read(str(directory), records.EXIT) is not None or not directory.exists()

        if not logs.numbers(path):
            return                      # the command could not be started: it said nothing
        if not wanted.follow:
            async for chunk in logs.read(path, wanted, _never, ended):
                yield chunk
            return
        # The end is told by the attempt's directory, into which the shim moves the record of it.
        async with self._files.watching(path) as grown, self._files.watching(directory) as closed:
            async def changed() -> None:
                await _either(grown, closed)

            async for chunk in logs.read(path, wanted, changed, ended):
                yield chunk


def wanted_of(query: dict[str, str], now: datetime) -> logs.Wanted:
    """The query of a log request. Raises Refused for a value that is no number or moment."""
    since = 0
    try:
        if query.get("sinceTime"):
            since = reap.nanoseconds(moment(query["sinceTime"]))
        elif query.get("sinceSeconds"):
            since = reap.nanoseconds(now - timedelta(seconds=int(query["sinceSeconds"])))
        tail = int(query["tailLines"]) if query.get("tailLines") else None
        limit = int(query["limitBytes"]) if query.get("limitBytes") else None
    except (ValueError, OverflowError) as error:
        raise Refused(400, f"the log query cannot be read: {error}") from error
    if (tail is not None and tail < 0) or (limit is not None and limit < 1):
        raise Refused(400, "tailLines must not be negative and limitBytes must be positive")
    return logs.Wanted(
        follow=query.get("follow") in ("true", "1"), timestamps=query.get("timestamps") in ("true", "1"), tail=tail,
        since=since, limit=limit, stream=logs.STREAMS.get(query.get("stream", ""), 0),
    )


def listen(path: Path) -> socket.socket:
    """A listening Unix socket; through its directory's descriptor, since an address holds no more than 107 bytes."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)
    path.chmod(0o600)
    listener.listen(64)
    listener.setblocking(False)
    return listener


async def _never() -> None:
    await asyncio.Event().wait()


async def _either(*events: asyncio.Event) -> None:
    """Return when any of them is set, and take note of it."""
    if not any(event.is_set() for event in events):
        await first(*(event.wait() for event in events))
    for event in events:
        event.clear()
