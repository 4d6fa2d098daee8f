"""Root file systems of images that come as archives: a plain tar, an OCI archive, or what `docker save` writes.

Layers are laid over each other into one directory, which every container of the image sees below a layer of its own.
Names in an archive are looked up as they would be in the image: `/var/run` may be a link to `/run`, and that is the
image's, never this machine's. Python's own extraction refuses such archives or trusts them, depending on its filter.
As an ordinary user all files become the user's; devices are left out, since containers get theirs anyway.
"""

import json
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

_LINKS = 40          # as the kernel: more of them one after the other are a circle
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")


class BadArchive(Exception):
    """Not an archive of a root file system; the message says why."""


@dataclass(frozen=True, slots=True)
class Config:
    """What an image says about how to run it."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    user: str = ""


def unpack(archive: Path, target: Path) -> Config:
    """Unpack an archive into a new directory. Raises BadArchive."""
    try:
        with tarfile.open(archive) as outer:
            names = {PurePosixPath(name) for name in outer.getnames()}
            if PurePosixPath("index.json") in names and PurePosixPath("oci-layout") in names:
                return _unpack_layers(outer, target, *_oci(outer))
            if PurePosixPath("manifest.json") in names and not {PurePosixPath("bin"), PurePosixPath("usr")} & names:
                return _unpack_layers(outer, target, *_docker(outer))
            _lay(outer, target)
            return Config()
    except (tarfile.TarError, EOFError, KeyError, ValueError, OSError) as error:
        raise BadArchive(f"{archive} is not an archive of a root file system: {error}") from error


def user_of(root: Path, user: str) -> tuple[int, int]:
    """Numbers of the user and group that an image names. Raises BadArchive for one that it does not know."""
    name, _, group = user.partition(":")
    uid, gid = 0, 0
    if name:
        found = _looked_up(root, "etc/passwd", name)
        if found is None and not name.isdigit():
            raise BadArchive(f"the image runs as '{name}', but its /etc/passwd has no such user")
        uid, gid = (int(found[2]), int(found[3])) if found else (int(name), 0)
    if group:
        found = _looked_up(root, "etc/group", group)
        if found is None and not group.isdigit():
            raise BadArchive(f"the image runs in group '{group}', but its /etc/group has no such group")
        gid = int(found[2]) if found else int(group)
    return uid, gid


def _looked_up(root: Path, path: str, name: str) -> list[str] | None:
    place = inside(root, path)
    if not place.is_file():
        return None
    for line in place.read_text(errors="replace").splitlines():
        fields = line.split(":")
        if len(fields) > 3 and (fields[0] == name or fields[2] == name):
            return fields
    return None


def _oci(archive: tarfile.TarFile) -> tuple[Config, list[str]]:
    def blob(descriptor: Mapping[str, Any]) -> str:
        return "blobs/" + str(descriptor["digest"]).replace(":", "/")

    chosen = _one_of(_json(archive, "index.json")["manifests"])
    while chosen.get("mediaType") in _INDEXES:
        chosen = _one_of(_json(archive, blob(chosen))["manifests"])
    manifest = _json(archive, blob(chosen))
    return _config(_json(archive, blob(manifest["config"]))), [blob(layer) for layer in manifest["layers"]]


def _one_of(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """The image for this machine; the first, if none says what it is for."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    for one in manifests:
        if (one.get("platform") or {}).get("architecture") == machine:
            return one
    if not manifests or any("platform" in one for one in manifests):
        raise BadArchive(f"the archive has no image for {machine}")
    return manifests[0]


def _docker(archive: tarfile.TarFile) -> tuple[Config, list[str]]:
    manifest = _json(archive, "manifest.json")[0]
    return _config(_json(archive, manifest["Config"])), list(manifest["Layers"])


