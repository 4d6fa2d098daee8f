"""Follow one job to its end: states of its replicas, their merged logs, how far it is, and how it ended.

Everything comes from watches and followed logs; nothing is polled but the use of CPU and memory, which cannot be
watched. Survives a restart of the API server: watches resume, and a log goes on after the last line that was seen.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from trainmaster.api import groups
from trainmaster.api.core import EVENTS, PODS
from trainmaster.api.membership import JOB_NAME
from trainmaster.api.meta import Key, Object, Resource, moment, name_of, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError, is_transient
from trainmaster.progress import curves
from trainmaster.progress.curves import Curves
from trainmaster.progress.lines import last_metrics
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.sdk import shortages
from trainmaster.sdk.errors import CannotStart as CannotStart  # said by `follow`, so imported with it
from trainmaster.sdk.errors import JobGone as JobGone
from trainmaster.sdk.jobs import Job
from trainmaster.sdk.logs import HELD, LINGER, Batch, Life, Source, Wanted, life_of, read_on
from trainmaster.sdk.pulse import IDLE, QUIET
from trainmaster.sdk.replicas import AGAIN_AND_AGAIN, Attempt, Replica, attempts_of, replica_of
from trainmaster.sdk.session import Session
from trainmaster.sdk.usage import LOOK_EVERY, NOT_THERE, usage
from trainmaster.sdk.view import View

T = TypeVar("T")

TAIL = 20              # last lines of a failed replica that are told again at the end
HICCUP = 1.0           # seconds that a server may be away without a word about it


@dataclass(frozen=True, slots=True)
class Failure:
    """A replica that failed, with its last words."""

    replica: str
    why: str
    last_lines: tuple[str, ...]
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended."""

    succeeded: bool
    message: str
    failures: tuple[Failure, ...] = ()          # the first to fail first
    left_running: tuple[str, ...] = ()
    curves: Curves | None = None


async def follow(client: Client, clock: Clock, resource: Resource, job: Object, view: View, *,
                 hangs_after: float = QUIET) -> Outcome:
    """Show the job until it has ended. Raises JobGone, and CannotStart for one that would wait for ever.

    One that neither prints nor computes for `hangs_after` seconds is said to hang, each time once.
    """
    return await _Follower(client, clock, resource, job, view, hangs_after).run()


