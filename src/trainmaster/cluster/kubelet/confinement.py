"""The limits of one container, as its shim keeps them.

Where the machine lets us have control groups the kernel keeps the limits: the command enters its groups before anything
of it runs, the shim stays outside (a shim killed for its container's hunger could not write down why). Elsewhere the
shim looks at the memory itself. It looks seldom while there is much room and often when there is little, and measures
exactly (PSS, which costs a walk over the page tables) only when the cheap upper bound (RSS, where shared pages count
once per process) is over the limit. RLIMIT_AS was rejected: it limits addresses, of which CUDA, Go and the JVM reserve
many times what they use. The number of processes is kept by the PID namespace, where the kernel has a limit for each
(RLIMIT_NPROC was rejected: for an ordinary user it counts all pods together, so that one could stop the others).

Small standard modules only: every shim carries this one.
"""

# pathlib is too large to carry
# ruff: noqa: PTH123, PTH208

import contextlib
import os
from collections.abc import Callable
from typing import TypedDict

# Nobody can fill more than about this much memory in a second, so room divided by it is a time without danger.
_FASTEST = 1 << 30
_SOONEST, _LATEST = 0.05, 0.5
_EVENTS = ("memory.events", "memory.oom_control")     # of both versions; each has a line "oom_kill N"


class LimitPlan(TypedDict):
    """What the agent asks for."""

    groups: list[str]     # directories of the control groups that the command joins
    watch: int            # bytes that the shim itself must hold the container to; 0: the kernel does, or none are set
    score: int            # oom_score_adj: who goes first when the whole machine has no memory left
    processes: int        # how many there may be in the PID namespace; 0: a group counts them


class Confinement:
    """Opened as long as the host's files can still be seen; used after that."""

    def __init__(self, plan: LimitPlan) -> None:
        self._plan = plan
        flags = os.O_WRONLY | os.O_CLOEXEC
        self._doors = [os.open(f"{group}/cgroup.procs", flags) for group in plan["groups"]]
        self._events = _opened([f"{group}/{name}" for group in plan["groups"] for name in _EVENTS])
        self._due = 0.0
        self._over = False
        if plan["processes"] and counts_processes(os.uname().release):
            with contextlib.suppress(OSError):      # one that may not is not worth a pod that does not start
                _write("/proc/sys/kernel/pid_max", plan["processes"])

    def enter(self) -> None:
        """Join the groups; whatever is executed from here on is held by them."""
        for door in self._doors:
            os.write(door, b"0")
        try:
            _write("/proc/self/oom_score_adj", self._plan["score"])
        except PermissionError:
            return      # only root may become less likely to be killed

    def wait(self, now: float) -> float | None:
        """Seconds until the memory must be looked at; None: never."""
        return max(0.0, self._due - now) if self._plan["watch"] and not self._over else None

    def exceeded(self, now: float, used: Callable[[int], int] | None = None) -> bool:
        """Whether the container has more memory than it may, if it is time to look; True once."""
        limit = self._plan["watch"]
        if not limit or self._over or now < self._due:
            return False
        has = (used or memory_of_all)(limit)
        self._due = now + pause(limit - has)
        self._over = has > limit
        return self._over

    def killed(self) -> bool:
        """Whether something of the container was killed for its memory."""
        if self._over:
            return True
        if self._events < 0:
            return False
        try:
            return kills(os.pread(self._events, 4096, 0)) > 0
        except OSError:
            return False      # the group is gone


def counts_processes(release: str) -> bool:
    """Whether a kernel has a pid_max for each PID namespace (6.14). Of others it is the machine's, not ours to set."""
    words = release.replace("-", ".").split(".")
    return [int(word) for word in words[:2] if word.isdecimal()] >= [6, 14]


def _write(path: str, number: int) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(str(number).encode())


def pause(room: int) -> float:
    """How long nothing can happen."""
    return min(_LATEST, max(_SOONEST, room / _FASTEST))


def kills(events: bytes) -> int:
    """The number of processes killed for their group's memory."""
    for line in events.splitlines():
        words = line.split()
        if words[:1] == [b"oom_kill"] and len(words) == 2:
            return int(words[1])
    return 0


def memory_of_all(enough: int) -> int:
    """Bytes that all processes of the caller's PID namespace but the caller use. Exact only when more than `enough` is
    possible. Files do not count: /tmp and /run are on disk, and memory volumes belong to the pod.
    """
    others = [name for name in os.listdir("/proc") if name.isdecimal() and name != "1"]
    bound = sum(map(_resident, others))
    return bound if bound <= enough else sum(map(_proportional, others))


def _resident(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb", buffering=0) as file:
            return int(file.read(200).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0           # it has just ended


def _proportional(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb", buffering=0) as file:
            for line in file.read(4096).splitlines():
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except PermissionError:
        return _resident(pid)
    except OSError:
        return 0
    return 0


def _opened(candidates: list[str]) -> int:
    for path in candidates:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
    return -1
