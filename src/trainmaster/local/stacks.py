"""Where the Python programs of pods on this machine stand, by py-spy; where that may not look, by Python itself.

The kernel lets us look: the processes are ours, or those of user namespaces that we made. A program inside of the pod
was rejected: it would have to be in every image. Some machines forbid it all the same (ptrace_scope 3, a container's
profile). Then Python's own faulthandler, which `run` turns on for scripts, writes the stack to the log; as it ends the
program by that, it is not done but said how.

A handler that would not end it (`faulthandler.register`) was rejected. Nobody but the program itself can register one:
a `sitecustomize` of ours would take the place of the image's own, a wrapper would be `__main__` instead of the script,
which pickling and spawned workers notice, and the signals that are free for it, SIGUSR1 and SIGUSR2, are those by which
schedulers tell a training to write its checkpoint.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.cluster.kubelet import records
from trainmaster.local.home import Home

PATIENCE = 10.0
MOST_LINES = 40
NOT_INSTALLED = "where it hangs can be seen with py-spy: `pip install py-spy`, then ask again"
FORBIDDEN = ("permission denied", "not permitted")
ABORT = 1 << 5           # SIGABRT in a mask of signals


@dataclass(frozen=True, slots=True)
class Stack:
    """One process of a pod; without lines, why they could not be had."""

    pid: int
    lines: tuple[str, ...]


def tool() -> str | None:
    """py-spy, beside this Python or on the path."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def stacks(home: Home, uid: str, program: str) -> list[Stack]:
    """Of all Python processes of a pod."""
    return [Stack(pid, tuple(_dumped(program, pid))) for pid in _pythons(home.run / "pods" / uid)]


def _dumped(program: str, pid: int) -> Iterator[str]:
    try:
        done = subprocess.run([program, "dump", "--pid", str(pid)], capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        yield f"py-spy did not answer: {problem}"
        return
    if done.returncode == 0:
        yield from done.stdout.splitlines()[:MOST_LINES]
    elif any(word in done.stderr.lower() for word in FORBIDDEN):
        yield from by_itself(Path(f"/proc/{pid}"), done.stderr.strip().splitlines()[-1])
    else:
        yield f"py-spy: {done.stderr.strip()}"


def by_itself(process: Path, cause: str) -> Iterator[str]:
    """How a program that nobody may look into can be made to say where it stands."""
    yield f"py-spy may not look into it: {cause}"
    try:
        facts = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
        inside, heard = facts["NSpid"].split()[-1], int(facts["SigCgt"], 16) & ABORT
    except (OSError, KeyError, ValueError):
        return
    if heard:
        yield (f"it writes where it stands to its log, and ends, if you send it SIGABRT: trainmaster exec JOB/REPLICA "
               f"-- kill -ABRT {inside}")
    else:
        yield "with PYTHONFAULTHANDLER=1 in its environment it would write that to its log at SIGABRT"


def _pythons(pod: Path) -> list[int]:
    """The Python processes below the shims of a pod, oldest first."""
    lives = [place.parent for place in pod.glob(f"*/*/{records.SHIM}")
             if not (place.parent / records.EXIT).exists()]
    shims = [int(record["pid"]) for life in lives if (record := records.read(str(life), records.SHIM))]
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting: Sequence[int] = shims
    while waiting:
        below = [child for pid in waiting for child in children.get(pid, ())]
        found += [pid for pid in below if _is_python(pid)]
        waiting = below
    return sorted(found)


def _processes() -> Iterator[tuple[int, int]]:
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                text = (place / "stat").read_text()
            except OSError:
                continue
            yield int(place.name), int(text.rpartition(")")[2].split()[1])


def _is_python(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.startswith("python")
    except OSError:
        return False
