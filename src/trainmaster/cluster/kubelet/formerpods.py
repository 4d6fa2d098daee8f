"""Serves pods that are gone: which left what they printed or wrote, and the log of the last life of each container."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from aiohttp import web

from trainmaster.cluster.kubelet import logs
from trainmaster.cluster.kubelet.finding import Refused
from trainmaster.cluster.kubelet.former import Former
from trainmaster.cluster.kubelet.keeping import Keeping
from trainmaster.cluster.kubelet.server import wanted_of
from trainmaster.cluster.kubelet.streaming import streamed
from trainmaster.runtime.clock import Clock


class FormerPods:
    """Part of the kubelet's own API."""

    def __init__(self, former: Former, keeping: Keeping, clock: Clock) -> None:
        self._former, self._keeping, self._clock = former, keeping, clock

    def serve(self, router: web.UrlDispatcher) -> None:
        router.add_get("/formerPods/{namespace}", self._listed)
        router.add_get("/formerPods/{namespace}/{uid}/{container}", self._log)

    async def _listed(self, request: web.Request) -> web.Response:
        namespace = request.match_info["namespace"]
        found = [record for _, record in self._former.records(namespace)]
        if "files" in request.query:
            found = self._keeping.records(namespace)
        return web.json_response({"items": found})

    async def _log(self, request: web.Request) -> web.StreamResponse:
        names = request.match_info
        try:
            place = self._place(names["namespace"], names["uid"], names["container"])
            wanted = wanted_of({**request.query, "follow": ""}, self._clock.now())
        except Refused as refused:
            return web.Response(status=refused.code, text=str(refused))
        return await streamed(request, _content(place, wanted), "text/plain")

    def _place(self, namespace: str, uid: str, container: str) -> Path:
        """Made of names that a record has, never of names that a request has. Raises Refused."""
        for place, record in self._former.records(namespace):
            if record["metadata"]["uid"] == uid:
                if container in record["containers"]:
                    return place / container / str(record["containers"][container])
                raise Refused(404, f'container "{container}" not found')
        raise Refused(404, f'pod "{uid}" not found')


async def _content(place: Path, wanted: logs.Wanted) -> AsyncGenerator[bytes, None]:
    with contextlib.suppress(FileNotFoundError):        # it had to make room meanwhile
        async for chunk in logs.read(place, wanted, _nothing, lambda: True):
            yield chunk


async def _nothing() -> None:
    return None
