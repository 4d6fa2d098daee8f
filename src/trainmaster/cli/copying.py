"""Archives through `tar` in a container; apart from `cp`, which is loaded without what talks."""

import asyncio
from pathlib import PurePosixPath
from typing import IO

from trainmaster.cli.output import FAILED, Told
from trainmaster.cli.remote import PIECE, guarded
from trainmaster.cli.replicas import Place
from trainmaster.kube.kubeconfig import Access, transport
from trainmaster.kube.remote import STDERR, Command, running
from trainmaster.kube.transport import Request


class Copy:
    """To and from one replica."""

    def __init__(self, access: Access, place: Place) -> None:
        self._access, self._place = access, place

    def fetch(self, path: str, archive: IO[bytes]) -> None:
        """What is there, with its own name. Raises Told."""
        if self._place.node:
            asyncio.run(self._left_over(path, archive))
            return
        self._run(packing(path), f"{path} cannot be read", out=archive)

    async def _left_over(self, path: str, archive: IO[bytes]) -> None:
        """The files of a container that has ended, from its node: there is no `tar` to run any more."""
        place = self._place
        where = f"/api/v1/nodes/{place.node}/proxy/containerFiles/{place.namespace}/{place.pod}/{place.container}"
        way = transport(self._access)
        try:
            stream = await way.open(Request("GET", where, (("path", path),)))
            try:
                if stream.status != 200:
                    said = b"".join([piece async for piece in stream.chunks()]).decode(errors="replace").strip()
                    raise Told(f"{place.replica} has ended, and its files cannot be had: {said}", FAILED)
                async for piece in stream.chunks():
                    archive.write(piece)
            finally:
                await stream.close()
        finally:
            await way.close()

    def target(self, path: str, name: str) -> str:
        """The path that a file of that name gets: in the folder that is there, or as it was given."""
        if path.endswith("/"):
            return f"{path}{name}"
        code = guarded(self._code(["test", "-d", path]))
        return f"{path.rstrip('/')}/{name}" if code == 0 else path

    def send(self, archive: IO[bytes], folder: str) -> None:
        self._run(["tar", "xf", "-", "-C", folder], f"{folder} cannot be written", into=archive)

    def _run(
        self, words: list[str], failed: str, *, out: IO[bytes] | None = None, into: IO[bytes] | None = None
    ) -> None:
        said = bytearray()
        code = guarded(self._code(words, out, into, said))
        if code:
            why = said.decode(errors="replace").strip().splitlines()
            hint = " (is there a `tar` in the image?)" if code in (126, 127) else ""
            raise Told(f"{failed} in {self._place.replica}: {why[0] if why else f'exit code {code}'}{hint}", FAILED)

    async def _code(self, words: list[str], out: IO[bytes] | None = None, into: IO[bytes] | None = None,
                    said: bytearray | None = None) -> int:
        place = self._place
        command = Command(place.namespace, place.pod, words, place.container, stdin=into is not None)
        async with running(self._access, command) as run:
            if into is not None:
                if not run.can_end_input:
                    raise Told("This cluster cannot say that a file has ended (it is older than Kubernetes 1.30). "
                               "`kubectl cp` knows an older way.", FAILED)
                while piece := into.read(PIECE):
                    await run.write(piece)
                await run.end_input()
            async for channel, data in run.output():
                if channel == STDERR and said is not None:
                    said += data
                elif channel != STDERR and out is not None:
                    out.write(data)
            return run.exit_code


def packing(path: str) -> list[str]:
    """The command that packs a path under its own name; of a folder that has none (`.`, `/`), what is in it."""
    whole = PurePosixPath(path)
    return ["tar", "cf", "-", "-C", str(whole.parent), "--", whole.name or "."]
