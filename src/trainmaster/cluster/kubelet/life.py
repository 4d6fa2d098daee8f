"""One pod as this agent has it in hand: its object, its processes, and what the disk says of its attempts.

The disk is the truth about attempts and is read each time; memory holds only what a new agent can find again (pidfds)
or do without (what was already asked to end).
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from trainmaster.api.meta import Object, metadata, moment, revision_of, uid_of
from trainmaster.cluster.kubelet import reap, records
from trainmaster.cluster.kubelet.containers import CHANGED, all_containers, own_containers
from trainmaster.cluster.kubelet.images import Image
from trainmaster.cluster.kubelet.launcher import Process, adopt
from trainmaster.cluster.kubelet.logs import last_words
from trainmaster.cluster.kubelet.observed import Attempt, ContainerSeen, Exit, HookSeen, Observed, Waiting
from trainmaster.cluster.kubelet.plans import TERMINATION_FILE
from trainmaster.cluster.kubelet.settings import PodPlaces
from trainmaster.cluster.kubelet.status import lost
from trainmaster.cluster.kubelet.volumes import Volumes
from trainmaster.runtime.store import older

MESSAGE_LIMIT = 4096     # bytes of a termination message, as the kubelet


@dataclass(frozen=True, slots=True)
class Health:
    """What probes and hooks have found out about one attempt."""

    attempt: int
    started: bool
    ready: bool
    verdict: str = ""
    condemned: datetime | None = None       # when the verdict fell


@dataclass(frozen=True, slots=True)
class Hook:
    """A preStop hook that was begun."""

    begun: datetime
    task: asyncio.Task[None]


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
    evicted: str = ""                                                   # why it must go: it uses more than it may
    stopping: datetime | None = None                                    # since when the pod as a whole is being ended
    health: dict[str, Health] = field(default_factory=dict)             # container -> its last attempt's
    probes: dict[tuple[str, int, str], asyncio.Task[None]] = field(default_factory=dict)
    beginning: dict[str, asyncio.Task[None]] = field(default_factory=dict)      # postStart hooks under way
    hooks: dict[str, Hook] = field(default_factory=dict)                # preStop hooks of running attempts
    stale: bool = False                                                 # its volumes may hold what is no more
    fetched: dict[tuple[str, str], str] = field(default_factory=dict)   # (plural, name) -> revision they were made from
    latest: dict[tuple[str, str], str] = field(default_factory=dict)    # the same, as it was last seen
    renew_at: datetime | None = None                                    # when the first of its tokens is due
    followed: bool = False                                              # what it refers to is being followed
    told: set[tuple[str, int]] = field(default_factory=set)             # attempts whose back-off was announced
    written: Object | None = None                                       # the status as last sent

    @property
    def uid(self) -> str:
        return uid_of(self.pod)

    def learn(self, pod: Object) -> None:
        """A state of the object was seen, by the watch or as the answer to a write; an older one is no news."""
        if not older(revision_of(pod), revision_of(self.pod)):
            # Volumes of the downward API show both.
            self.stale |= any(metadata(pod).get(part) != metadata(self.pod).get(part)
                              for part in ("labels", "annotations"))
            self.pod = pod

    @property
    def behind(self) -> bool:
        """Whether the volumes may show something that has changed since."""
        return self.stale or any(
            revision != (known := self.fetched.get(reference, revision)) and not older(revision, known)
            for reference, revision in self.latest.items()
        )

    def container(self, name: str) -> Object:
        return next(one for one in all_containers(self.pod) if one["name"] == name)

    def anew(self, name: str) -> None:
        """Forget what was known of a container's last attempt: the next one has begun."""
        for known in (self.waiting, self.terminating, self.killed, self.health):
            known.pop(name, None)
        for task in (self.beginning.pop(name, None), hook.task if (hook := self.hooks.pop(name, None)) else None):
            if task is not None:
                task.cancel()

    def cancel(self) -> None:
        """End everything that was begun for this pod in the background."""
        for task in (*self.pulls.values(), *self.probes.values(), *self.beginning.values(),
                     *(hook.task for hook in self.hooks.values())):
            task.cancel()
        self.probes.clear()


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
        life.stale = bool(life.address)    # who knows what has changed while nobody looked
    life.last_address = life.last_address or str((pod.get("status") or {}).get("podIP") or "")
    return life


