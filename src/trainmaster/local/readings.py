"""What the pods of this machine print and write, read for jobs that do not report by themselves.

Looks at the end of each log, and at what is new in TensorBoard files of the pod's own volumes, every few seconds: the
cost depends on the number of pods, not on how much they print. A pod that ends is looked at once more, at once, so that
its last figure is not late. What is found goes the way of a job's own report.

A volume is what its pod makes of it: a link that leads out of it and a pipe that nobody writes to are left alone, and
so are files beyond a number, or one pod would take the looks of all others.
"""

import asyncio
import itertools
import os
import stat
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainmaster.api.core import PODS
from trainmaster.api.membership import JOB_NAME, JOB_ROLE
from trainmaster.api.meta import Object, labels_of, moment, name_of, namespace_of, uid_of
from trainmaster.cluster.kubelet.settings import BadName, NodeSettings, places_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError
from trainmaster.kube.transport import Request, Transport
from trainmaster.local import reports
from trainmaster.progress import events, lines
from trainmaster.progress.curves import PRINTED, TENSORBOARD
from trainmaster.progress.report import Report, encoded
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.first import first
from trainmaster.runtime.informer import Informer
from trainmaster.runtime.log import logger

log = logger("progress")

LOOK_EVERY = 2.0
FRESH = 10.0                  # seconds after its end in which a pod that nobody has read yet is read
SEARCH_EVERY = 5              # looks between two searches for further files
TAIL = 16 << 10               # bytes at the end of a log that are looked at
MOST_AT_ONCE = 1 << 20        # bytes of an event file that are read at a time
LAST_LOOKS = 3                # at a pod that has ended: one would do, but for files that others write for it
LAST_TIMES = 64               # and how many times in the last look; in the others, once
MOST_FOLDERS, DEEPEST, MOST_FILES = 200, 5, 50


@dataclass(slots=True)
class _Pod:
    """What was read of one pod so far."""

    thing: Object
    log: str = ""
    offset: int = 0
    heard: lines.Heard = field(default_factory=lines.Heard)
    fraction: Report = field(default_factory=Report)
    files: dict[Path, int] = field(default_factory=dict)
    spoke: bool = False
    looks: int = 0
    last_looks: int = 0           # since it ended