class _Follower:
    def __init__(self, client: Client, clock: Clock, resource: Resource, job: Object, view: View,
                 hangs_after: float) -> None:
        self._client, self._clock, self._view = client, clock, view
        self._key = Key(job["metadata"]["namespace"], name_of(job))
        self._uid = uid_of(job)
        self._meant = Job(resource, job)
        self._session = Session(client, clock, self._key.namespace)
        self._job = Informer(client, resource, clock=clock, namespace=self._key.namespace,
                             fields=f"metadata.name={self._key.name}", troubled=self._troubled)
        self._pods = Informer(client, PODS, clock=clock, namespace=self._key.namespace,
                              labels=f"{JOB_NAME}={self._key.name}", troubled=self._troubled)
        self._events = Informer(client, EVENTS, clock=clock, namespace=self._key.namespace, troubled=self._troubled)
        self._hangs_after, self._active = hangs_after, clock.monotonic()     # when something was last seen to happen
        self._away: asyncio.Task[None] | None = None
        self._missed = False                                     # whether it was said that the server is away
        self._ended: asyncio.Future[Object] = asyncio.get_running_loop().create_future()
        self._replicas: dict[str, Replica] = {}                  # by pod UID
        self._failed: dict[str, datetime | None] = {}            # by pod UID, in the order their failure was seen
        self._tails: dict[str, deque[str]] = {}                  # by name of the replica
        self._batches: asyncio.Queue[Batch | None] = asyncio.Queue(HELD)
        self._logs: dict[Attempt, asyncio.Task[None]] = {}
        self._told_events: set[tuple[str, str]] = set()
        self._asking: list[asyncio.Task[None]] = []
        self._job.on_change(self._job_changed)
        self._pods.on_change(self._pod_changed)
        self._events.on_change(self._event_changed)

    async def run(self) -> Outcome:
        watching = [asyncio.create_task(work) for work in (
            self._job.run(), self._pods.run(), self._events.run(), self._show_lines(), self._watch_silence(),
            *([self._show_usage()] if self._view.wants_usage else ()))]
        try:
            await self._job.synced()
            if self._job.copy.get(self._key.namespace, self._key.name) is None and not self._ended.done():
                self._ended.set_exception(JobGone())
            job = await _unless_broken(self._ended, watching)
            self._say_it_is_back()
            await self._pods.synced()
            await self._pods.catch_up()
            reading = [task for attempt, task in self._logs.items() if self._is_over(attempt)]
            if reading:
                await asyncio.wait(reading, timeout=LINGER)
            await _unless_broken(asyncio.create_task(self._batches.join()), watching)
            return self._outcome(job)
        finally:
            tasks = [*watching, *self._logs.values(), *self._asking, *([self._away] if self._away else ())]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _show_lines(self) -> None:
        while True:
            batch = await self._batches.get()
            if batch is not None:
                name, stamped = batch
                texts = [text for _, text in stamped]
                self._active = self._clock.monotonic()
                self._tails.setdefault(name, deque(maxlen=TAIL)).extend(texts[-TAIL:])
                self._view.lines(name, texts)
            self._batches.task_done()

    async def _show_usage(self) -> None:
        while True:
            found = await usage(self._client, self._key.namespace, f"{JOB_NAME}={self._key.name}")
            for replica in self._replicas.values() if found is not None else ():
                if found is not None and replica.pod in found:
                    self._view.used(replica.name, found[replica.pod])
            await self._clock.sleep(LOOK_EVERY if found is not None else NOT_THERE)

    async def _watch_silence(self) -> None:
        """Say that the job seems to hang: nothing printed, nothing computed, no change of its replicas for long."""
        told = -1.0
        while True:
            await self._clock.sleep(max(LOOK_EVERY, self._active + self._hangs_after - self._clock.monotonic()))
            silent = self._clock.monotonic() - self._active
            running = {each.pod for each in self._replicas.values() if each.state == "Running"}
            if silent < self._hangs_after or not running or told == self._active:
                continue
            used = await usage(self._client, self._key.namespace, f"{JOB_NAME}={self._key.name}") or {}
            if all(pod in used and used[pod].cpu < IDLE for pod in running):
                told = self._active
                self._view.note(f"nothing was printed or computed for {curves.lasting(silent)}: it may hang. "
                                f"Where each replica stands: trainmaster explain {self._key.name} "
                                f"--hangs-after {self._hangs_after:.0f}s")

    def _troubled(self, problem: KubeError) -> None:
        """A watch does not work: the server is away for a moment, or does not let us."""
        if not is_transient(problem):
            if ("watch", str(problem)) not in self._told_events:
                self._told_events.add(("watch", str(problem)))
                self._view.note(f"not everything can be followed: {problem}")
        elif self._away is None or self._away.done():
            self._away = asyncio.create_task(self._until_back())

    async def _until_back(self) -> None:
        """One sentence when the server stays away, and one when it is back; nothing about a hiccup."""
        while True:
            await self._clock.sleep(HICCUP)
            try:
                await self._client.get(self._meant.resource, self._key.name, self._key.namespace)
            except KubeError as problem:
                if not is_transient(problem):
                    break
                if not self._missed:
                    self._missed = True
                    self._view.note("the control plane does not answer; the replicas go on without it, and are shown "
                                    "again when it is back")
            else:
                break
        self._say_it_is_back()

    def _say_it_is_back(self) -> None:
        if self._missed:
            self._missed = False
            self._view.note("the control plane is back")

    def _job_changed(self, _before: Object | None, after: Object | None) -> None:
        if self._ended.done():
            return
        if after is None or uid_of(after) != self._uid:
            self._ended.set_exception(JobGone())
            return
        if (found := curves.of(after)) is not None:
            self._view.progress(self._key.name, found)
        if _ending(after) is not None:
            self._ended.set_result(after)

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            if before is not None and (gone := self._replicas.pop(uid_of(before), None)) is not None:
                self._view.gone(gone)
            return
        replica = replica_of(after)
        if self._replicas.get(replica.uid) != replica:
            self._replicas[replica.uid] = replica
            self._active = self._clock.monotonic()
            self._view.replica(replica)
        if replica.hopeless and not self._ended.done():
            self._ended.set_exception(CannotStart(f"{replica.name} cannot start: {replica.why}"))
        if replica.failed and replica.uid not in self._failed:
            self._failed[replica.uid] = _finished(after)
        for attempt in attempts_of(after):
            if attempt not in self._logs:
                self._logs[attempt] = asyncio.create_task(read_on(
                    self._session, self._meant, Source(replica.name, attempt), Wanted(), self._batches,
                    partial(self._life, attempt)))

    def _life(self, attempt: Attempt) -> Life:
        return life_of(self._pods.copy.get(self._key.namespace, attempt.pod), attempt)

    def _event_changed(self, _before: Object | None, after: Object | None) -> None:
        if after is None:
            return
        if _about_group(after, self._key.name):
            self._asking.append(asyncio.create_task(self._why_waiting(after["involvedObject"])))
            return
        if (after.get("type") != "Warning" and not _pulls_for_long(after)) or _told_by_its_state(after):
            return
        about = after.get("involvedObject", {}).get("uid", "")
        name = "the job" if about == self._uid else self._replicas[about].name if about in self._replicas else ""
        reason, message = after.get("reason", ""), after.get("message", "")
        told = (reason, message.partition(" in ")[0])   # six replicas of one image say the same: once
        if name and told not in self._told_events:
            self._told_events.add(told)
            self._view.note(f"{name}: {message}")

    async def _why_waiting(self, about: Object) -> None:
        """The scheduler said something about the group: what it wrote on it is said in plain words, each time once."""
        resource = next((known for known in groups.GROUPS if known.api_version == about.get("apiVersion")), None)
        try:
            group = await self._client.get(resource, about["name"], self._key.namespace) if resource else {}
        except KubeError:
            return      # gone
        why = groups.why_waiting(group)      # nothing, if it no longer waits
        if why and ("waiting", why) not in self._told_events:
            self._told_events.add(("waiting", why))
            self._view.note(f"the job waits: {why}")
            if advice := shortages.remedy(why):
                self._view.note(advice)

    def _is_over(self, attempt: Attempt) -> bool:
        replica = self._replicas.get(attempt.uid)
        return replica is None or replica.ended

    def _outcome(self, job: Object) -> Outcome:
        ending = _ending(job)
        assert ending is not None
        failed = [(self._replicas[uid], at) for uid, at in self._failed.items() if uid in self._replicas]
        failures = [Failure(each.name, each.why, tuple(self._tails.get(each.name, ())), at) for each, at in failed]
        left = sorted(replica.pod for replica in self._replicas.values() if not replica.ended)
        last = self._job.copy.get(self._key.namespace, self._key.name) or job
        return Outcome(ending["type"] == "Succeeded", ending.get("message", ""), tuple(failures), tuple(left),
                       self._to_the_end(curves.of(last)))

    def _to_the_end(self, found: Curves | None) -> Curves | None:
        """The curves with what was printed since they were written last: the end of a job waits for no other write."""
        if found is None or found.source != curves.PRINTED:
            return found
        return curves.completed(found, last_metrics(self._tails.get(found.replica, ())), self._clock.now())


