"""One pod as this agent has it in hand: its object, its processes, and what the disk says of its attempts.

The disk is the truth about attempts and is read each time; memory holds only what a new agent can find again (pidfds)
or do without (what was already asked to end).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from trainmaster.api.meta import Object, moment, revision_of, uid_of
from trainmaster.cluster.kubelet import reap, records
from trainmaster.cluster.kubelet.decide import init_containers, main_containers
from trainmaster.cluster.kubelet.images import Image
from trainmaster.cluster.kubelet.launcher import Process, adopt
from trainmaster.cluster.kubelet.logs import last_words
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit, Observed, Waiting
from trainmaster.cluster.kubelet.plans import TERMINATION_FILE
from trainmaster.cluster.kubelet.settings import PodPlaces
from trainmaster.cluster.kubelet.status import lost
from trainmaster.cluster.kubelet.volumes import Volumes
from trainmaster.runtime.store import older

MESSAGE_LIMIT = 4096     # bytes of a termination message, as the kubelet


@dataclass(slots=True)
class Life:
    """All that the agent has in memory about one pod. `wake` asks for another look at it."""

    pod: Object
    places: PodPlaces
    started: datetime
    wake: Callable[[], None]
    gone: bool = False                                                  # the object does not exist any more
    sandbox: Process | None = None
    address: str = ""
    last_address: str = ""
    volumes: Volumes | None = None
    processes: dict[str, Process] = field(default_factory=dict)         # container -> the shim of its running attempt
    images: dict[str, Image] = field(default_factory=dict)              # container -> its prepared image
    pulls: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    pull_failures: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    blocked: Waiting | None = None
    terminating: dict[str, datetime] = field(default_factory=dict)
    killed: dict[str, datetime] = field(default_factory=dict)
    told: set[tuple[str, int]] = field(default_factory=set)             # attempts whose back-off was announced
    written: Object | None = None                                       # the status as last sent

    @property
    def uid(self) -> str:
        return uid_of(self.pod)

    def learn(self, pod: Object) -> None:
        """A state of the object was seen, by the watch or as the answer to a write; an older one is no news."""
        if not older(revision_of(pod), revision_of(self.pod)):
            self.pod = pod

    def container(self, name: str) -> Object:
        return next(one for one in init_containers(self.pod) + main_containers(self.pod) if one["name"] == name)


def begin(pod: Object, places: PodPlaces, now: datetime, wake: Callable[[], None]) -> Life:
    """Take a pod on, with whatever an earlier life left of it."""
    since = (pod.get("status") or {}).get("startTime")
    life = Life(pod, places, moment(since) if since else now, wake)
    reap.remember(pod, places, now)
    record = records.read(str(places.pod), records.SANDBOX)
    if record is not None:
        life.last_address = str(record.get("address", ""))
        life.sandbox = adopt(record, wake)
        life.address = life.last_address if life.sandbox is not None else ""
    life.last_address = life.last_address or str((pod.get("status") or {}).get("podIP") or "")
    return life


def observe(life: Life, now: datetime, *, draining: bool) -> Observed:
    """Look at the disk and at the processes."""
    if life.sandbox is not None and life.sandbox.ended:
        life.sandbox, life.address = None, ""
    life.processes = {name: process for name, process in life.processes.items() if not process.ended}
    containers = {
        container["name"]: _container(life, container, now)
        for container in init_containers(life.pod) + main_containers(life.pod)
    }
    return Observed(life.started, life.address, life.last_address, life.blocked, containers, draining)


def _container(life: Life, container: Object, now: datetime) -> ContainerSeen:
    name = container["name"]
    folder = life.places.pod / name
    numbers = sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()) if folder.is_dir() else []
    attempts = [found for number in numbers[-3:] if (found := _attempt(life, container, number, now)) is not None]
    return ContainerSeen(
        last=attempts[-1] if attempts else None,
        previous=attempts[-2] if len(attempts) > 1 else None,
        image_ready=name in life.images,
        pulling=name in life.pulls,
        waiting=life.waiting.get(name),
        terminating=life.terminating.get(name),
        killed=life.killed.get(name),
    )


def _attempt(life: Life, container: Object, number: int, now: datetime) -> Attempt | None:
    """An attempt that was claimed by a shim. A directory without a claim is an attempt that never began."""
    directory = life.places.attempt(container["name"], number)
    record = records.read(str(directory), records.SHIM)
    if record is None:
        return None
    end = records.read(str(directory), records.EXIT)
    if end is None and not _alive(life, container["name"], record):
        # Look again: it may have written its end and died between the two looks.
        end = records.read(str(directory), records.EXIT)
        if end is None:
            end = reap.exit_record(lost(now))
            records.write(str(directory), records.EXIT, end)
    image = record.get("image")
    return Attempt(
        number, _moment(int(record.get("created") or 0)), _exit(life, container, number, end) if end else None,
        int(record.get("level") or 0), str(image) if image else "",
    )


def _alive(life: Life, name: str, record: dict[str, object]) -> bool:
    process = life.processes.get(name)
    if process is None:
        process = adopt(record, life.wake)
        if process is not None:
            life.processes[name] = process
    return process is not None


def _exit(life: Life, container: Object, number: int, end: dict[str, object]) -> Exit:
    code = int(str(end.get("code", 0)))
    message = str(end.get("message") or "")
    if not message:
        file = life.places.attempt(container["name"], number) / TERMINATION_FILE
        message = _contents(file)
    if not message and code != 0 and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        message = last_words(life.places.log(container["name"], number))
    return Exit(
        code, _moment(int(str(end.get("finished", 0)))), int(str(end.get("signal", 0))), str(end.get("reason") or ""),
        message,
    )


def _contents(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MESSAGE_LIMIT).decode(errors="replace")
    except OSError:
        return ""


def _moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds // 1000 / 1_000_000, UTC)
