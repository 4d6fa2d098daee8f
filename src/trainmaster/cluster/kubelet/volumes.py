"""A pod's volumes as directories of this machine.

Each volume becomes a directory (or, for hostPath, an existing place) before the sandbox is made; containers bind them
at their mount paths. Files of ConfigMaps, Secrets and the downward API are written the way the kubelet does, into a
directory of their own to which `..data` points, so that a later refresh is one atomic swap.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.environment import (
    ConfigError,
    Sources,
    TokenPlace,
    config_map_values,
    expand,
    field_value,
    resource_value,
    secret_values,
)
from trainmaster.cluster.kubelet.rootfs import Bind
from trainmaster.cluster.kubelet.sandbox import MemoryVolume

Values = Callable[[Object], dict[str, bytes]]
Files: TypeAlias = dict[str, tuple[bytes, int]]      # by path inside the volume: content and mode

_DEFAULT_MODE = 0o644


class VolumeError(Exception):
    """A volume cannot be mounted; the event's reason is FailedMount."""


@dataclass(frozen=True, slots=True)
class Volumes:
    """The prepared volumes of a pod."""

    places: Mapping[str, Path]
    memory: tuple[MemoryVolume, ...] = ()


def references(pod: Object) -> tuple[set[str], set[str]]:
    """The names of the ConfigMaps and Secrets that the volumes need."""
    maps = {str(volume["configMap"].get("name")) for volume in _volumes(pod) if volume.get("configMap")}
    secrets = {str(volume["secret"].get("secretName")) for volume in _volumes(pod) if volume.get("secret")}
    for volume in _volumes(pod):
        for source in _projections(volume):
            maps |= {str(source["configMap"].get("name"))} if source.get("configMap") else set()
            secrets |= {str(source["secret"].get("name"))} if source.get("secret") else set()
    return maps, secrets


def tokens(pod: Object) -> dict[TokenPlace, Object]:
    """The tokens of its account that a pod wants in its volumes, each as the specification of a TokenRequest."""
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    return {
        (volume["name"], str(wanted.get("path"))): {
            "audiences": [wanted["audience"]] if wanted.get("audience") else [],
            "expirationSeconds": int(wanted.get("expirationSeconds") or 3600), "boundObjectRef": bound,
        }
        for volume in _volumes(pod) for source in _projections(volume)
        if (wanted := source.get("serviceAccountToken"))
    }


def prepare(pod: Object, directory: Path, sources: Sources) -> Volumes:
    """Make every volume of the pod below `directory`; safe to repeat. Raises VolumeError."""
    places: dict[str, Path] = {}
    memory: list[MemoryVolume] = []
    for volume in _volumes(pod):
        name = volume["name"]
        if "/" in name or name in ("", ".", ".."):
            raise VolumeError(f"volume name {name!r} cannot be a directory")
        place = directory / name
        if "emptyDir" in volume:
            _make(place, 0o777)
            spec = volume["emptyDir"] or {}
            if spec.get("medium") == "Memory":
                limit = spec.get("sizeLimit")
                memory.append({"path": str(place), "size": int(quantity.parse(limit)) if limit else 0})
        elif volume.get("hostPath"):
            place = _host_path(name, volume["hostPath"])
        elif volume.get("configMap"):
            spec = volume["configMap"]
            found = sources.config_maps.get(str(spec.get("name")))
            _keyed(place, name, "configmap", str(spec.get("name")), spec, found, config_map_values)
        elif volume.get("secret"):
            spec = volume["secret"]
            found = sources.secrets.get(str(spec.get("secretName")))
            _keyed(place, name, "secret", str(spec.get("secretName")), spec, found, secret_values)
        elif volume.get("projected"):
            _write_atomically(place, _projected(pod, name, volume, sources))
        elif volume.get("downwardAPI"):
            _write_atomically(place, _downward(pod, volume["downwardAPI"], sources))
        else:
            kinds = ", ".join(sorted(key for key in volume if key != "name")) or "nothing"
            raise VolumeError(
                f'volume "{name}" is of a kind that this node cannot mount yet ({kinds}); it has emptyDir, hostPath, '
                "configMap, secret, downwardAPI and projected"
            )
        places[name] = place
    return Volumes(places, tuple(memory))


def binds(container: Object, volumes: Volumes, values: Mapping[str, str]) -> list[Bind]:
    """Where a container wants which volume, shortest path first so that one may lie inside another."""
    found: list[Bind] = []
    for mount in container.get("volumeMounts") or ():
        place = volumes.places.get(mount["name"])
        if place is None:
            raise ConfigError(f'volumeMount "{mount["name"]}" names no volume of the pod')
        inner = expand(str(mount.get("subPathExpr") or ""), values) or str(mount.get("subPath") or "")
        source = _inside(place, inner) if inner else place
        target = os.path.normpath("/" + str(mount["mountPath"]).lstrip("/"))
        if target == "/":
            raise ConfigError("a volume cannot be mounted at '/'")
        found.append({"source": str(source), "target": target, "readonly": bool(mount.get("readOnly"))})
    return sorted(found, key=lambda bind: bind["target"].count("/"))


def _volumes(pod: Object) -> list[Object]:
    return list(pod["spec"].get("volumes") or ())


