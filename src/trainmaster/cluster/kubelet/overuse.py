"""Which pod uses more disk than it may, in the kubelet's words, and how much it uses. Only measuring is not pure.

Only pods that have a limit are measured: reading a tree costs, and most pods say nothing.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.containers import all_containers, main_containers
from trainmaster.cluster.kubelet.settings import PodPlaces

RESOURCE = "ephemeral-storage"


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes on disk: by volume, and by container for its layer and its logs."""

    volumes: Mapping[str, int] = field(default_factory=dict)
    containers: Mapping[str, int] = field(default_factory=dict)


def is_limited(pod: Object) -> bool:
    return any(True for _ in _limited_volumes(pod)) or any(_limit(one) is not None for one in all_containers(pod))


def overuse(pod: Object, used: Usage) -> str:
    """Why the pod must go; "" if it may stay. (The sentences end in a blank, as the kubelet's do.)"""
    for name, most in _limited_volumes(pod):
        if used.volumes.get(name, 0) > quantity.parse(most):
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{most}". '
    limits = [_limit(container) for container in main_containers(pod)]
    if limits and all(limit is not None for limit in limits):
        total = sum((quantity.parse(limit) for limit in limits if limit is not None), Fraction(0))
        if sum(used.volumes.values()) + sum(used.containers.values()) > total:
            shown = limits[0] if len(limits) == 1 else str(int(total))
            return f"Pod ephemeral local storage usage exceeds the total limit of containers {shown}. "
    for container in all_containers(pod):
        limit = _limit(container)
        if limit is not None and used.containers.get(container["name"], 0) > quantity.parse(limit):
            return f'Container {container["name"]} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def measure(pod: Object, places: PodPlaces) -> Usage:
    """Look at the disk."""
    volumes = {
        volume["name"]: _size(places.volumes / volume["name"]) for volume in pod["spec"].get("volumes") or ()
        if "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory"
    }
    containers = {
        container["name"]: _size(places.layer(container["name"], 0).parent) + _size(places.logs / container["name"])
        for container in all_containers(pod)
    }
    return Usage(volumes, containers)


def _limited_volumes(pod: Object) -> Iterator[tuple[str, str]]:
    for volume in pod["spec"].get("volumes") or ():
        spec = volume.get("emptyDir") or {}
        if spec.get("sizeLimit") and spec.get("medium") != "Memory":       # memory keeps its limit by itself
            yield volume["name"], str(spec["sizeLimit"])


def _limit(container: Object) -> str | None:
    found = ((container.get("resources") or {}).get("limits") or {}).get(RESOURCE)
    return str(found) if found is not None else None


def _size(directory: Path) -> int:
    total = 0
    for folder, directories, names in os.walk(directory):
        for name in (*directories, *names):
            try:
                total += os.lstat(Path(folder, name)).st_blocks * 512
            except OSError:
                continue                       # gone meanwhile
    return total
