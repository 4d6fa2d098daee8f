"""API versions that the oldest clusters lack, asked for under the names that they had there.

Autoscalers are `autoscaling/v2` from Kubernetes 1.23 on; 1.22 has the same fields as `v2beta2`. A server that does not
know the newer version answers the first list with 404: then the older one is tried, and kept if it answers. Asking
first what is served was rejected: it costs every start a request, and must be tried again while nobody answers.
"""

from dataclasses import replace
from typing import Final

import orjson

from trainmaster.api.core import AUTOSCALERS
from trainmaster.kube.transport import Request, Response, Stream, Transport

VERSIONS: Final = {AUTOSCALERS: "v2beta2"}
NOT_FOUND = 404


class Older:
    """A transport that speaks to old servers as they expect it."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._old: set[str] = set()     # paths that this server has only under an older version

    async def send(self, request: Request) -> Response:
        newer, older = _versions(request)
        if newer in self._old:
            return await self._inner.send(_as(older, request))
        answer = await self._inner.send(request)
        if not newer or answer.status != NOT_FOUND or not _lists(request):
            return answer
        instead = await self._inner.send(_as(older, request))
        if instead.status == NOT_FOUND:
            return answer
        self._old.add(newer)
        return instead

    async def open(self, request: Request) -> Stream:
        newer, older = _versions(request)
        return await self._inner.open(_as(older, request) if newer in self._old else request)

    async def close(self) -> None:
        await self._inner.close()


def _versions(request: Request) -> tuple[str, str]:
    """The group and version that are asked for and those that are older, if there are any."""
    for resource, older in VERSIONS.items():
        if request.path.startswith(f"/apis/{resource.api_version}/"):
            return resource.api_version, f"{resource.group}/{older}"
    return "", ""


def _lists(request: Request) -> bool:
    return request.method == "GET" and any(request.path.endswith(f"/{resource.plural}") for resource in VERSIONS)


def _as(older: str, request: Request) -> Request:
    newer, _ = _versions(request)
    body = request.body
    if body and (thing := orjson.loads(body)).get("apiVersion") == newer:
        body = orjson.dumps({**thing, "apiVersion": older})
    return replace(request, path=request.path.replace(f"/apis/{newer}/", f"/apis/{older}/", 1), body=body)
