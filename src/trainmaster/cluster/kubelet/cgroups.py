"""Control groups: which this machine lets us have, and the ones of our pods.

Both versions are met in the field, often both at once, and an ordinary user may write only below a point that was
handed to him. So nothing is concluded from files: a group is made where it would be needed and a process put into it,
controller by controller. What cannot be had is not replaced here (`confinement` watches the memory then).

    <our own group or the nearest that can have children>/trainmaster-<home>/<pod uid>/<container>-<attempt>

Processes and shares of the pod are limited one level above those of its containers. Groups of dead processes stay until
somebody removes them; where ours are is therefore written down in the runtime directory, and whoever takes over, or
takes the cluster down, removes those that nobody needs.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import records
from trainmaster.cluster.kubelet.machinefiles import text_of

RECORD = "cgroups.json"
CONTROLLERS = ("memory", "cpu", "pids")
PERIOD = 100_000             # microseconds; the kernel's default and Kubernetes'
# Threads count as processes here, and a training process has hundreds.
MOST_PROCESSES = 16_384
REMEDY = (
    "For limits by the kernel run as root, or hand a group over: 'systemd-run --user --scope -p Delegate=yes "
    "trainmaster up'; in Docker, '--cgroupns=private' and a writable /sys/fs/cgroup."
)
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One tree of groups, as mounted, and where we are in it."""

    version: int
    controllers: frozenset[str]     # of a tree of the second version those are asked for group by group
    mount: Path
    own: Path


