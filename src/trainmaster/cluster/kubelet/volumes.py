"""A pod's volumes as directories of this machine.

Each volume becomes a directory (or, for hostPath, an existing place) before the sandbox is made; containers bind them
at their mount paths. What comes from the API is `volumefiles`' business, whom it belongs to `ownership`'s.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trainmaster.api import quantity
from trainmaster.api.claims import claim_of
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.binds import Bind
from trainmaster.cluster.kubelet.environment import ConfigError, Sources, expand
from trainmaster.cluster.kubelet.ownership import WRITE, Owner, give, owner_of
from trainmaster.cluster.kubelet.sandbox import MemoryVolume
from trainmaster.cluster.kubelet.volumefiles import VolumeError, files_of, is_filled, volumes_of, write

OPEN = 0o777       # for whoever the containers run as; around it is a directory of the owner's alone


@dataclass(frozen=True, slots=True)
class Volumes:
    """The prepared volumes of a pod."""

    places: Mapping[str, Path]
    memory: tuple[MemoryVolume, ...] = ()
    read_only: frozenset[str] = frozenset()


def prepare(pod: Object, directory: Path, sources: Sources) -> Volumes:
    """Make every volume of the pod below `directory`; safe to repeat. Raises VolumeError."""
    places: dict[str, Path] = {}
    memory: list[MemoryVolume] = []
    read_only: set[str] = set()
    owner = owner_of(pod)
    for volume in volumes_of(pod):
        name = volume["name"]
        if "/" in name or name in ("", ".", ".."):
            raise VolumeError(f"volume name {name!r} cannot be a directory")
        places[name] = place = directory / name
        if "emptyDir" in volume:
            _empty(place, owner)
            spec = volume["emptyDir"] or {}
            if spec.get("medium") == "Memory":
                limit = spec.get("sizeLimit")
                memory.append({"path": str(place), "size": int(quantity.parse(limit)) if limit else 0})
        elif volume.get("hostPath"):
            places[name] = _host_path(name, volume["hostPath"])
        elif is_filled(volume):
            write(place, files_of(pod, volume, sources), owner)
            read_only.add(name)
        elif claim := claim_of(pod, volume):
            places[name] = _claimed(pod, claim, sources, owner)
            read_only |= {name} if (volume.get("persistentVolumeClaim") or {}).get("readOnly") else set()
        else:
            kinds = ", ".join(sorted(key for key in volume if key != "name")) or "nothing"
            raise VolumeError(
                f'volume "{name}" is of a kind that this node cannot mount ({kinds}); it has emptyDir, hostPath, '
                "configMap, secret, downwardAPI, projected, persistentVolumeClaim and ephemeral"
            )
    return Volumes(places, tuple(memory), frozenset(read_only))


def refresh(pod: Object, directory: Path, sources: Sources) -> bool:
    """Bring what comes from the API up to date. Whether anything was not. Raises VolumeError."""
    filled = [volume for volume in volumes_of(pod) if is_filled(volume)]
    changes = [write(directory / volume["name"], files_of(pod, volume, sources), owner_of(pod)) for volume in filled]
    return any(changes)


def binds(container: Object, volumes: Volumes, values: Mapping[str, str]) -> list[Bind]:
    """Where a container wants which volume, shortest path first so that one may lie inside another."""
    found: list[Bind] = []
    for mount in container.get("volumeMounts") or ():
        place = volumes.places.get(mount["name"])
        if place is None:
            raise ConfigError(f'volumeMount "{mount["name"]}" names no volume of the pod')
        inner = expand(str(mount.get("subPathExpr") or ""), values) or str(mount.get("subPath") or "")
        in_memory = any(one["path"] == str(place) for one in volumes.memory)
        source = _inside(place, inner, in_memory=in_memory) if inner else place
        read_only = bool(mount.get("readOnly")) or mount["name"] in volumes.read_only
        target = os.path.normpath("/" + str(mount["mountPath"]).lstrip("/"))
        if target == "/":
            raise ConfigError("a volume cannot be mounted at '/'")
        if PurePosixPath(target).is_relative_to("/proc"):
            raise ConfigError(f"a volume cannot be mounted at {target!r}, inside of /proc")
        bind: Bind = {"source": str(source), "target": target, "readonly": read_only}
        if inner:
            bind["within"] = str(place)
        found.append(bind)
    return sorted(found, key=lambda bind: bind["target"].count("/"))


def _empty(place: Path, owner: Owner | None) -> None:
    new = not place.exists()
    place.mkdir(parents=True, exist_ok=True, mode=0o755)
    if new:
        place.chmod(OPEN)
        if owner is not None and owner.shared:
            give(place, owner, WRITE, below=False)


def _claimed(pod: Object, name: str, sources: Sources, owner: Owner | None) -> Path:
    """The directory behind a claim; one that was provisioned here is made on its first use."""
    found = sources.claims.get(name)
    if found is None:
        raise VolumeError(f'error processing PVC {pod["metadata"]["namespace"]}/{name}: failed to fetch PVC from API '
                          f'server: persistentvolumeclaims "{name}" not found')
    if found.trouble:
        raise VolumeError(f'error processing PVC {pod["metadata"]["namespace"]}/{name}: {found.trouble}')
    path = Path(found.path)
    if not path.is_absolute() or ".." in path.parts:
        raise VolumeError(f'the volume of claim "{name}" is at {found.path!r}, which is not an absolute path')
    try:
        if found.provisioned:
            new = not path.exists()
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            if new:
                path.chmod(OPEN)
            if owner is not None:
                give(path, owner, WRITE, first=new)
    except OSError as error:
        raise VolumeError(f'the volume of claim "{name}" cannot be made: {path}: {error.strerror}') from error
    if not path.exists():
        raise VolumeError(f'MountVolume.SetUp failed for volume of claim "{name}" : path {path} does not exist')
    return path


def _host_path(name: str, spec: Object) -> Path:
    path, kind = Path(str(spec.get("path", ""))), str(spec.get("type") or "")
    if not path.is_absolute() or ".." in path.parts:
        raise VolumeError(f'volume "{name}": hostPath must be an absolute path without "..", not {str(path)!r}')
    try:
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "FileOrCreate":
            path.touch(exist_ok=True)
    except OSError as error:
        raise VolumeError(f'volume "{name}": {path} cannot be made: {error.strerror}') from error
    checks = {
        "": path.exists(), "Directory": path.is_dir(), "DirectoryOrCreate": path.is_dir(), "File": path.is_file(),
        "FileOrCreate": path.is_file(), "Socket": path.is_socket(), "CharDevice": path.is_char_device(),
        "BlockDevice": path.is_block_device(),
    }
    if not checks.get(kind, False):
        what = f"not a {kind}" if kind else "not there"
        raise VolumeError(f'volume "{name}": hostPath type check failed: {path} is {what}')
    return path


def _inside(place: Path, inner: str, *, in_memory: bool) -> Path:
    """A subPath. A symbolic link that leads out of the volume is told of here, and refused where the container is made
    (`binds.open_source`), which makes what is missing, too. What is in memory is seen only there."""
    relative = PurePosixPath(inner)
    if relative.is_absolute() or ".." in relative.parts:
        raise ConfigError(f"subPath {inner!r} must be relative and without '..'")
    if not in_memory and not (place / relative).resolve().is_relative_to(place.resolve()):
        raise ConfigError(f"subPath {inner!r} leads out of its volume")
    return place / relative
