"""Follow one job to its end: states of its replicas, their merged logs, and how it ended.

Everything comes from watches and followed logs; nothing is polled. Survives a restart of the API server: watches
resume, and a log goes on after the last line that was seen.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from trainmaster.api import groups
from trainmaster.api.core import EVENTS, PODS
from trainmaster.api.meta import Key, Object, Resource, metadata, name_of, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError, KubeError, Unreachable
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.informer import Informer
from trainmaster.sdk.errors import JobGone as JobGone  # said by `follow`, so imported with it
from trainmaster.sdk.replicas import JOB_NAME, Attempt, Replica, attempts_of, replica_of

TAIL = 20              # last lines of a failed replica that are told again at the end
LINGER = 10.0          # seconds that logs of ended replicas may take to arrive completely


class View(Protocol):
    """Who is shown what happens."""

    def replica(self, replica: Replica) -> None: ...

    def gone(self, replica: Replica) -> None: ...

    def line(self, replica: str, text: str) -> None: ...

    def note(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Failure:
    """A replica that failed, with its last words."""

    replica: str
    why: str
    last_lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended."""

    succeeded: bool
    message: str
    failures: tuple[Failure, ...] = ()
    left_running: tuple[str, ...] = ()


async def follow(client: Client, clock: Clock, resource: Resource, job: Object, view: View) -> Outcome:
    """Show the job until it has ended. Raises JobGone."""
    return await _Follower(client, clock, resource, job, view).run()


class _Follower:
    def __init__(self, client: Client, clock: Clock, resource: Resource, job: Object, view: View) -> None:
        self._client, self._clock, self._view = client, clock, view
        self._key = Key(job["metadata"]["namespace"], name_of(job))
        self._uid = uid_of(job)
        self._job = Informer(client, resource, clock=clock, namespace=self._key.namespace,
                             fields=f"metadata.name={self._key.name}")
        self._pods = Informer(client, PODS, clock=clock, namespace=self._key.namespace,
                              labels=f"{JOB_NAME}={self._key.name}")
        self._events = Informer(client, EVENTS, clock=clock, namespace=self._key.namespace)
        self._ended: asyncio.Future[Object] = asyncio.get_running_loop().create_future()
        self._replicas: dict[str, Replica] = {}                  # by pod UID
        self._first_failed: list[str] = []                       # pod UIDs in the order their failure was seen
        self._tails: dict[str, deque[str]] = {}                  # by pod UID
        self._logs: dict[Attempt, asyncio.Task[None]] = {}
        self._told_events: set[tuple[str, str]] = set()
        self._asking: list[asyncio.Task[None]] = []
        self._job.on_change(self._job_changed)
        self._pods.on_change(self._pod_changed)
        self._events.on_change(self._event_changed)

    async def run(self) -> Outcome:
        watching = [asyncio.create_task(informer.run()) for informer in (self._job, self._pods, self._events)]
        try:
            await self._job.synced()
            if self._job.copy.get(self._key.namespace, self._key.name) is None and not self._ended.done():
                self._ended.set_exception(JobGone())
            job = await self._ended
            await self._pods.synced()
            reading = [task for attempt, task in self._logs.items() if self._is_over(attempt)]
            if reading:
                await asyncio.wait(reading, timeout=LINGER)
            return self._outcome(job)
        finally:
            tasks = [*watching, *self._logs.values(), *self._asking]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _job_changed(self, _before: Object | None, after: Object | None) -> None:
        if self._ended.done():
            return
        if after is None or uid_of(after) != self._uid:
            self._ended.set_exception(JobGone())
        elif _ending(after) is not None:
            self._ended.set_result(after)

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            if before is not None and (gone := self._replicas.pop(uid_of(before), None)) is not None:
                self._view.gone(gone)
            return
        replica = replica_of(after)
        if self._replicas.get(replica.uid) != replica:
            self._replicas[replica.uid] = replica
            self._view.replica(replica)
        if replica.exit_code and replica.uid not in self._first_failed:
            self._first_failed.append(replica.uid)
        for attempt in attempts_of(after):
            if attempt not in self._logs:
                self._logs[attempt] = asyncio.create_task(self._read(attempt, replica.name))

    def _event_changed(self, _before: Object | None, after: Object | None) -> None:
        if after is None:
            return
        if _about_group(after, self._key.name):
            self._asking.append(asyncio.create_task(self._why_waiting(after["involvedObject"])))
            return
        if after.get("type") != "Warning" and not _pulls_for_long(after):
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
            why = str(json.loads(metadata(group).get("annotations", {})[groups.WHY])["why"])
        except (KubeError, ValueError, KeyError):
            return      # gone, or it no longer waits
        if ("waiting", why) not in self._told_events:
            self._told_events.add(("waiting", why))
            self._view.note(f"the job waits: {why}")

    async def _read(self, attempt: Attempt, name: str) -> None:
        tail = self._tails.setdefault(attempt.uid, deque(maxlen=TAIL))
        seen = ""
        while True:
            try:
                async for moment, text in self._lines(attempt, seen):
                    seen = moment
                    tail.append(text)
                    self._view.line(name, text)
                return
            except Unreachable:
                await self._clock.sleep(1.0)
            except ApiError:
                return  # the pod, or this life of it, is gone

    async def _lines(self, attempt: Attempt, seen: str) -> AsyncIterator[tuple[str, str]]:
        path = PODS.path(self._key.namespace, attempt.pod, "log")
        query = [("container", attempt.container), ("follow", "true"), ("timestamps", "true")]
        stream = await self._client.stream(path, query)
        rest = b""
        try:
            async for chunk in stream.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for raw in lines:
                    moment, _, text = raw.decode(errors="replace").partition(" ")
                    if moment > seen:   # fixed width, so that text order is time order
                        yield moment, text
        finally:
            await stream.close()

    def _is_over(self, attempt: Attempt) -> bool:
        replica = self._replicas.get(attempt.uid)
        return replica is None or replica.ended

    def _outcome(self, job: Object) -> Outcome:
        ending = _ending(job)
        assert ending is not None
        failures = [
            Failure(self._replicas[uid].name, self._replicas[uid].why, tuple(self._tails.get(uid, ())))
            for uid in self._first_failed if uid in self._replicas
        ]
        left = sorted(replica.pod for replica in self._replicas.values() if not replica.ended)
        return Outcome(ending["type"] == "Succeeded", ending.get("message", ""), tuple(failures), tuple(left))


def _about_group(event: Object, job: str) -> bool:
    about = event.get("involvedObject", {})
    return about.get("kind") == "PodGroup" and about.get("name") == job and event.get("reason") == "Unschedulable"


def _pulls_for_long(event: Object) -> bool:
    """The only normal event worth a line: a step of making an environment, which can take minutes."""
    return event.get("reason") == "Pulling" and '": ' in event.get("message", "")


def _ending(job: Object) -> Object | None:
    for condition in job.get("status", {}).get("conditions") or ():
        if condition["type"] in ("Succeeded", "Failed") and condition["status"] == "True":
            return dict(condition)
    return None
