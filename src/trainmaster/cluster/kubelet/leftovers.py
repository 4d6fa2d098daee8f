"""Files of containers that have ended, as an archive: a checkpoint written to `./` must not be lost with its process.

There is nothing left to run a `tar` in, so the node packs what the container wrote: its volumes, its home, its layer of
the root. What it only saw of the machine or of its image is not its own and not here. Paths are looked up as the
container had them, and no symbolic link leads out of the place where it lies. Pods that are gone have theirs for as
long as `keeping` keeps them.
"""

import asyncio
import contextlib
import os
import tarfile
from collections.abc import AsyncGenerator
from pathlib import Path, PurePosixPath

from aiohttp import web

from trainmaster.cluster.kubelet import descriptors
from trainmaster.cluster.kubelet.finding import Refused, attempt_of, container_of, pod_of
from trainmaster.cluster.kubelet.keeping import Keeping, lookup, seen_by, start_of
from trainmaster.cluster.kubelet.pods import Pods
from trainmaster.cluster.kubelet.streaming import streamed


class Leftovers:
    """Serves them."""

    def __init__(self, pods: Pods, keeping: Keeping) -> None:
        self._pods = pods
        self._keeping = keeping

    def serve(self, router: web.UrlDispatcher) -> None:
        router.add_get("/containerFiles/{namespace}/{pod}/{container}", self._files)

    async def _files(self, request: web.Request) -> web.StreamResponse:
        names = request.match_info
        try:
            start, places = self._seen(names["namespace"], names["pod"], names["container"])
            asked = request.query.get("path", ".")
            found = lookup(asked, start, places)
        except Refused as refused:
            return web.Response(status=refused.code, text=str(refused))
        content = packed(found, PurePosixPath(os.path.normpath(asked)).name or ".")
        return await streamed(request, content, "application/x-tar")

    def _seen(self, namespace: str, pod: str, container: str) -> tuple[str, list[tuple[PurePosixPath, Path]]]:
        """Of the pod of that name, or of the last one that had it. Raises Refused."""
        if self._pods.find(namespace, pod) is None:
            return self._keeping.find(namespace, pod, container)
        life = pod_of(self._pods, namespace, pod)
        found = container_of(life, container)
        return start_of(life, found), seen_by(life, found, attempt_of(life, container, previous=False))


async def packed(path: Path, name: str) -> AsyncGenerator[bytes, None]:
    """An archive of a file or a folder under the name that it was asked for by, piece by piece."""
    read, write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(read, False)
    packing = asyncio.create_task(asyncio.to_thread(_pack, path, name, write))
    try:
        while piece := await descriptors.read(read):
            yield piece
    finally:
        os.close(read)                         # if nobody wants the rest, the thread hears so
        await packing


def _pack(path: Path, name: str, into: int) -> None:
    with contextlib.suppress(BrokenPipeError), open(into, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|") as tar:
        tar.add(path, arcname=name, filter=_ordinary)


def _ordinary(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without devices: a layer marks with one what the container deleted."""
    return member if member.isfile() or member.isdir() or member.issym() or member.islnk() else None
