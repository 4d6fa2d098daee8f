"""What a node is told when it starts, and where it keeps what on disk."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainmaster.api.meta import Object, is_dns_label, is_dns_subdomain, name_of, namespace_of, uid_of
from trainmaster.cluster.kubelet.gpus import Gpu
from trainmaster.cluster.kubelet.output import MOST_BYTES, MOST_FILES

_UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One node of the embedded cluster. Nodes of one machine have their directories in common."""

    name: str
    run: Path                      # runtime directory: sockets, records of processes, sandboxes
    logs: Path                     # logs of pods
    volumes: Path
    cpus: str
    memory: str
    resources: Mapping[str, str] = field(default_factory=dict)     # further resources, such as nvidia.com/gpu
    hidden: tuple[Path, ...] = ()  # directories that no pod may see
    announced: Callable[[Object, Object], Mapping[str, str]] = lambda _pod, _container: {}  # variables beside their own
    log_bytes: int = MOST_BYTES    # of one file of a container's log
    log_files: int = MOST_FILES    # how many of them are kept; 0: one, without a bound
    gpus: tuple[Gpu, ...] = ()     # those that pods can be given, in the order of the resource's counting
    api: tuple[str, int] | None = None      # the API server, for pods too; None: they cannot reach it
    share: int = 1                 # of how many nodes of the machine this is one
    socket_name: str = "kubelet.sock"       # of its own API, in the runtime directory

    @property
    def pods(self) -> Path:
        return self.run / "pods"

    @property
    def socket(self) -> Path:
        return self.run / self.socket_name


@dataclass(frozen=True, slots=True)
class PodPlaces:
    """Where one pod is kept. Made by `places_of` only, which has checked every name that became part of a path."""

    pod: Path        # records, layers
    volumes: Path
    logs: Path

    @property
    def shm(self) -> Path:
        return self.pod / ".shm"    # the dot keeps it apart from containers' names

    def attempt(self, container: str, number: int) -> Path:
        return self.pod / container / str(number)

    def layer(self, container: str, number: int) -> Path:
        """What an attempt writes: beside the volumes, since it outlives the runtime directory as they do."""
        return self.volumes / ".layers" / container / str(number)

    def log(self, container: str, number: int) -> Path:
        """The directory of an attempt's log."""
        return self.logs / container / str(number)


class BadName(Exception):
    """A name from the API that must not become a path."""


def places_of(settings: NodeSettings, pod: Object) -> PodPlaces:
    """The pod's directories. Raises BadName: an API server that is not ours may let anything through."""
    namespace, name, uid = namespace_of(pod), name_of(pod), uid_of(pod)
    if not _UID.fullmatch(uid) or not is_dns_label(namespace) or not is_dns_subdomain(name):
        raise BadName(f"pod {namespace}/{name} with uid {uid!r} has a name that cannot be a directory")
    spec = pod.get("spec") or {}
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        if not is_dns_label(str(container.get("name", ""))):
            raise BadName(f"pod {namespace}/{name}: container name {container.get('name')!r} cannot be a directory")
    return PodPlaces(settings.pods / uid, settings.volumes / "pods" / uid, settings.logs / f"{namespace}_{name}_{uid}")
