"""What the helper is asked for: a pod and its containers as plans of a sandbox and of shims."""

import os
import pwd
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainmaster.api.meta import Object, namespace_of
from trainmaster.cluster.kubelet import isolation, linux, sysctls
from trainmaster.cluster.kubelet.binds import Bind
from trainmaster.cluster.kubelet.confinement import LimitPlan
from trainmaster.cluster.kubelet.environment import ConfigError, hostname, security_of, shares_network, user_of
from trainmaster.cluster.kubelet.holder import BRIDGE, GATEWAY, PREFIX
from trainmaster.cluster.kubelet.images import Image
from trainmaster.cluster.kubelet.rootfs import Shell
from trainmaster.cluster.kubelet.sandbox import SandboxPlan
from trainmaster.cluster.kubelet.settings import PodPlaces
from trainmaster.cluster.kubelet.shim import ContainerPlan
from trainmaster.cluster.kubelet.volumes import Volumes

DOMAIN = "cluster.local"
SHARED_MEMORY = 64 << 20                  # /dev/shm; who needs more mounts an emptyDir of medium Memory there
LOOPBACK = "127.0.1.1"                    # where a machine finds its own name, if its /etc/hosts does not say
TERMINATION_LOG = "/dev/termination-log"
TERMINATION_FILE = "termination-log"      # in the attempt's directory
# The host's own may send names to services that a pod cannot reach (systemd-resolved, mDNS, LDAP).
NAME_SERVICES = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n"


def sandbox_plan(pod: Object, places: PodPlaces, address: str, volumes: Volumes) -> SandboxPlan:
    return {
        "directory": str(places.pod),
        "hostname": hostname(pod),
        "address": address,
        "prefix": PREFIX,
        "gateway": GATEWAY,
        "bridge": BRIDGE,
        "port": f"v{secrets.token_hex(6)}",
        "host_network": shares_network(pod),
        "memory": [{"path": str(places.shm), "size": 0 if isolation.shares_memory(pod) else SHARED_MEMORY},
                   *volumes.memory],
        "sysctls": sysctls.wanted(pod),
    }


def container_plan(
    pod: Object, container: Object, image: Image, places: PodPlaces, *, attempt: int, level: int, address: str,
    rootless: bool, argv: Sequence[str], environment: Mapping[str, str], binds: Sequence[Bind],
    hidden: Sequence[Path], limits: LimitPlan, log_limits: tuple[int, int], resolver: str = "", hosts: str = "",
    private: Sequence[str] = (), devices: Sequence[str] = (), facts: Mapping[str, object] | None = None,
    shell: Shell | None = None,
) -> ContainerPlan:
    directory = places.attempt(container["name"], attempt)
    security = security_of(pod, container)
    privileged = bool(security.get("privileged"))
    isolation.check_container(security)
    user = user_of(pod, container, image)
    if security.get("runAsNonRoot") and user == 0 and not rootless:
        raise ConfigError("container has runAsNonRoot and image will run as root")
    working = str(container.get("workingDir") or image.directory or "/")
    end = str(container.get("terminationMessagePath") or TERMINATION_LOG)
    return {
        "attempt_directory": str(directory),
        "log": str(places.log(container["name"], attempt)),
        "log_bytes": log_limits[0],
        "log_files": log_limits[1],
        "root": {
            "rootless": rootless,
            "host_network": shares_network(pod),
            "scratch": str(places.layer(container["name"], attempt)),
            "etc": {
                "hosts": hosts_file(pod, address, hosts), "resolv.conf": resolver_file(pod, resolver),
                "hostname": hostname(pod) + "\n", "nsswitch.conf": NAME_SERVICES,
            },
            "image": str(image.root or ""),
            "homes": [] if image.root else homes(os.environ.get("HOME", ""), os.getuid()),
            "hidden": [] if image.root else [str(path) for path in hidden],
            "devices": list(devices),
            "private": [] if image.root else list(private),
            "shm": str(places.shm),
            "binds": [
                *(_shown(path, str(path)) for path in _outermost(image.visible)),
                *(_shown(path, target) for target, path in image.files.items()),
                *binds,
                {"source": str(directory / TERMINATION_FILE), "target": end, "readonly": False},
            ],
            "privileged": privileged,
            "readonly": bool(security.get("readOnlyRootFilesystem")),
            "shell": None if image.root else shell,
        },
        "argv": list(argv),
        "stdin": bool(container.get("stdin")),
        "stdin_once": bool(container.get("stdinOnce")),
        "tty": bool(container.get("tty")),
        "environment": dict(environment),
        "directory": working,
        "user": user,
        "group": int(security.get("runAsGroup", image.group) or 0),
        "groups": [int(group) for group in security.get("supplementalGroups") or ()]
        + ([int(security["fsGroup"])] if security.get("fsGroup") is not None else []),
        "capabilities": capabilities(security.get("capabilities") or {}, privileged=privileged),
        # Kubernetes' default is to allow it. Here the programs are the host's, so it must be asked for.
        "new_privileges": privileged or bool(security.get("allowPrivilegeEscalation")),
        "limits": limits,
        "share_processes": bool(pod["spec"].get("shareProcessNamespace") or container.get("targetContainerName")),
        "facts": {"level": level, "image": image.name, **(facts or {})},
    }


