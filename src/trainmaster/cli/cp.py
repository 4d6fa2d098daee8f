"""`trainmaster cp`: files to and from a replica, as an archive through `tar` there."""

import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import BAD_INPUT, FAILED, Told, printed, say, told

if TYPE_CHECKING:
    from trainmaster.cli.replicas import Place


@click.command(epilog="Example: trainmaster cp mnist/worker-0:/workspace/model.pt .")
@click.argument("source", metavar="[JOB[/REPLICA]:]PATH", type=click.Path())
@click.argument("target", metavar="[JOB[/REPLICA]:]PATH", type=click.Path())
@click.option("-c", "--container", default="", metavar="NAME", help="Default: the first.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, source: str, target: str, container: str, form: str) -> None:
    """Copy a file or folder from or to a replica of a job.

    From a replica that has ended, too, on the embedded cluster: what it wrote is kept for as long as its job, though
    its pod may be gone.
    """
    there, path = split(source)
    other, other_path = split(target)
    if bool(there) == bool(other):
        raise Told("One of the two must be in a replica, written JOB/REPLICA:PATH, and the other here.", BAD_INPUT)
    if other and not Path(path).exists():
        raise Told(f"{path}: No such file or directory.", BAD_INPUT)
    with asked.client(changes=bool(other)) as client:
        from trainmaster.cli.replicas import place

        meant = place(client, there or other, container=container, ended=bool(there))
        assert client.cluster is not None
        access = client.cluster.access
    from trainmaster.cli.copying import Copy

    copy = Copy(access, meant)
    with told(), tempfile.TemporaryFile() as archive:
        if there:
            copy.fetch(path, archive)
            placed = unpacked(archive, PurePosixPath(path).name, Path(other_path))
            _tell(meant, f"{meant.replica}:{path}", str(placed), form)
        else:
            said = copy.target(other_path, Path(path).name)
            packed(archive, Path(path), PurePosixPath(said).name)
            copy.send(archive, str(PurePosixPath(said).parent))
            _tell(meant, path, f"{meant.replica}:{said}", form)


def _tell(place: "Place", source: str, target: str, form: str) -> None:
    if form in ("json", "yaml"):
        printed({"pod": place.pod, "replica": place.replica, "source": source, "target": target}, form)
    elif form == "name":
        click.echo(target)
    else:
        say(f"{source} -> {target}")


def split(text: str) -> tuple[str, str]:
    """The replica and the path; no replica for a path here. A path with a colon is written ./a:b."""
    before, colon, path = text.partition(":")
    if not colon or before.startswith((".", "/")) or not before:
        return "", text
    return before, path or "."


def packed(archive: IO[bytes], path: Path, name: str) -> None:
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(path, arcname=name, filter=of_nobody)
    archive.seek(0)


def of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Users of this machine are none in the replica: there it belongs to whoever unpacks it."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def extract(tar: tarfile.TarFile, folder: str) -> None:
    """A program in a container must not write outside of the folder, nor leave anything that does. Raises TarError."""
    if hasattr(tarfile, "data_filter"):
        tar.extractall(folder, filter="data")
        return
    # Python before 3.11.4 has no such filter: then only plain files and folders, below this one.
    for member in tar:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
            raise tarfile.ExtractError(f"{member.name} is not a plain file below the folder")
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        tar.extract(member, folder, set_attrs=False)


def unpacked(archive: IO[bytes], name: str, target: Path) -> Path:
    """Where it is then: in the folder that is there, or under the name that was given."""
    archive.seek(0)
    into = target / name if target.is_dir() else target
    if not into.parent.is_dir():
        raise Told(f"{into.parent}: there is no such folder here.", BAD_INPUT)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".trainmaster-") as folder:
        try:
            with tarfile.open(fileobj=archive) as tar:
                extract(tar, folder)
        except tarfile.TarError as problem:
            raise Told(f"What the replica sent cannot be unpacked: {problem}.", FAILED) from problem
        found = Path(folder) / name
        if not found.exists():
            raise Told(f"{name}: nothing of that name was sent.", FAILED)
        if into.is_dir() and found.is_dir():
            import shutil

            shutil.copytree(found, into, dirs_exist_ok=True, symlinks=True)
        else:
            found.replace(into)
    return into