@dataclass(frozen=True, slots=True)
class Limits:
    """What a pod or container may have; None: as much as there is."""

    memory: int | None = None
    cpu: Fraction | None = None         # cores
    share: Fraction = Fraction(0)       # cores it asked for: its part when everybody wants more
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Our groups: one folder per controller that we can have (with the second version, the same for all)."""

    folders: Mapping[str, Path] = field(default_factory=dict)
    version: int = 0
    missing: str = ""               # why there are none, or not all

    @property
    def limits_memory(self) -> bool:
        return "memory" in self.folders

    def make(self, uid: str, pod: Limits, name: str, container: Limits) -> list[str]:
        """The groups of an attempt, made and set; the folders that its processes join. Raises OSError."""
        joined: list[str] = []
        for folder in dict.fromkeys(self.folders.values()):
            controllers = [name for name, where in self.folders.items() if where == folder]
            (folder / uid).mkdir(parents=True, exist_ok=True)      # somebody may have tidied up an empty one of ours
            if self.version == 2:
                for above in (folder, folder / uid):
                    _enable(above, controllers)
            _set(folder / uid, settings(pod, self.version), controllers)
            (folder / uid / name).mkdir(exist_ok=True)
            _set(folder / uid / name, settings(container, self.version), controllers)
            joined.append(str(folder / uid / name))
        return joined

    def remove(self, uid: str, name: str = "") -> None:
        """Remove the groups of a pod, or of one attempt. Those that still have processes stay."""
        for folder in dict.fromkeys(self.folders.values()):
            _remove(folder / uid / name if name else folder / uid)

    def sweep(self) -> None:
        """Remove what has no processes: groups of pods that died with the machine or the holder."""
        for folder in dict.fromkeys(self.folders.values()):
            for entry in _children(folder):
                _remove(entry)


def begin(run: Path) -> Cgroups:
    """Have groups for the cluster of a runtime directory. The first that works is taken, per controller."""
    found = hierarchies(text_of("/proc/self/mountinfo"), text_of("/proc/self/cgroup"))
    name = name_for(run)
    earlier = recorded(run)
    for version in (2, 1):
        trees = [tree for tree in found if tree.version == version]
        folders, why = _tried(trees, name, earlier)
        if "memory" in folders:
            left = [folder for folder in earlier if folder not in folders.values()]
            for folder in left:
                _remove(folder)
            kept = [*folders.values(), *(folder for folder in left if folder.exists())]
            records.write(str(run), RECORD, {"folders": [str(folder) for folder in dict.fromkeys(kept)]})
            lacking = [controller for controller in CONTROLLERS if controller not in folders]
            made = Cgroups(folders, version, f"no controller for {', '.join(lacking)}" if lacking else "")
            made.sweep()
            return made
        for folder in folders.values():
            _remove(folder)
    end(run)
    return Cgroups(missing=why if found else "no control groups are mounted")


def name_for(run: Path) -> str:
    """Of the group that holds those of a cluster."""
    return f"trainmaster-{hashlib.sha256(os.fsencode(run)).hexdigest()[:12]}"


def end(run: Path) -> None:
    """Remove all groups of the cluster of a runtime directory; its processes are dead."""
    remove(recorded(run))


def remove(folders: Iterable[Path]) -> None:
    """The same, for whoever noted them while there was a runtime directory."""
    for folder in folders:
        _remove(folder)


def hierarchies(mountinfo: str, own: str) -> list[Hierarchy]:
    """The trees that are mounted, from the two files of a process. Pure."""
    places: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        places.update(dict.fromkeys(controllers.split(","), path))
    found = []
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        root, mount = fields.split()[3:5]
        named = frozenset(options.split(",")) & frozenset(CONTROLLERS)
        if kind not in ("cgroup", "cgroup2") or (kind == "cgroup" and not named):
            continue
        path = places.get(next(iter(sorted(named)), ""), "/") if kind == "cgroup" else places.get("", "/")
        # In a container the mount shows a part of the tree, and the path may be told from above it.
        inner = path.removeprefix(root) if root != "/" and path.startswith(root) else path
        found.append(Hierarchy(2 if kind == "cgroup2" else 1, named, Path(mount), Path(mount, inner.strip("/"))))
    return found


def settings(limits: Limits, version: int) -> dict[str, list[tuple[str, str]]]:
    """What is written to which file, by controller. Pure."""
    weight = max(2, min(262_144, int(limits.share * 1024)))
    wanted: dict[str, list[tuple[str, str]]] = {"memory": [], "cpu": [], "pids": []}
    if version == 2:
        wanted["cpu"].append(("cpu.weight", str(1 + (weight - 2) * 9999 // 262_142)))
    else:
        wanted["cpu"].append(("cpu.shares", str(weight)))
    if limits.cpu is not None:
        quota = max(1000, int(limits.cpu * PERIOD))
        files = [("cpu.max", f"{quota} {PERIOD}")] if version == 2 else [
            ("cpu.cfs_period_us", str(PERIOD)), ("cpu.cfs_quota_us", str(quota))]
        wanted["cpu"] += files
    if limits.memory is not None:
        if version == 2:
            # All of a container goes at once, as with Kubernetes: half a training process is of no use to anybody.
            wanted["memory"] = [("memory.max", str(limits.memory)), ("memory.oom.group", "1")]
        else:
            wanted["memory"] = [("memory.limit_in_bytes", str(limits.memory))]
    if limits.processes is not None:
        wanted["pids"] = [("pids.max", str(limits.processes))]
    return wanted


def limits_of(container: Object) -> Limits:
    """What a container's resources say. Pure."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    memory, cpu = limits.get("memory"), limits.get("cpu")
    return Limits(
        int(quantity.parse(memory)) or None if memory is not None else None,
        quantity.parse(cpu) or None if cpu is not None else None,
        quantity.parse(requests.get("cpu", cpu or "0")),
    )


def limits_of_pod(pod: Object, processes: int = MOST_PROCESSES) -> Limits:
    containers = [*(pod["spec"].get("containers") or ()), *(pod["spec"].get("initContainers") or ())]
    return Limits(share=sum((limits_of(one).share for one in containers), Fraction(0)), processes=processes)


