"""What the replicas of a job print, as one stream: in the order of time for what was, as it comes for what is.

A log is read with the time of every line. So a follower whose server went away goes on after the last line that it saw,
and the logs of several replicas can be put in order. A replica that is started again, in place or as a new pod, is
followed again from its first line.
"""

import heapq
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, name_of, uid_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError, Unreachable
from trainmaster.sdk.errors import NoReplica
from trainmaster.sdk.former import former
from trainmaster.sdk.jobs import Job
from trainmaster.sdk.replicas import Attempt, attempts_of, replica_of
from trainmaster.sdk.session import Session, some

if TYPE_CHECKING:
    import asyncio

AT_ONCE = 64         # logs that are put in the order of time together; each is a connection
HELD = 256           # batches that may wait for a reader who is slower than the replicas
LINGER = 30.0        # seconds that logs of ended replicas may take to arrive completely
PAUSE = 0.5
REFUSALS = 60        # times that a server may fail to get the end of a log from its node


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines."""

    replica: str = ""            # worker-0, or a role; all if empty
    container: str = ""
    tail: int | None = None      # of each replica
    since: float | None = None   # seconds
    previous: bool = False       # of the life before this one

    def query(self, container: str) -> list[tuple[str, str]]:
        given = [("container", container), ("timestamps", "true")]
        if self.tail is not None:
            given.append(("tailLines", str(self.tail)))
        if self.since is not None:
            given.append(("sinceSeconds", str(max(1, round(self.since)))))
        if self.previous:
            given.append(("previous", "true"))
        return given


@dataclass(frozen=True, slots=True)
class Source:
    """One log: a container of a replica in one of its lives."""

    name: str            # worker-0, or worker-0/sidecar where there are several
    attempt: Attempt
    place: str = ""      # its path on the server, if that of the pod will not do


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one replica. `time` is as the node wrote it, in UTC."""

    replica: str
    time: str
    text: str


Life = Literal["running", "ended", "gone"]      # of a container; gone: another one has begun, or the pod is no more
Stamped = tuple[str, str]         # the time of a line, and its text
Batch = tuple[str, list[Stamped]]


def life_of(pod: Object | None, attempt: Attempt) -> Life:
    """How that life of a container is, as far as its pod tells."""
    if pod is None or uid_of(pod) != attempt.uid:
        return "gone"
    for each in pod.get("status", {}).get("containerStatuses") or ():
        if each["name"] == attempt.container and each.get("restartCount", 0) == attempt.number:
            return "running" if "running" in (each.get("state") or {}) else "ended"
    return "gone"


def sources(pods: Sequence[Object], wanted: Wanted) -> list[Source]:
    """What there is to read, in the order of names."""
    found = []
    for pod in pods:
        replica = replica_of(pod)
        if not _is_meant(replica.name, replica.pod, wanted.replica):
            continue
        # The life before the present one can be read although the present one has not begun.
        attempts = _all_of(pod) if wanted.previous else attempts_of(pod)
        several = len(pod.get("spec", {}).get("containers") or ()) > 1
        found += [Source(f"{replica.name}/{attempt.container}" if several else replica.name, attempt)
                  for attempt in attempts if wanted.container in ("", attempt.container)]
    return sorted(found, key=lambda each: by_name(each.name))


def _of_former(gone: Sequence[tuple[Object, str]], wanted: Wanted) -> Iterator[Source]:
    """What is left of replicas that are no more."""
    for pod, place in gone:
        replica, containers = replica_of(pod), pod["containers"]
        if _is_meant(replica.name, replica.pod, wanted.replica):
            for name, number in containers.items():
                if wanted.container in ("", name):
                    yield Source(f"{replica.name}/{name}" if len(containers) > 1 else replica.name,
                                 Attempt(replica.pod, replica.uid, name, number), f"{place}/{name}")


def _is_meant(name: str, pod: str, asked: str) -> bool:
    return asked.lower() in ("", name, pod, name.rpartition("-")[0])


def _all_of(pod: Object) -> list[Attempt]:
    return [Attempt(name_of(pod), uid_of(pod), each["name"], each.get("restartCount", 0))
            for each in pod.get("status", {}).get("containerStatuses") or ()]


def by_name(name: str) -> tuple[str, int, str]:
    """worker-2 before worker-10."""
    plain, _, container = name.partition("/")
    role, _, index = plain.rpartition("-")
    return (role, int(index), container) if index.isdigit() else (plain, 0, container)


async def printed(session: Session, job: Job, wanted: Wanted) -> AsyncGenerator[Batch, None]:
    """What was printed until now, in the order of time. Raises NoReplica."""
    pods = (await session.client.list(PODS, job.namespace, labels=job.pods)).items
    found = sources(pods, wanted)
    gone = [] if wanted.previous else await former(session.client, job, pods)
    found = sorted([*found, *_of_former(gone, wanted)], key=lambda each: by_name(each.name))
    known = [*pods, *(pod for pod, _ in gone)]
    if not found and wanted.replica and not any(_is_meant(each.name, each.pod, wanted.replica)
                                                for each in map(replica_of, known)):
        raise NoReplica(_no_replica(job, wanted.replica, known))
    for start in range(0, len(found), AT_ONCE):
        async with aclosing(_merged(session.client, job, found[start:start + AT_ONCE], wanted)) as batches:
            async for batch in batches:
                yield batch


