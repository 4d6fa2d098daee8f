"""What containers and the machine use: CPU and memory, measured when somebody asks.

A rate takes two looks. The one before is remembered, so whoever asks every few seconds (`kubectl top`, an autoscaler)
gets the average since then; after a long silence a second look follows the first within a moment. Nothing is looked at
while nobody asks: an idle cluster measures nothing. Control groups are asked where there are any; elsewhere the
processes of a container are those of its PID namespace, of which the shim is the first.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trainmaster.api.meta import Object, name_of, namespace_of, timestamp
from trainmaster.cluster.kubelet import records
from trainmaster.cluster.kubelet.cgroups import Cgroups
from trainmaster.cluster.kubelet.finding import Refused, attempt_of
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.machinefiles import text_of
from trainmaster.runtime.clock import Clock

MACHINE = ("", "")
# Seconds between the two looks if there is no earlier one, and between which an earlier one is taken.
SHORTEST, LONGEST = 1.0, 120.0
_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")

Key: TypeAlias = tuple[str, str]     # uid of the pod and name of the container, or MACHINE


@dataclass(frozen=True, slots=True)
class Look:
    """Counters at one moment."""

    cpu: int           # nanoseconds since the beginning
    memory: int        # bytes now


@dataclass(frozen=True, slots=True)
class Place:
    """Where the counters of a container are."""

    key: Key
    attempt: int
    groups: tuple[Path, ...]
    shim: int          # its pid


@dataclass(frozen=True, slots=True)
class Looks:
    """All counters at one moment."""

    when: float
    found: Mapping[tuple[Key, int], Look]


Looker: TypeAlias = Callable[[Iterable[Place]], Awaitable[Mapping[tuple[Key, int], Look]]]


class Usage:
    """Measures the containers of a node."""

    def __init__(
        self, name: str, groups: Cgroups, clock: Clock, look: Looker | None = None, *, whole: bool = True
    ) -> None:
        self._name = name
        self._whole = whole
        self._groups = groups
        self._clock = clock
        self._look = look or looked
        self._before: Looks | None = None
        self._turn = asyncio.Lock()

    async def summary(self, lives: Iterable[Life]) -> Object:
        """What is used now, in the form of the kubelet's /stats/summary."""
        running = [life for life in lives if life.processes]
        places = [place for life in running for place in self._places(life)]
        async with self._turn:
            now = self._clock.monotonic()
            before = self._before
            if before is None or not SHORTEST <= now - before.when <= LONGEST \
                    or any((place.key, place.attempt) not in before.found for place in places):
                before = Looks(now, await self._look(places))
                await self._clock.sleep(SHORTEST)
            after = Looks(self._clock.monotonic(), await self._look(places))
            self._before = after
        return told(self._name, running, before, after, timestamp(self._clock.now()), whole=self._whole)

    def _places(self, life: Life) -> Iterable[Place]:
        for container in life.processes:
            try:
                attempt = attempt_of(life, container, previous=False)
            except Refused:
                continue
            record = records.read(str(life.places.attempt(container, attempt)), records.SHIM) or {}
            folders = dict.fromkeys(self._groups.folders.values())
            groups = tuple(folder / life.uid / f"{container}-{attempt}" for folder in folders)
            yield Place((life.uid, container), attempt, groups, int(record.get("pid") or 0))


def told(
    name: str, lives: Iterable[Life], before: Looks, after: Looks, when: str, *, whole: bool = True
) -> Object:
    """Two looks as a summary. Of a node that is not the whole machine, what its containers use is its use. Pure."""
    seconds = max(after.when - before.when, 1e-3)

    def used(*keys: tuple[Key, int]) -> Object:
        now = Look(sum(after.found[key].cpu for key in keys), sum(after.found[key].memory for key in keys))
        spent = sum(max(0, after.found[key].cpu - before.found[key].cpu) for key in keys if key in before.found)
        cores = int(spent / seconds)
        return {"cpu": {"time": when, "usageNanoCores": cores, "usageCoreNanoSeconds": now.cpu},
                "memory": {"time": when, "workingSetBytes": now.memory, "usageBytes": now.memory}}

    by_pod: dict[str, list[Object]] = {}
    for key in after.found:
        if key[0] != MACHINE:
            by_pod.setdefault(key[0][0], []).append({"name": key[0][1], **used(key)})
    pods = [
        {"podRef": {"name": name_of(life.pod), "namespace": namespace_of(life.pod), "uid": life.uid},
         "containers": by_pod[life.uid]}
        for life in lives if life.uid in by_pod
    ]
    counted = [(MACHINE, 0)] if whole else [key for key in after.found if key[0] != MACHINE]
    return {"node": {"nodeName": name, **used(*counted)}, "pods": pods, "window": f"{max(1, round(seconds))}s"}


async def looked(places: Iterable[Place]) -> Mapping[tuple[Key, int], Look]:
    """The counters, read beside the agent's own work."""
    return await asyncio.to_thread(look_at, places)


def look_at(places: Iterable[Place]) -> dict[tuple[Key, int], Look]:
    """The counters of all of these and of the machine, as far as they can be read."""
    found = {(MACHINE, 0): _machine(text_of(Path("/proc/stat")), text_of(Path("/proc/meminfo")))}
    left = []
    for place in places:
        look = _of_groups(place.groups)
        if look is not None:
            found[place.key, place.attempt] = look
        else:
            left.append(place)
    if left:
        found |= _of_processes(left)
    return found


def _machine(stat: str, memory: str) -> Look:
    fields = [int(word) for word in stat.partition("\n")[0].split()[1:9]]
    busy = sum(fields) - fields[3] - fields[4] if len(fields) > 4 else 0      # without idle and waiting for disks
    sizes = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in memory.splitlines() if line.split()[1:]}
    return Look(busy * _TICK, sizes.get("MemTotal", 0) - sizes.get("MemAvailable", 0))


def _of_groups(groups: Iterable[Path]) -> Look | None:
    """From control groups of either version; None if they do not tell both."""
    cpu = memory = None
    for group in groups:
        if (text := text_of(group / "cpuacct.usage")):
            cpu = int(text)
        elif (text := text_of(group / "cpu.stat")) and "usage_usec" in text:
            cpu = _counted(text, "usage_usec") * 1000
        stat = text_of(group / "memory.stat")
        for usage, inactive in (("memory.usage_in_bytes", "total_inactive_file"), ("memory.current", "inactive_file")):
            if (text := text_of(group / usage)):
                memory = max(0, int(text) - _counted(stat, inactive))
    return Look(cpu, memory) if cpu is not None and memory is not None else None


def _of_processes(places: Iterable[Place]) -> dict[tuple[Key, int], Look]:
    """From the processes of each container's PID namespace; children that ended are counted by their parents."""
    spaces = {_space(place.shim): place for place in places if place.shim}
    spaces.pop("", None)
    totals = {(place.key, place.attempt): [0, 0] for place in spaces.values()}
    for entry in os.listdir("/proc"):  # noqa: PTH208
        place = spaces.get(_space(int(entry))) if entry.isdecimal() else None
        if place is None:
            continue
        fields = text_of(Path("/proc", entry, "stat")).rpartition(")")[2].split()
        if len(fields) > 21:
            total = totals[place.key, place.attempt]
            total[0] += sum(int(field) for field in fields[11:15]) * _TICK
            total[1] += int(fields[21]) * _PAGE if int(entry) != place.shim else 0
    return {key: Look(cpu, memory) for key, (cpu, memory) in totals.items()}


def _space(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115
    except OSError:
        return ""


def _counted(text: str, name: str) -> int:
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} ")), 0)