async def _unless_broken(wanted: asyncio.Future[T], working: Sequence[asyncio.Task[None]]) -> T:
    """What is waited for; or what ended one of those who work on it, such as a reader who has gone (`| head`)."""
    everything: list[asyncio.Future[Any]] = [wanted, *working]
    try:
        await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
        for each in working:
            if each.done():
                each.result()
        return await wanted
    finally:
        wanted.cancel()


def _finished(pod: Object) -> datetime | None:
    """When the first of its containers failed, by the clock of its node."""
    ends = [
        found for each in pod.get("status", {}).get("containerStatuses") or ()
        if (ended := (each.get("state") or {}).get("terminated") or {}).get("exitCode")
        and (found := moment(ended["finishedAt"]) if ended.get("finishedAt") else None) is not None
    ]
    return min(ends, default=None)


def _about_group(event: Object, job: str) -> bool:
    about = event.get("involvedObject", {})
    return about.get("kind") == "PodGroup" and about.get("name") == job and event.get("reason") == "Unschedulable"


def _told_by_its_state(event: Object) -> bool:
    """That a container is started again after a pause: the node and the operator say it, and so does the replica."""
    return event.get("reason") in ("BackOff", AGAIN_AND_AGAIN) and "restarting failed" in event.get("message", "")


def _pulls_for_long(event: Object) -> bool:
    """The only normal event worth a line: a step of making an environment, which can take minutes."""
    return event.get("reason") == "Pulling" and '": ' in event.get("message", "")


def _ending(job: Object) -> Object | None:
    for condition in job.get("status", {}).get("conditions") or ():
        if condition["type"] in ("Succeeded", "Failed") and condition["status"] == "True":
            return dict(condition)
    return None
