"""A count of what a cluster could leave behind: processes, namespaces, mounts, links, groups, sockets, files.

Take one before and one after, and compare: `taken() - before` names what is new. What other programs do meanwhile is
seen as well, so tests that compare must not run beside others that start programs.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
LISTENING = "0A"     # st of a listening TCP socket in /proc/net/tcp
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
    pids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return Census(
        processes=frozenset(filter(None, map(_process, pids))),
        namespaces=frozenset(name for pid in pids for name in _namespaces(pid)),
        mounts=frozenset(Path("/proc/self/mountinfo").read_text().splitlines()),
        links=frozenset(entry.name for entry in Path("/sys/class/net").iterdir()),
        groups=frozenset(str(path) for path in GROUPS.rglob("trainmaster-*")),
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


def _sockets() -> Iterable[str]:
    for protocol in ("tcp", "tcp6"):
        for line in Path("/proc/net", protocol).read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == LISTENING:
                yield f"{protocol} {columns[1]}"
    for protocol in ("udp", "udp6"):
        for line in Path("/proc/net", protocol).read_text().splitlines()[1:]:
            yield f"{protocol} {line.split()[1]}"
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        columns = line.split(maxsplit=7)
        if len(columns) == 8:
            yield f"unix {columns[7]}"


def _files(folders: Iterable[Path]) -> Iterable[str]:
    for folder in WATCHED:
        with suppress(OSError):
            yield from (str(path) for path in folder.iterdir())
    for folder in folders:
        for top, below, names in os.walk(folder):
            yield from (f"{top}/{name}" for name in (*below, *names))