def capabilities(wanted: Object, *, privileged: bool) -> list[int]:
    """The numbers of the capabilities a container has. Raises ConfigError for a name that is none."""
    if privileged:
        return list(range(len(linux.CAPABILITY_NAMES)))
    numbers = {name: number for number, name in enumerate(linux.CAPABILITY_NAMES)}
    found = set(linux.DEFAULT_CAPABILITIES)
    for name in _capability_names(wanted.get("drop")):
        found = set() if name == "ALL" else found - {_number(name, numbers)}
    for name in _capability_names(wanted.get("add")):
        found |= set(numbers.values()) if name == "ALL" else {_number(name, numbers)}
    return sorted(found)


def hosts_file(pod: Object, address: str, ours: str = "") -> str:
    """The pod's /etc/hosts, given the machine's own: itself, and the aliases it asks for.

    Who shares the host's network finds there what the host's programs do.
    """
    own, subdomain = hostname(pod), pod["spec"].get("subdomain")
    if shares_network(pod):
        known = {name for line in ours.splitlines() for name in line.partition("#")[0].split()[1:]}
        more = [] if own in known else [f"{LOOPBACK}\t{own}"]
        lines = ["# Kubernetes-managed hosts file (host network).", *ours.splitlines(), *more]
    else:
        names = f"{own}.{subdomain}.{namespace_of(pod)}.svc.{DOMAIN}\t{own}" if subdomain else own
        lines = [
            "# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost",
            "::1\tlocalhost ip6-localhost ip6-loopback", f"{address}\t{names}",
        ]
    aliases = pod["spec"].get("hostAliases") or ()
    if aliases:
        lines.append("\n# Entries added by HostAliases.")
        lines += ["\t".join([str(alias["ip"]), *map(str, alias.get("hostnames") or ())]) for alias in aliases]
    return "\n".join(lines) + "\n"


def resolver_file(pod: Object, ours: str = "") -> str:
    """The pod's /etc/resolv.conf, given the machine's own.

    Who shares the host's network uses the machine's resolvers, whatever the policy: ours cannot be reached from there.
    Who has a network of its own and wants the machine's (`Default`) asks them through ours: they may be on loopback.
    """
    more = pod["spec"].get("dnsConfig") or {}
    policy, shared = pod["spec"].get("dnsPolicy") or "ClusterFirst", shares_network(pod)
    servers, search, options = list(more.get("nameservers") or ()), list(more.get("searches") or ()), {}
    known = [line.split() for line in ours.splitlines() if line.strip()]
    if policy != "None":
        servers = [*([line[1] for line in known if line[0] == "nameserver" and len(line) > 1] if shared else [GATEWAY]),
                   *servers]
        if policy == "Default" or (shared and policy == "ClusterFirst"):
            search = [*(name for line in known if line[0] == "search" for name in line[1:]), *search]
        else:
            search = [f"{namespace_of(pod)}.svc.{DOMAIN}", f"svc.{DOMAIN}", DOMAIN, *search]
            options = {"ndots": "5"}
    options.update({str(one["name"]): str(one.get("value") or "") for one in more.get("options") or ()})
    shown = [f"{name}:{value}" if value else name for name, value in options.items()]
    lines = [*(f"nameserver {server}" for server in servers[:3])]
    lines += [f"search {' '.join(search)}"] if search else []
    lines += [f"options {' '.join(shown)}"] if shown else []
    return "\n".join(lines) + "\n"


def homes(home: str, uid: int) -> list[str]:
    """The directories that hold people's own files."""
    found = ["/root", "/home"]
    try:
        candidates = [home, pwd.getpwuid(uid).pw_dir]
    except KeyError:
        candidates = [home]
    for candidate in candidates:
        path = Path(candidate)
        # A system account may have "/" or "/usr" for its home: hiding those would hide the machine.
        if path.is_absolute() and len(path.parts) > 2 and not any(path.is_relative_to(one) for one in found):
            found.append(str(path))
    return found


def _shown(path: Path, target: str) -> Bind:
    return {"source": str(path), "target": target, "readonly": True}


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Without those inside another, shortest first."""
    found: list[Path] = []
    for path in sorted(set(paths), key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(one) for one in found):
            found.append(path)
    return found


def _capability_names(names: Sequence[str] | None) -> list[str]:
    return [str(name).upper().removeprefix("CAP_") for name in names or ()]


def _number(name: str, numbers: Mapping[str, int]) -> int:
    if name not in numbers:
        raise ConfigError(f"there is no capability named {name!r}")
    return numbers[name]