class Readings:
    """Reads for all training pods of this machine until cancelled; `doors` are the ways of its nodes to tell.

    One reader for all nodes: of a job that runs on several, one pod is listened to.
    """

    def __init__(self, settings: NodeSettings, client: Client, doors: Mapping[str, Transport], clock: Clock) -> None:
        self._settings, self._doors, self._clock = settings, doors, clock
        only = f"spec.nodeName={settings.name}" if len(doors) == 1 else ""
        self.informer = Informer(client, PODS, clock=clock, fields=only, labels=JOB_NAME)
        self._pods: dict[str, _Pod] = {}
        self._ended: set[str] = set()          # UIDs of those that ended since the last look
        self._woken = asyncio.Event()
        self.informer.on_change(self._changed)

    def _changed(self, before: Object | None, after: Object | None) -> None:
        if after is not None and _has_ended(after) and not (before is not None and _has_ended(before)):
            self._ended.add(uid_of(after))
            self._woken.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.informer.run())
            await self.informer.synced()
            while True:
                self._ended.clear()
                await self.look()
                until = self._clock.monotonic() + LOOK_EVERY
                while (left := until - self._clock.monotonic()) > 0:
                    await self._wait(left)
                    if self._ended:
                        ended, self._ended = self._ended, set()
                        await self.look(ended)

    async def _wait(self, seconds: float) -> None:
        """Until a pod ends, or for so long."""
        self._woken.clear()
        if self._ended:
            return
        await first(self._woken.wait(), self._clock.sleep(seconds))

    async def look(self, only: Container[str] | None = None) -> None:
        """Once at every pod, or at these."""
        there = {uid_of(pod): pod for pod in self.informer.copy.all() if pod["spec"].get("nodeName") in self._doors}
        self._pods = {uid: known for uid, known in self._pods.items() if uid in there}
        found: dict[tuple[str, str], dict[str, tuple[Object, Report, str]]] = {}
        for uid, pod in there.items():
            if only is not None and uid not in only:
                continue
            if uid not in self._pods and self._is_old(pod):
                continue
            known = self._pods.setdefault(uid, _Pod(pod))
            known.thing = pod
            report, source = await asyncio.to_thread(self._read, known)
            if report:
                known.spoke = True
                found.setdefault((namespace_of(pod), labels_of(pod)[JOB_NAME]), {})[uid] = (pod, report, source)
        for job, said in found.items():
            speaker = self._speaker(job)
            if speaker in said:
                await self._tell(*said[speaker])

    def _is_old(self, pod: Object) -> bool:
        """It ended before we began to look: it was read by those before us."""
        ends = [moment(ended["finishedAt"]) for each in (pod.get("status") or {}).get("containerStatuses") or ()
                if (ended := (each.get("state") or {}).get("terminated") or {}).get("finishedAt")]
        return bool(ends) and (self._clock.now() - max(ends)).total_seconds() > FRESH

    def _speaker(self, job: tuple[str, str]) -> str:
        """The pod that is listened to: the one that leads, if it ever said anything; else the first that did."""
        pods = [(known.thing, uid) for uid, known in self._pods.items()
                if known.spoke and (namespace_of(known.thing), labels_of(known.thing)[JOB_NAME]) == job]
        return min(pods, key=lambda each: (labels_of(each[0]).get(JOB_ROLE) != "master", name_of(each[0])))[1]

    def _read(self, known: _Pod) -> tuple[Report, str]:
        """What is new in the log and in the files of a pod."""
        try:
            places = places_of(self._settings, known.thing)
        except BadName:
            return Report(), PRINTED
        last = _has_ended(known.thing)
        known.last_looks = known.last_looks + 1 if last else 0
        if known.last_looks > LAST_LOOKS:
            return Report(), PRINTED
        printed = self._printed(known, places.log)
        known.looks += 1
        if not known.files or last or known.looks % SEARCH_EVERY == 0:
            for folder in _folders(known.thing, places.volumes):
                for path in _event_files(folder):
                    if len(known.files) < MOST_FILES:
                        known.files.setdefault(path, 0)
        written = _written(known, LAST_TIMES if last else 1)
        if printed.fraction is not None:
            known.fraction = replace(printed, metrics={})
        if written:
            return replace(known.fraction, metrics=written), TENSORBOARD
        return printed, PRINTED

    def _printed(self, known: _Pod, log_of: Callable[[str, int], Path]) -> Report:
        state = _main_state(known.thing)
        if state is None:
            return Report()
        try:
            path = max(log_of(*state).glob("*.log"), key=lambda each: int(each.stem), default=None)
            if path is None:
                return Report()
            if known.log != str(path):
                known.log, known.offset = str(path), 0
            size = path.stat().st_size
            if size <= known.offset:
                return Report()
            with path.open("rb") as file:
                file.seek(start := max(known.offset, size - TAIL))
                content = file.read(size - start)
        except (OSError, ValueError):
            return Report()
        # A bar redraws its line for as long as an epoch lasts: what stands between two of its returns is whole, too.
        if _has_ended(known.thing) and not content.endswith(b"\n"):
            content += b"\n"                    # nothing comes behind it any more
        whole, newline, _ = content.replace(b"\r", b"\n").rpartition(b"\n")
        if not newline:
            return Report()
        known.offset = min(start + len(whole) + 1, size)
        report = Report()
        for raw in whole.split(b"\n"):
            known.heard, said = lines.read(known.heard, raw.decode(errors="replace"))
            if said.fraction is not None:
                report = replace(said, metrics={**report.metrics, **said.metrics})
            elif said.metrics:
                report = replace(report, metrics={**report.metrics, **said.metrics})
        return report

    async def _tell(self, pod: Object, report: Report, source: str) -> None:
        body = encoded(report, self._clock.now().isoformat())
        headers = {"content-type": "application/json", "accept": "application/json", reports.SOURCE: source}
        path = reports.path(namespace_of(pod), name_of(pod))
        try:
            answer = await self._doors[pod["spec"]["nodeName"]].send(Request("POST", path, (), headers, body))
            if answer.status >= 300:
                log.debug("progress was not taken", pod=name_of(pod), status=answer.status)
        except KubeError as problem:
            log.debug("progress could not be told", pod=name_of(pod), cause=problem)


def _has_ended(pod: Object) -> bool:
    """Whether its first container has, so that it says nothing more."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("terminated" in (status.get("state") or {}) for status in statuses[:1])


def _main_state(pod: Object) -> tuple[str, int] | None:
    """The first container and its life, if it has begun."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if {"running", "terminated"} & (status.get("state") or {}).keys():
            return str(status["name"]), int(status.get("restartCount", 0))
    return None


def _folders(pod: Object, volumes: Path) -> Iterator[Path]:
    """The volumes that the pod alone writes to."""
    mounts = {str(mount["name"]): str(mount.get("subPathExpr") or "")
              for container in (pod.get("spec") or {}).get("containers") or ()
              for mount in container.get("volumeMounts") or ()}
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if "emptyDir" in volume:
            yield volumes / str(volume["name"])
        elif volume.get("hostPath") and mounts.get(str(volume["name"])) == "$(REPLICA_ROLE)-$(REPLICA_INDEX)":
            yield Path(str(volume["hostPath"].get("path"))) / reports.replica_name(pod)


def _event_files(top: Path) -> Iterator[Path]:
    for here, folders, names in itertools.islice(os.walk(top), MOST_FOLDERS):
        if len(Path(here).relative_to(top).parts) >= DEEPEST:
            folders.clear()
        yield from (Path(here, name) for name in names if "tfevents" in name)


def _written(known: _Pod, times: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for path in sorted(known.files):
        for _ in range(times):
            try:
                scalars, whole = events.scalars(_piece(path, known.files[path]))
            except (OSError, events.NotEvents):
                break
            known.files[path] += whole
            found |= {scalar.tag: scalar.value for scalar in scalars}
            if not whole:
                break
    return found


def _piece(path: Path, offset: int) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.pread(handle, MOST_AT_ONCE, offset) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    finally:
        os.close(handle)