def score(container: Object, quality: str, machine: int) -> int:
    """How soon a container's processes are killed when the machine has no memory left: the less it reserved of what it
    uses, the sooner. The figures are the kubelet's. Pure."""
    if quality == "Guaranteed":
        return -997
    if quality == "BestEffort" or not machine:
        return 1000
    requests = (container.get("resources") or {}).get("requests") or {}
    asked = int(quantity.parse(requests.get("memory", "0")))
    return min(999, max(3, 1000 - 1000 * asked // machine))


def _tried(trees: list[Hierarchy], name: str, earlier: list[Path]) -> tuple[dict[str, Path], str]:
    """Folders that work, by controller, and why one did not."""
    folders: dict[str, Path] = {}
    why = ""
    for tree in trees:
        for parent in _parents(tree, earlier, name):
            wanted = tree.controllers if tree.version == 1 else _enabled(parent) & set(CONTROLLERS)
            if not wanted - folders.keys():
                continue
            problem = _try(parent / name, tree.version, sorted(wanted))
            if not problem:
                folders.update(dict.fromkeys(wanted, parent / name))
                break
            why = why or problem
    return folders, why or "the memory controller cannot be had"


def _parents(tree: Hierarchy, earlier: list[Path], name: str) -> list[Path]:
    """Where a group of ours could be, best first: where it was, in our own group, above it up to the whole tree."""
    before = [folder.parent for folder in earlier if folder.name == name and folder.is_relative_to(tree.mount)]
    if tree.version == 1:
        return [*before, tree.own]
    # With the second version a group has either processes or children, so it is never our own.
    above = [folder for folder in tree.own.parents if folder.is_relative_to(tree.mount)]
    return [*before, *above, *([tree.mount] if tree.own == tree.mount else [])]


def _try(folder: Path, version: int, controllers: list[str]) -> str:
    """Make our group and put a process into a group below it; what went wrong, or ""."""
    trial = folder / "trial"
    try:
        folder.mkdir(exist_ok=True)
        if version == 2:
            _enable(folder, controllers)
        trial.mkdir(exist_ok=True)
        _set(trial, settings(Limits(1 << 40, Fraction(1), Fraction(1), 1 << 20), version), controllers)
        # A process of its own: we must not leave the group that we are in.
        done = subprocess.run(["/bin/sh", "-c", 'echo 0 > "$0"', str(trial / "cgroup.procs")],
                              capture_output=True, timeout=_PATIENCE, check=False)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return f"a process cannot be put into a group below {folder.parent}: {''.join(said)}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"groups cannot be made below {folder.parent}: {getattr(error, 'strerror', None) or error}"
    finally:
        _remove(trial)
        with suppress(OSError):
            if not any(entry.is_dir() for entry in folder.iterdir()) and not _enabled(folder) and version == 2:
                folder.rmdir()
    return ""


def _enabled(folder: Path) -> set[str]:
    """The controllers that children of a group of the second version can have."""
    return set(text_of(folder / "cgroup.subtree_control").split())


def _enable(folder: Path, controllers: Iterable[str]) -> None:
    wanted = [name for name in controllers if name not in _enabled(folder)]
    if wanted:
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))


def _set(folder: Path, wanted: Mapping[str, list[tuple[str, str]]], controllers: Iterable[str]) -> None:
    for controller in controllers:
        for name, value in wanted[controller]:
            try:
                (folder / name).write_text(value)
            except FileNotFoundError:
                if not name.startswith("cpu.cfs"):      # a kernel without bandwidth control has no such files
                    raise


def _remove(folder: Path) -> None:
    """A group and those below it, the lowest first; one that has processes stays."""
    for child in _children(folder):
        _remove(child)
    with suppress(OSError):
        folder.rmdir()


def _children(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:              # a group has fifty files; these say what they are unasked
            return [folder / entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def recorded(run: Path) -> list[Path]:
    """Where the groups of the cluster of a runtime directory are."""
    record = records.read(str(run), RECORD) or {}
    return [Path(folder) for folder in record.get("folders") or () if Path(folder).name.startswith("trainmaster-")]