def _no_replica(job: Job, asked: str, pods: Sequence[Object]) -> str:
    names = sorted((replica_of(pod).name for pod in pods), key=by_name)
    there = f"There {'are' if len(names) > 1 else 'is'} {some(names)}." if names else "It has no pods now."
    return f"{job.kind} {job.namespace}/{job.name} has no replica '{asked}'. {there}"


async def _merged(client: Client, job: Job, found: Sequence[Source], wanted: Wanted) -> AsyncGenerator[Batch, None]:
    """A line at a time from the log whose next line is the oldest."""
    async with AsyncExitStack() as stack:
        logs = []
        for source in found:
            lines = _flat(_batches(client, job.namespace, source, wanted.query(source.attempt.container)))
            logs.append(await stack.enter_async_context(aclosing(lines)))
        heap: list[tuple[str, int, str]] = []
        for number, log in enumerate(logs):
            await _next(heap, number, log)
        while heap:
            time, number, text = heap[0]
            lines_of_one = [(time, text)]
            heapq.heappop(heap)
            await _next(heap, number, logs[number])
            while heap and heap[0][1] == number and len(lines_of_one) < 1000:
                time, _, text = heapq.heappop(heap)
                lines_of_one.append((time, text))
                await _next(heap, number, logs[number])
            yield found[number].name, lines_of_one


async def _next(heap: list[tuple[str, int, str]], number: int, log: AsyncIterator[Stamped]) -> None:
    async for time, text in log:
        heapq.heappush(heap, (time, number, text))
        return


async def _flat(batches: AsyncGenerator[list[Stamped], None]) -> AsyncGenerator[Stamped, None]:
    async with aclosing(batches):
        try:
            async for batch in batches:
                for line in batch:
                    yield line
        except ApiError as problem:
            # A pod may be gone, or have no life before this one; the others still have theirs.
            if problem.code not in (400, 404):
                raise


async def _batches(
    client: Client, namespace: str, source: Source, query: Sequence[tuple[str, str]]
) -> AsyncGenerator[list[Stamped], None]:
    """The lines of one log, as many together as came together."""
    stream = await client.stream(source.place or PODS.path(namespace, source.attempt.pod, "log"), query)
    rest = b""
    try:
        async for chunk in stream.chunks():
            whole, end, after = (rest + chunk).rpartition(b"\n")
            rest = after
            if end:
                yield [_stamped(line) for line in whole.decode(errors="replace").split("\n")]
        if rest:
            yield [_stamped(rest.decode(errors="replace"))]
    finally:
        await stream.close()


def _stamped(line: str) -> Stamped:
    time, _, text = line.partition(" ")
    return time, text


async def followed(session: Session, job: Job, wanted: Wanted) -> AsyncGenerator[Batch, None]:
    """What is printed from now on (and before, as far as wanted), until the job has ended and all is read."""
    import asyncio

    from trainmaster.sdk.following import Following

    following = Following(session, job, wanted, asyncio.Queue(HELD))
    async with following:
        while (batch := await following.batches.get()) is not None:
            yield batch


async def read_on(session: Session, job: Job, source: Source, wanted: Wanted,
                  batches: "asyncio.Queue[Batch | None]", life: Callable[[], Life]) -> None:
    """One log to its end, through restarts of the server: after the last line that was seen.

    A server that stops in order ends the log as if it were over; `life` knows better. It also keeps us from reading the
    next life of the container as if it were this one.
    """
    seen, told = "", 0           # the time of the last line, and how many lines with that time were told
    asked = wanted
    cut, refused = True, 0
    while True:
        query = [*asked.query(source.attempt.container), ("follow", "true")]
        if seen:
            query.append(("sinceTime", seen))
        skip = told
        try:
            async with aclosing(_batches(session.client, job.namespace, source, query)) as found:
                async for batch in found:
                    fresh, skip = _after(batch, seen, skip)
                    if fresh:
                        last = fresh[-1][0]
                        told = (told if last == seen else 0) + sum(1 for time, _ in fresh if time == last)
                        seen = last
                        await batches.put((source.name, fresh))
            cut = False
            if life() != "running":
                return
            refused = 0
        except Unreachable:
            cut = True
        except ApiError as problem:
            refused += 1
            if problem.code < 500 or (refused > REFUSALS and life() != "running"):
                return      # the pod, or this life of it, is gone
            cut = True      # the server is back before its node is
        if seen:
            asked = replace(asked, tail=None, since=None)
        await session.clock.sleep(PAUSE)      # so that it is known by then what became of the container
        if life() not in (("running", "ended") if cut else ("running",)):
            return


def _after(batch: list[Stamped], seen: str, skip: int) -> tuple[list[Stamped], int]:
    """The lines that were not told yet: later than the last one, or as many with its time as are new."""
    if not seen or (skip == 0 and batch[0][0] > seen):
        return batch, skip
    fresh = []
    for line in batch:
        if line[0] == seen and skip:
            skip -= 1
        elif line[0] >= seen:
            fresh.append(line)
    return fresh, skip
