"""What the machine runs short of, and which pod goes for it: the kubelet's thresholds, order and words.

A pod without limits may fill the disk or the memory that all have in common. When hardly any is left, the one that took
most beyond what it asked for is ended, one at a time, and of a full disk what it wrote is removed. Otherwise than the
kubelet we spare who has taken little: on a laptop it is mostly somebody else who filled the disk, and pods that are
ended for that help nobody. What is decided is pure; only looking, and ending pods, is not.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.containers import all_containers
from trainmaster.cluster.kubelet.life import Life
from trainmaster.cluster.kubelet.machinefiles import text_of
from trainmaster.cluster.kubelet.overuse import measure
from trainmaster.cluster.kubelet.removal import remove
from trainmaster.cluster.kubelet.usage import Usage
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.log import logger

log = logger("kubelet")

MEMORY, DISK = "memory", "ephemeral-storage"
# The kubelet's limits; that of the disk also in bytes, since a tenth of a large disk is nothing to worry about.
LEAST_MEMORY = 100 << 20
LEAST_DISK = 2 << 30
EVERY = 10.0                  # seconds between two looks
WORTH = 64 << 20              # who has taken less is not the cause
CRITICAL = 2_000_000_000      # pods of this priority and above are never ended for others


@dataclass(frozen=True, slots=True)
class Machine:
    """What is measured of the machine. None: it cannot be told."""

    memory: int | None = None          # bytes that programs could still have
    disk: tuple[int, int] | None = None     # bytes free, bytes in all, where pods write
    processes: tuple[int, int] | None = None     # processes and threads there are, and may be


@dataclass(frozen=True, slots=True)
class Shortage:
    """Of what, how much there should be, and how much there is."""

    resource: str
    least: int
    left: int


@dataclass(frozen=True, slots=True)
class Consumer:
    """What the containers of a pod have taken of something, and what they asked for."""

    uid: str
    priority: int
    used: Mapping[str, int]
    requested: Mapping[str, int]

    @property
    def beyond(self) -> int:
        return sum(self.used.values()) - sum(self.requested.values())


class Pods(Protocol):
    """What is needed of a node's pods."""

    def all(self) -> list[Life]: ...

    def evict(self, life: Life, why: str) -> None: ...


def measured(folder: Path) -> Machine:
    """Look at the machine."""
    memory = next((int(line.split()[1]) * 1024 for line in text_of("/proc/meminfo").splitlines()
                   if line.startswith("MemAvailable:")), None)
    space = os.statvfs(folder)
    load, most = text_of("/proc/loadavg").split(), text_of("/proc/sys/kernel/pid_max").strip()
    running = load[3].partition("/")[2] if len(load) > 3 else ""
    return Machine(
        memory, (space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize),
        (int(running), int(most)) if running.isdecimal() and most.isdecimal() else None,
    )


def shortages(machine: Machine) -> list[Shortage]:
    """What there is too little of."""
    found = []
    if machine.memory is not None and machine.memory < LEAST_MEMORY:
        found.append(Shortage(MEMORY, LEAST_MEMORY, machine.memory))
    if machine.disk is not None and machine.disk[0] < (least := min(LEAST_DISK, machine.disk[1] // 10)):
        found.append(Shortage(DISK, least, machine.disk[0]))
    return found


def victim(consumers: Iterable[Consumer]) -> Consumer | None:
    """Who goes: first who took more than it asked for, of those the least important, of those who took most."""
    return max(
        (one for one in consumers if one.priority < CRITICAL and sum(one.used.values()) >= WORTH),
        key=lambda one: (one.beyond > 0, -one.priority, one.beyond), default=None,
    )


def words(shortage: Shortage, who: Consumer) -> str:
    """Why it goes. (The sentences end in a blank, as the kubelet's do.)"""
    told = [f"The node was low on resource: {shortage.resource}. ",
            f"Threshold quantity: {_shown(shortage.least)}, available: {_shown(shortage.left)}. "]
    for name, used in who.used.items():
        asked = who.requested.get(name, 0)
        if used > asked:
            told.append(f"Container {name} was using {_shown(used)}, request is {_shown(asked)}, has larger "
                        f"consumption of {shortage.resource}. ")
    return "".join(told)


class Pressure:
    """Looks at the machine now and then, for the pods of all its nodes."""

    def __init__(
        self, nodes: Sequence[Pods], usage: Usage, clock: Clock, folder: Path,
        look: Callable[[Path], Machine] | None = None,
    ) -> None:
        self._nodes = nodes
        self._usage = usage
        self._clock = clock
        self._folder = folder
        self._look = look or (lambda folder: measured(folder))
        self._to_empty: list[Life] = []

    async def run(self) -> None:
        while True:
            await self._clock.sleep(EVERY)
            await self._empty()
            with suppress(OSError):                    # the home was removed, and that is noticed elsewhere
                for shortage in shortages(self._look(self._folder)):
                    await self._relieve(shortage)

    async def _relieve(self, shortage: Shortage) -> None:
        """End one pod; whether that was enough is seen at the next look."""
        if self._to_empty:
            return
        lives = {life.uid: (pods, life) for pods in self._nodes for life in pods.all() if life.sandbox is not None}
        if any(life.evicted for _, life in lives.values()):
            return                                     # one is on its way
        taken = await self._taken(shortage.resource, [life for _, life in lives.values()])
        chosen = victim(_consumer(life, shortage.resource, taken.get(uid, {})) for uid, (_, life) in lives.items())
        if chosen is None:
            return
        pods, life = lives[chosen.uid]
        log.warning("a pod is ended because the machine runs short", pod=life.pod["metadata"]["name"],
                    of=shortage.resource)
        pods.evict(life, words(shortage, chosen))
        if shortage.resource == DISK:
            self._to_empty.append(life)

    async def _taken(self, resource: str, lives: Sequence[Life]) -> dict[str, Mapping[str, int]]:
        if resource == DISK:
            found: dict[str, Mapping[str, int]] = {}
            for life in lives:
                used = await asyncio.to_thread(measure, life.pod, life.places)
                first, shared = next(iter(used.containers), ""), sum(used.volumes.values())
                found[life.uid] = {name: size + (shared if name == first else 0)
                                   for name, size in used.containers.items()}
            return found
        summary = await self._usage.summary(lives)
        return {pod["podRef"]["uid"]: {one["name"]: int(one["memory"]["workingSetBytes"]) for one in pod["containers"]}
                for pod in summary["pods"]}

    async def _empty(self) -> None:
        """What those wrote that were ended for a full disk, once they have."""
        for life in [one for one in self._to_empty if one.sandbox is None and not one.processes]:
            self._to_empty.remove(life)
            for folder in written(life):
                await asyncio.to_thread(remove, folder)


def written(life: Life) -> list[Path]:
    """Where a pod's own files are: its layers and the volumes that end with it."""
    own = [volume["name"] for volume in life.pod["spec"].get("volumes") or () if "emptyDir" in volume]
    return [life.places.layer("", 0).parent, *(life.places.volumes / name for name in own)]


def _consumer(life: Life, resource: str, used: Mapping[str, int]) -> Consumer:
    requested = {one["name"]: _request(one, resource) for one in all_containers(life.pod)}
    return Consumer(life.uid, int(life.pod["spec"].get("priority") or 0), used, requested)


def _request(container: Object, resource: str) -> int:
    found = ((container.get("resources") or {}).get("requests") or {}).get(resource)
    return int(quantity.parse(str(found))) if found is not None else 0


def _shown(size: int) -> str:
    return f"{Fraction(size) // 1024}Ki" if size else "0"