def _config(document: Mapping[str, Any]) -> Config:
    said = document.get("config") or {}
    return Config(
        entrypoint=tuple(said.get("Entrypoint") or ()), command=tuple(said.get("Cmd") or ()),
        environment=dict(pair.split("=", 1) for pair in said.get("Env") or () if "=" in pair),
        directory=said.get("WorkingDir") or "/", user=str(said.get("User") or ""),
    )


def _json(archive: tarfile.TarFile, name: str) -> Any:
    file = archive.extractfile(_member(archive, name))
    if file is None:
        raise ValueError(f"{name} is not a file")
    return json.load(file)


def _member(archive: tarfile.TarFile, name: str) -> tarfile.TarInfo:
    try:
        return archive.getmember(name)
    except KeyError:
        return archive.getmember(f"./{name}")


def _unpack_layers(archive: tarfile.TarFile, target: Path, config: Config, layers: list[str]) -> Config:
    for name in layers:
        file = archive.extractfile(_member(archive, name))
        if file is None:
            raise ValueError(f"{name} is not a file")
        with tarfile.open(fileobj=file) as layer:
            _lay(layer, target)
    return config


@contextmanager
def _for_all() -> Iterator[None]:
    """Folders that an archive only implies are for all users of the image, whatever the umask of who adds it."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


@_for_all()
def _lay(layer: tarfile.TarFile, root: Path) -> None:
    """Put one layer over what is there."""
    root.mkdir(parents=True, exist_ok=True, mode=0o755)
    later: list[tuple[Path, int]] = []       # modes of directories: one may be closed to its owner
    for member in layer:
        name = PurePosixPath(member.name)
        if not name.parts or name == PurePosixPath("/"):
            continue
        parent = inside(root, str(name.parent))
        parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        if name.name == _OPAQUE:
            for child in parent.iterdir():
                _remove(child)
        elif name.name.startswith(_WHITEOUT):
            _remove(parent / name.name.removeprefix(_WHITEOUT))
        elif name.name != "..":
            _put(layer, member, root, parent / name.name, later)
    whole = root.resolve()
    for path, mode in reversed(later):
        if path.resolve() == whole / path.relative_to(root):     # else something put a link in its place since
            path.chmod(mode)


def _put(
    layer: tarfile.TarFile, member: tarfile.TarInfo, root: Path, place: Path, later: list[tuple[Path, int]]
) -> None:
    if member.isdir():
        if not place.is_dir() or place.is_symlink():
            _remove(place)
            place.mkdir(mode=0o755)
        later.append((place, stat.S_IMODE(member.mode)))
    elif member.issym():
        _remove(place)
        place.symlink_to(member.linkname)
    elif member.islnk():
        source = inside(root, str(PurePosixPath(member.linkname).parent)) / PurePosixPath(member.linkname).name
        if source != place:
            _remove(place)
            os.link(source, place, follow_symlinks=False)    # a link is the image's, what it leads to may not be
    elif member.isreg():
        file = layer.extractfile(member)
        assert file is not None
        _remove(place)
        with place.open("xb") as written:
            shutil.copyfileobj(file, written)
        place.chmod(stat.S_IMODE(member.mode))
        os.utime(place, (member.mtime, member.mtime))
    else:
        return
    if os.geteuid() == 0 and not member.islnk():
        os.chown(place, member.uid, member.gid, follow_symlinks=False)
        if member.isreg():
            place.chmod(stat.S_IMODE(member.mode))      # a change of owner takes set-user-id away


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def inside(root: Path, path: str) -> Path:
    """Where a path of the image is on this machine, its symbolic links followed within the image."""
    waiting = list(reversed(PurePosixPath(path).parts))
    place, links = root, 0
    while waiting:
        part = waiting.pop()
        if part == "/":
            place = root
        elif part == "..":
            place = place.parent if place != root else root
        elif part != ".":
            candidate = place / part
            if not candidate.is_symlink():
                place = candidate
                continue
            links += 1
            if links > _LINKS:
                raise BadArchive(f"{path} is a link that leads to itself")
            waiting.extend(reversed(candidate.readlink().parts))
    return place
