"""Files of containers that have ended, as an archive: a checkpoint written to `./` must not be lost with its process.

There is nothing left to run a `tar` in, so the node packs what the container wrote: its volumes, its home, its layer of
the root. What it only saw of the machine or of its image is not its own and not here. Paths are looked up as the
container had them, and no symbolic link leads out of the place where it lies.
"""

import asyncio
import contextlib
import os
import tarfile
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path, PurePosixPath

from aiohttp import web

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import descriptors, plans
from trainmaster.cluster.kubelet.finding import Refused, attempt_of, container_of, pod_of
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.pods import Pods


class Leftovers:
    """Serves them."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods

    def serve(self, router: web.UrlDispatcher) -> None:
        router.add_get("/containerFiles/{namespace}/{pod}/{container}", self._files)

    async def _files(self, request: web.Request) -> web.StreamResponse:
        names = request.match_info
        try:
            life = pod_of(self._pods, names["namespace"], names["pod"])
            container = container_of(life, names["container"])
            found = find(life, container, request.query.get("path", "."))
        except Refused as refused:
            return web.Response(status=refused.code, text=str(refused))
        response = web.StreamResponse(headers={"Content-Type": "application/x-tar"})
        await response.prepare(request)
        async with contextlib.aclosing(packed(found)) as pieces:
            with contextlib.suppress(ConnectionResetError):
                async for piece in pieces:
                    await response.write(piece)
                await response.write_eof()
        return response


def find(life: Life, container: Object, path: str) -> Path:
    """Where a path of the container is on this machine. Raises Refused."""
    attempt = attempt_of(life, container["name"], previous=False)
    home = plans.homes(os.environ.get("HOME", ""), os.getuid())
    known = life.images.get(container["name"])
    start = str(container.get("workingDir") or (known.directory if known else "") or "/")
    wanted = PurePosixPath(os.path.normpath(PurePosixPath("/", start, path)))
    for target, place in _places(life, container, attempt, home):
        if wanted.is_relative_to(target):
            found = (place / wanted.relative_to(target)).resolve()
            if not found.is_relative_to(place.resolve()):
                raise Refused(403, f"{wanted} is a link that leads out of the container's own files")
            if found.exists():
                return found
            break
    raise Refused(404, f"{wanted}: No such file or directory, or none that the container wrote")


def _places(
    life: Life, container: Object, attempt: int, homes: Sequence[str]
) -> list[tuple[PurePosixPath, Path]]:
    """Where what the container wrote is, by the paths it had; the innermost first."""
    layer = life.places.layer(container["name"], attempt)
    found = [(PurePosixPath("/"), layer / "upper")]
    found += [(PurePosixPath(home), layer / "homes" / str(number)) for number, home in enumerate(homes)]
    for mount in container.get("volumeMounts") or ():
        place = life.volumes.places.get(mount["name"]) if life.volumes is not None else None
        place = place or life.places.volumes / mount["name"]
        if not mount.get("subPathExpr"):
            found.append((PurePosixPath(mount["mountPath"]), place / str(mount.get("subPath") or "")))
    return sorted(found, key=lambda one: len(one[0].parts), reverse=True)


async def packed(path: Path) -> AsyncGenerator[bytes, None]:
    """An archive of a file or a folder under its own name, piece by piece."""
    read, write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(read, False)
    packing = asyncio.create_task(asyncio.to_thread(_pack, path, write))
    try:
        while piece := await descriptors.read(read):
            yield piece
    finally:
        os.close(read)                         # if nobody wants the rest, the thread hears so
        await packing


def _pack(path: Path, into: int) -> None:
    with contextlib.suppress(BrokenPipeError), open(into, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|") as tar:
        tar.add(path, arcname=path.name or ".", filter=_ordinary)


def _ordinary(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without devices: a layer marks with one what the container deleted."""
    return member if member.isfile() or member.isdir() or member.issym() or member.islnk() else None
