"""The files of volumes that the API fills: ConfigMaps, Secrets, the downward API, tokens, and several of them in one.

They are written the way the kubelet does: into a directory of their own to which `..data` points, so that a refresh is
one swap for everybody who looks, and a reader that has a file open keeps what it was reading.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.environment import (
    ConfigError,
    Sources,
    TokenPlace,
    config_map_values,
    field_value,
    resource_value,
    secret_values,
)
from trainmaster.cluster.kubelet.ownership import READ, Owner, give

Values = Callable[[Object], dict[str, bytes]]
Files: TypeAlias = dict[str, tuple[bytes, int]]      # by path inside the volume: content and mode

_DEFAULT_MODE = 0o644


class VolumeError(Exception):
    """A volume cannot be mounted; the event's reason is FailedMount."""


def is_filled(volume: Object) -> bool:
    """Whether its files come from the API, and change with it."""
    return any(volume.get(kind) for kind in ("configMap", "secret", "downwardAPI", "projected"))


def files_of(pod: Object, volume: Object, sources: Sources) -> Files:
    """What belongs into such a volume now. Raises VolumeError."""
    name = volume["name"]
    if spec := volume.get("configMap"):
        wanted = str(spec.get("name"))
        return _keyed_files(name, "configmap", wanted, spec, sources.config_maps.get(wanted), config_map_values)
    if spec := volume.get("secret"):
        wanted = str(spec.get("secretName"))
        return _keyed_files(name, "secret", wanted, spec, sources.secrets.get(wanted), secret_values)
    if spec := volume.get("downwardAPI"):
        return _downward(pod, spec, sources)
    return _projected(pod, name, volume, sources)


def references(pod: Object) -> tuple[set[str], set[str]]:
    """The names of the ConfigMaps and Secrets that the volumes need."""
    maps = {str(volume["configMap"].get("name")) for volume in volumes_of(pod) if volume.get("configMap")}
    secrets = {str(volume["secret"].get("secretName")) for volume in volumes_of(pod) if volume.get("secret")}
    for volume in volumes_of(pod):
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
        for volume in volumes_of(pod) for source in _projections(volume)
        if (wanted := source.get("serviceAccountToken"))
    }


def volumes_of(pod: Object) -> list[Object]:
    return list(pod["spec"].get("volumes") or ())


def account_of(pod: Object) -> str:
    return str(pod["spec"].get("serviceAccountName") or "default")


def write(place: Path, files: Files, owner: Owner | None = None) -> bool:
    """Put these files into a volume in one step. False if they are there already."""
    if _holds(place, files):
        return False
    place.mkdir(parents=True, exist_ok=True, mode=0o755)
    place.chmod(0o755)
    fresh = place / f"..{os.urandom(8).hex()}"
    fresh.mkdir(mode=0o755)
    for path, (raw, mode) in files.items():
        target = fresh / _relative(path)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        target.write_bytes(raw)
        target.chmod(mode)
    if owner is not None and owner.shared:
        give(fresh, owner, READ)
        give(place, owner, READ, below=False)
    old = (place / "..data").readlink() if (place / "..data").is_symlink() else None
    link = place / "..data_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.rename(place / "..data")
    _link(place, {PurePosixPath(path).parts[0] for path in files})
    if old is not None:
        shutil.rmtree(place / old, ignore_errors=True)
    return True


def written(place: Path, path: str) -> bytes | None:
    """One file of a volume as it is."""
    try:
        return (place / "..data" / _relative(path)).read_bytes()
    except OSError:
        return None


def _holds(place: Path, files: Files) -> bool:
    """Whether a volume has exactly these files. (Modes cannot change without a new pod.)"""
    if not (place / "..data").is_symlink() or any(written(place, path) != raw for path, (raw, _) in files.items()):
        return False
    inside = place / "..data"
    found = {str((Path(folder) / name).relative_to(inside)) for folder, _, names in os.walk(inside) for name in names}
    return found == {str(_relative(path)) for path in files}


def _link(place: Path, tops: set[str]) -> None:
    """Have a link for everything that is in the volume now, and for nothing else."""
    for top in tops:
        if not (place / top).is_symlink():
            (place / top).symlink_to(Path("..data") / top)
    for entry in place.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in tops:
            entry.unlink()


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


def _downward(pod: Object, spec: Object, sources: Sources) -> Files:
    mode = _mode(spec.get("defaultMode"), _DEFAULT_MODE)
    files: Files = {}
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


def _relative(path: str) -> PurePosixPath:
    found = PurePosixPath(path)
    if found.is_absolute() or ".." in found.parts or not found.parts or found.parts[0].startswith(".."):
        raise VolumeError(f"{path!r} is not a relative path inside a volume")
    return found