def observe(life: Life, now: datetime, *, draining: bool) -> Observed:
    """Look at the disk and at the processes."""
    if life.sandbox is not None and life.sandbox.ended:
        life.sandbox, life.address = None, ""
    life.processes = {name: process for name, process in life.processes.items() if not process.ended}
    containers = {
        container["name"]: _container(life, container, now)
        for container in all_containers(life.pod)
    }
    return Observed(
        life.started, life.address, life.last_address, life.blocked, containers, draining, life.evicted, life.stopping
    )


def health_of(life: Life, name: str, attempt: int) -> Health:
    """What is known about an attempt. Of one that an earlier agent started: what it told the API, and wrote down."""
    known = life.health.get(name)
    if known is None or known.attempt != attempt:
        container = life.container(name)
        told = _last_told(life.pod, name, attempt)
        verdict = records.read(str(life.places.attempt(name, attempt)), records.VERDICT) or {}
        known = life.health[name] = Health(
            attempt, not container.get("startupProbe") or bool(told.get("started")),
            not container.get("readinessProbe") or bool(told.get("ready")), str(verdict.get("verdict", "")),
            _moment(int(str(verdict.get("at", 0)))),
        )
    return known


def condemned(life: Life, name: str, attempt: int, verdict: str, now: datetime) -> None:
    """An attempt must end: written down, so that an agent that dies before its end knows it for what it is."""
    with contextlib.suppress(FileNotFoundError):       # it is gone already, and so is the need
        record = {"verdict": verdict, "at": reap.nanoseconds(now)}
        records.write(str(life.places.attempt(name, attempt)), records.VERDICT, record)
    life.health[name] = replace(health_of(life, name, attempt), verdict=verdict, condemned=now)
    life.wake()


def condemn_changed(life: Life, seen: Observed, now: datetime) -> bool:
    """Whether an attempt must end because its container has another image by now: the next one gets that."""
    changed = [
        (container["name"], last.number) for container in own_containers(life.pod)
        if (state := seen.of(container["name"])).running and not state.verdict and (last := state.last) is not None
        and last.image_id not in ("", container.get("image"))
    ]
    for name, number in changed:
        condemned(life, name, number, CHANGED, now)
    return bool(changed)


def standing(health: Health, last: Attempt | None) -> str:
    """The verdict, unless it came too late: a question put to an attempt that ends by itself may fail for that."""
    end = last.ended if last is not None else None
    late = end is not None and health.condemned is not None and end.finished < health.condemned
    return "" if late else health.verdict


def _last_told(pod: Object, name: str, attempt: int) -> Object:
    status = pod.get("status") or {}
    for one in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        if one.get("name") == name and one.get("restartCount") == attempt and "running" in (one.get("state") or {}):
            return dict(one)
    return {}


def _container(life: Life, container: Object, now: datetime) -> ContainerSeen:
    name = container["name"]
    folder = life.places.pod / name
    numbers = sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdecimal()) if folder.is_dir() else []
    attempts = [found for number in numbers[-3:] if (found := _attempt(life, container, number, now)) is not None]
    last = attempts[-1] if attempts else None
    health = health_of(life, name, last.number) if last is not None else Health(0, False, False)
    hook = life.hooks.get(name)
    return ContainerSeen(
        last=last,
        previous=attempts[-2] if len(attempts) > 1 else None,
        image_ready=(image := life.images.get(name)) is not None and image.name == container.get("image"),
        pulling=name in life.pulls,
        waiting=life.waiting.get(name),
        hook=HookSeen(hook.begun, hook.task.done()) if hook is not None else None,
        terminating=life.terminating.get(name),
        killed=life.killed.get(name),
        beginning=name in life.beginning,
        started=health.started,
        ready=health.ready,
        verdict=standing(health, last),
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
