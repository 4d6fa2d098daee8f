"""A count of what a cluster could leave behind: processes, namespaces, mounts, links, groups, sockets, files.

Take one before and one after, and compare: `taken() - before` names what is new on the machine. Others do things there
meanwhile, so tests count what is their own: of what is new, what carries their names (`own`), and what the processes
`below` one, or those that were told of a folder (`told_of`), are and hold (`of`). `tools/counted.py` does so around the
whole suite.
"""

import os
from collections.abc import Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
LISTENING = "0A"     # st of a listening TCP socket in /proc/net/tcp
LOOPBACK = ("7F", "00000000000000000000000001000000")     # how its addresses end in /proc/net/tcp, and ::1 as a whole
MARKS = ("trainmaster",)                                   # what our files and mounts have in their names
GROUPS = Path("/sys/fs/cgroup")
WATCHED = (Path("/tmp"), Path("/var/tmp"), Path("/run"), Path("/dev/shm"))  # noqa: S108  looked at, not written to


@dataclass(frozen=True, slots=True)
class Census:
    """What is there, each as a set of descriptions."""

    processes: frozenset[str]
    namespaces: frozenset[str]
    mounts: frozenset[str]
    links: frozenset[str]
    groups: frozenset[str]
    sockets: frozenset[str]
    files: frozenset[str]

    def __sub__(self, before: "Census") -> dict[str, list[str]]:
        """What is here and was not there before, by sort; empty if nothing."""
        new = {f.name: sorted(getattr(self, f.name) - getattr(before, f.name)) for f in fields(self)}
        return {sort: found for sort, found in new.items() if found}


def taken(*, folders: Iterable[Path] = (), ignoring: Iterable[Path] = ()) -> Census:
    """Look now. `folders` are listed completely; of the machine's temporary folders, only their first level."""
    pids = _pids()
    return Census(
        processes=frozenset(filter(None, map(_process, pids))),
        namespaces=frozenset(name for pid in pids for name in _namespaces(pid)),
        mounts=frozenset(Path("/proc/self/mountinfo").read_text().splitlines()),
        links=frozenset(entry.name for entry in Path("/sys/class/net").iterdir()),
        groups=frozenset(_groups()),
        sockets=frozenset(_sockets()),
        files=frozenset(_files(folders)) - {str(path) for path in ignoring},
    )


def _process(pid: str) -> str | None:
    """Kernel threads come and go by themselves and have no command line."""
    with suppress(OSError):
        command = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        state = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0]
        if command or state == "Z":
            return f"{pid} {command or '(zombie)'}"
    return None


def _namespaces(pid: str) -> Iterable[str]:
    for name in NAMESPACES:
        with suppress(OSError):
            yield str(Path("/proc", pid, "ns", name).readlink())


def _groups() -> Iterable[str]:
    """By a walk that passes over what goes away before its eyes, as groups of pods do; rglob raises."""
    for parent, folders, _ in os.walk(GROUPS):
        yield from (os.path.join(parent, name) for name in folders if name.startswith("trainmaster-"))  # noqa: PTH118


def _sockets() -> Iterable[str]:
    return (text for _, text in _all_sockets())


def _all_sockets() -> Iterable[tuple[str, str]]:
    """Inode and description of all sockets of this network that others can speak to."""
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path("/proc/net", protocol).read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == LISTENING or protocol.startswith("udp"):
                yield columns[9], f"{protocol} {columns[1]}"
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        columns = line.split(maxsplit=7)
        if len(columns) == 8:
            yield columns[6], f"unix {columns[7]}"


def _files(folders: Iterable[Path]) -> Iterable[str]:
    for folder in WATCHED:
        with suppress(OSError):
            yield from (str(path) for path in folder.iterdir())
    for folder in folders:
        for top, below, names in os.walk(folder):
            yield from (f"{top}/{name}" for name in (*below, *names))


def own(new: dict[str, list[str]], marks: Iterable[str]) -> dict[str, list[str]]:
    """Of what is new on the machine, what carries one of these marks; and all links, which come by no accident."""
    marks = tuple(marks)
    marked = {sort: [one for one in new.get(sort, ()) if any(mark in one for mark in marks)]
              for sort in ("mounts", "files", "groups")}
    return marked | {"links": new.get("links", [])}


def below(pid: int) -> list[int]:
    """The processes that descend from one."""
    children: dict[int, list[int]] = {}
    for each in _pids():
        with suppress(OSError):
            parent = int(Path("/proc", each, "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(each))
    found, new = [], [pid]
    while new:
        new = [child for each in new for child in children.get(each, ())]
        found += new
    return found


def told_of(folder: Path) -> list[int]:
    """The processes that have a folder in their command line or environment: a cluster's own have its home there."""
    found = []
    for pid in _pids():
        with suppress(OSError):
            if any(os.fsencode(folder) in Path("/proc", pid, file).read_bytes() for file in ("cmdline", "environ")):
                found.append(int(pid))
    return found


def homes(besides: Container[int]) -> set[Path]:
    """Those of clusters that others run."""
    found = set()
    for pid in _pids():
        with suppress(OSError):
            if int(pid) not in besides:
                found |= {Path(os.fsdecode(each.partition(b"=")[2]))
                          for each in Path("/proc", pid, "environ").read_bytes().split(b"\0")
                          if each.startswith(b"TRAINMASTER_HOME=")}
    return found


def of(pids: Iterable[int]) -> dict[str, list[str]]:
    """What these processes are and hold: their namespaces that are not ours, and their sockets in our network."""
    there = [str(pid) for pid in pids]
    ours = set(_namespaces("self"))
    open_ones = {inode for pid in there for inode in _open(pid)}
    return {
        "processes": sorted(filter(None, map(_process, there))),
        "namespaces": sorted({name for pid in there for name in _namespaces(pid)} - ours),
        "sockets": sorted(text for inode, text in _all_sockets() if inode in open_ones),
    }


def doors() -> dict[str, str]:
    """Listening TCP sockets of this network that other machines can reach: address by inode."""
    found = {}
    for protocol in ("tcp", "tcp6"):
        for line in Path("/proc/net", protocol).read_text().splitlines()[1:]:
            columns = line.split()
            address = columns[1].partition(":")[0]
            if columns[3] == LISTENING and not address.endswith(LOOPBACK):
                found[columns[9]] = f"{protocol} {columns[1]}"
    return found


def holder(inode: str, pids: Iterable[int]) -> str:
    """The one of these processes that has a socket; "" if it is none, or one of a pod that was given our network."""
    ours = Path("/proc/self/ns/mnt").readlink()
    for pid in map(str, pids):
        with suppress(OSError):
            if inode in _open(pid) and Path("/proc", pid, "ns/mnt").readlink() == ours:
                return _process(pid) or ""
    return ""


def _pids() -> list[str]:
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _open(pid: str) -> set[str]:
    """The inodes of the sockets that a process has."""
    found = set()
    with suppress(OSError):
        for entry in Path("/proc", pid, "fd").iterdir():
            with suppress(OSError):
                kind, _, inode = str(entry.readlink()).partition(":[")
                if kind == "socket":
                    found.add(inode.removesuffix("]"))
    return found
