"""Run a command and count what it leaves on the machine, which must be nothing: python tools/counted.py COMMAND …

Around each run of the test suite (see the Makefile). The machine is not ours alone, so only what is the command's own
is counted: the processes below this one, which adopts those that lose their parents, with their namespaces and sockets;
files in the folder for temporary files that is made for it; mounts and files that carry our names; and links and
control groups. While it runs, none of its processes may listen where other machines can connect, but in pods; programs
of others, which we are compared with, do as they like.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainmaster.cluster.kubelet import cgroups
from trainmaster.cluster.kubelet.linux import adopt_orphans
from trainmaster.testing import census

PATIENCE = 30.0       # seconds for what is on its way out when the command ends
KEPT = ("pytest-of-",)                                        # by pytest, of the last runs
CACHES = (Path("/var/tmp/trainmaster-tests"),)                # noqa: S108  environments for the next run
THEIRS = "/trainmaster-tests/kubernetes/"                      # in the command line of a program that we did not write
LOOK_EVERY = 1.0


def main(command: Sequence[str]) -> int:
    adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="tm-"))
    folder.chmod(0o1777)                                      # ordinary users are among those who run in it
    before = census.taken(ignoring=CACHES)
    open_doors: set[str] = set()
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(over, open_doors, census.doors()), daemon=True)
    watch.start()
    code = _run(command, {**os.environ, "TMPDIR": str(folder)})
    left = _left(before, folder)
    over.set()
    watch.join()
    if open_doors:
        left["listeners that other machines can reach"] = sorted(open_doors)
    for pid in census.below(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    if not code or not any(folder.iterdir()):                 # of a failed run, what its tests wrote may be looked at
        shutil.rmtree(folder, ignore_errors=True)
    for sort, found in left.items():
        sys.stderr.write(f"Left behind, {len(found)} {sort}:\n" + "".join(f"    {one}\n" for one in found))
    if not left:
        sys.stderr.write("Nothing is left behind: no process, namespace, mount, link, control group, socket or file.\n")
    return code or int(bool(left))


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Until the command ends; who loses its parent meanwhile is waited for as an init does."""
    started = subprocess.Popen(command, env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)              # the command has it from the terminal, too
    signal.signal(signal.SIGTERM, lambda *_: os.kill(started.pid, signal.SIGTERM))
    while True:
        pid, status = os.wait()
        if pid == started.pid:
            return os.waitstatus_to_exitcode(status) & 0xFF


def _left(before: census.Census, folder: Path) -> dict[str, list[str]]:
    """What is the command's own and still there after a while."""
    def look() -> dict[str, list[str]]:
        while _reaped():
            pass
        new = census.taken(ignoring=CACHES) - before
        found = {
            **census.own(new, (*census.MARKS, str(folder))), **census.of(census.below(os.getpid())),
            "temporary files": [str(path) for path in folder.iterdir() if not path.name.startswith(KEPT)],
        }
        homes = census.homes(besides=census.below(os.getpid()))
        theirs = {cgroups.name_for(home / "run") for home in homes} | _names_elsewhere(found["groups"])
        found["groups"] = [path for path in found["groups"] if not theirs & set(Path(path).parts)]
        found["files"] = [path for path in found["files"]
                          if path != str(folder) and not any(home.is_relative_to(path) for home in homes)]
        return {sort: things for sort, things in found.items() if things}

    return _patiently(look)


def _names_elsewhere(groups: list[str]) -> set[str]:
    """Of clusters that were started where we are not: their groups are below the group of somebody else's session."""
    trees = cgroups.hierarchies(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    above = {place for tree in trees for place in (tree.own, *tree.own.parents)}
    return {Path(group).name for group in groups if Path(group).parent not in above}


def _reaped() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _patiently(look: Callable[[], dict[str, list[str]]]) -> dict[str, list[str]]:
    deadline = time.monotonic() + PATIENCE
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _watch(over: threading.Event, found: set[str], known: Mapping[str, str]) -> None:
    """Add the doors that are opened until it is over to those found, but for those that are known."""
    while not over.wait(LOOK_EVERY):
        for inode, address in (census.doors().items() - known.items()):
            holder = census.holder(inode, census.below(os.getpid()))
            if holder and THEIRS not in holder.partition(" --")[0]:
                found.add(f"{address} {holder}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