def _make(place: Path, mode: int) -> None:
    place.mkdir(parents=True, exist_ok=True, mode=0o755)
    place.chmod(mode)


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


def _projections(volume: Object) -> list[Object]:
    return list((volume.get("projected") or {}).get("sources") or ())


def _projected(pod: Object, name: str, volume: Object, sources: Sources) -> Files:
    """The files of all sources in one volume; of two of the same path the later one."""
    usual = {"defaultMode": volume["projected"].get("defaultMode")}
    files: Files = {}
    for source in _projections(volume):
        if found := source.get("configMap"):
            wanted = str(found.get("name"))
            files |= _keyed_files(name, "configmap", wanted, {**found, **usual}, sources.config_maps.get(wanted),
                                  config_map_values)
        elif found := source.get("secret"):
            wanted = str(found.get("name"))
            files |= _keyed_files(name, "secret", wanted, {**found, **usual}, sources.secrets.get(wanted),
                                  secret_values)
        elif found := source.get("downwardAPI"):
            files |= _downward(pod, {**found, **usual}, sources)
        elif found := source.get("serviceAccountToken"):
            path = str(found.get("path"))
            token = sources.tokens.get((name, path))
            if token is None:
                raise VolumeError(f'MountVolume.SetUp failed for volume "{name}" : failed to fetch token: '
                                  f'serviceaccounts "{account_of(pod)}" not found')
            files[path] = (token.encode(), _mode(usual["defaultMode"], _DEFAULT_MODE))
        else:
            kinds = ", ".join(sorted(source)) or "nothing"
            raise VolumeError(f'volume "{name}" projects what this node does not have ({kinds})')
    return files


def account_of(pod: Object) -> str:
    return str(pod["spec"].get("serviceAccountName") or "default")


def _keyed(
    place: Path, name: str, kind: str, wanted: str, spec: Object, found: Object | None, values: Values
) -> None:
    _write_atomically(place, _keyed_files(name, kind, wanted, spec, found, values))


def _keyed_files(name: str, kind: str, wanted: str, spec: Object, found: Object | None, values: Values) -> Files:
    if found is None:
        if not spec.get("optional"):
            raise VolumeError(f'MountVolume.SetUp failed for volume "{name}" : {kind} "{wanted}" not found')
        return {}
    content = values(found)
    mode = _mode(spec.get("defaultMode"), _DEFAULT_MODE)
    files: Files = {}
    items = spec.get("items")
    if not items:
        files = {key: (raw, mode) for key, raw in content.items()}
    for item in items or ():
        if item["key"] not in content:
            if spec.get("optional"):
                continue
            raise VolumeError(
                f'MountVolume.SetUp failed for volume "{name}" : references non-existent {kind} key: {item["key"]}'
            )
        files[item["path"]] = (content[item["key"]], _mode(item.get("mode"), mode))
    return files


def _downward(pod: Object, spec: Object, sources: Sources) -> dict[str, tuple[bytes, int]]:
    mode = _mode(spec.get("defaultMode"), _DEFAULT_MODE)
    files: dict[str, tuple[bytes, int]] = {}
    try:
        for item in spec.get("items") or ():
            if item.get("fieldRef"):
                text = field_value(pod, str(item["fieldRef"].get("fieldPath", "")), sources)
            else:
                text = resource_value(pod, {}, item.get("resourceFieldRef") or {}, sources)
            files[item["path"]] = (text.encode(), _mode(item.get("mode"), mode))
    except ConfigError as error:
        raise VolumeError(str(error)) from error
    return files


def _mode(wanted: int | None, otherwise: int) -> int:
    return otherwise if wanted is None else int(wanted)


def _write_atomically(place: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Write all files into a new directory, then point `..data` at it; the names in the volume are links through it."""
    _make(place, 0o755)
    fresh = place / f"..{os.urandom(8).hex()}"
    fresh.mkdir(mode=0o755)
    for path, (raw, mode) in files.items():
        target = fresh / _relative(path)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        target.write_bytes(raw)
        target.chmod(mode)
    old = (place / "..data").readlink() if (place / "..data").is_symlink() else None
    link = place / "..data_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.rename(place / "..data")
    tops = {PurePosixPath(path).parts[0] for path in files}
    for top in tops:
        if not (place / top).is_symlink():
            (place / top).symlink_to(Path("..data") / top)
    for entry in place.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in tops:
            entry.unlink()
    if old is not None:
        shutil.rmtree(place / old, ignore_errors=True)


def _relative(path: str) -> PurePosixPath:
    found = PurePosixPath(path)
    if found.is_absolute() or ".." in found.parts or not found.parts or found.parts[0].startswith(".."):
        raise VolumeError(f"{path!r} is not a relative path inside a volume")
    return found


def _inside(place: Path, inner: str) -> Path:
    """A subPath, made if it is missing. A symbolic link that leads out of the volume is refused."""
    relative = PurePosixPath(inner)
    if relative.is_absolute() or ".." in relative.parts:
        raise ConfigError(f"subPath {inner!r} must be relative and without '..'")
    target = place / relative
    if not target.resolve().is_relative_to(place.resolve()):
        raise ConfigError(f"subPath {inner!r} leads out of its volume")
    if not target.exists():
        target.mkdir(parents=True, mode=0o755)
    return target.resolve()
