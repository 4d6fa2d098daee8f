"""Archives through `tar` in a container; apart from `cp`, which is loaded without what talks."""

from pathlib import PurePosixPath
from typing import IO

from trainmaster.cli.output import FAILED, Told
from trainmaster.cli.remote import PIECE, guarded
from trainmaster.cli.replicas import Place
from trainmaster.kube.kubeconfig import Access
from trainmaster.kube.remote import STDERR, Command, running


class Copy:
    """To and from one replica."""

    def __init__(self, access: Access, place: Place) -> None:
        self._access, self._place = access, place

    def fetch(self, path: str, archive: IO[bytes]) -> None:
        """What is there, with its own name. Raises Told."""
        whole = PurePosixPath(path)
        self._run(["tar", "cf", "-", "-C", str(whole.parent), "--", whole.name], f"{path} cannot be read", out=archive)

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
