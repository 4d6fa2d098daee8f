"""Wait for a job to get somewhere, and fail at once when it cannot get there any more.

One watch, resumed or begun anew when the server goes away and comes back.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from trainmaster.api.meta import Object, uid_of
from trainmaster.kube.errors import ApiError, KubeError, Unreachable, is_transient
from trainmaster.sdk.errors import JobFailed, JobGone, NoJob, NotPossible, TimedOut
from trainmaster.sdk.jobs import FAILED, RUNNING, SUCCEEDED, SUSPENDED, Job
from trainmaster.sdk.session import JobRef, Session

FINISHED, DELETED, CREATED = "Finished", "Deleted", "Created"
GOALS = (SUCCEEDED, FAILED, FINISHED, RUNNING, SUSPENDED, CREATED, DELETED)
LONGEST_WATCH = 300      # seconds of one request
SILENCE = 120.0          # seconds that a server may be away; the embedded one is back in two
PAUSE = 1.0


def goal_of(word: str) -> str:
    """Succeeded, condition=Succeeded, delete: what is meant by it. Raises NotPossible."""
    plain = word.removeprefix("condition=").partition("=")[0].lower()
    plain = {"delete": "deleted", "complete": "succeeded", "finish": "finished"}.get(plain, plain)
    found = next((goal for goal in GOALS if goal.lower() == plain), None)
    if found is None:
        raise NotPossible(f"'{word}' is nothing to wait for. Choose one of {', '.join(GOALS)}.")
    return found


def reached(job: Job, goal: str) -> bool:
    """Whether the job is there. Raises JobFailed if it will not get there any more."""
    state = job.state
    if goal in (DELETED, CREATED):
        return goal == CREATED
    if goal == FINISHED:
        return job.finished
    if state == goal or (goal == RUNNING and state == SUCCEEDED):      # it has run
        return True
    if state == FAILED:
        raise JobFailed(f"{job.kind} {job.namespace}/{job.name} failed: {told(job)}", post_mortem(job))
    if state == SUCCEEDED:
        raise JobFailed(f"{job.kind} {job.namespace}/{job.name} has succeeded, so it will not be {goal.lower()}.")
    return False


def told(job: Job) -> str:
    """What the condition says about the end."""
    found = [str(each.get("message") or "") for kind, each in job.conditions() if kind == FAILED]
    first = job.first_failure()
    return " ".join(part for part in (found[0] if found else "", f"First to fail: {first}." if first else "") if part)


def post_mortem(job: Job) -> tuple[str, ...]:
    """Who failed first and with what last words; loaded only when a job has failed."""
    from trainmaster.sdk.explain import explained

    return explained(job.kind, job.object, (), None).more


@dataclass(slots=True)
class _Patience:
    """When to give up: the caller's time, and how long the server may be silent."""

    session: Session
    ends: float | None
    silent_since: float | None = None

    def left(self) -> float | None:
        return None if self.ends is None else self.ends - self.session.clock.monotonic()

    async def after(self, problem: KubeError) -> None:
        """Pause, if trying again makes sense; else raise it."""
        now = self.session.clock.monotonic()
        if self.silent_since is None:
            self.silent_since = now
        if not is_transient(problem) or now - self.silent_since > SILENCE:
            raise problem
        left = self.left()
        await self.session.clock.sleep(PAUSE if left is None else max(0.0, min(PAUSE, left)))


async def wait(session: Session, job: JobRef, goal: str = SUCCEEDED, *, namespace: str | None = None,
               timeout: float | None = None) -> Job:
    """The job once it is there. Raises JobFailed, JobGone, NoJob, TimedOut, NotPossible."""
    wanted = goal_of(goal)
    patience = _Patience(session, None if timeout is None else session.clock.monotonic() + timeout)
    try:
        first = await session.find(job, namespace)
    except NoJob:
        if wanted == DELETED and isinstance(job, Job):
            return job
        raise
    uid = job.uid if isinstance(job, Job) else first.uid
    last = first
    while True:
        try:
            async with aclosing(_changes(session, last, patience)) as changes:
                async for seen in changes:
                    patience.silent_since = None
                    if seen is None or uid_of(seen) != uid:
                        if wanted == DELETED:
                            return last
                        raise JobGone(f"{first.kind} {first.namespace}/{first.name} was deleted.")
                    last = Job(first.resource, seen)
                    if reached(last, wanted):
                        return last
        except (Unreachable, ApiError) as problem:
            await patience.after(problem)
        left = patience.left()
        if left is not None and left <= 0:
            raise TimedOut(f"{first.kind} {first.namespace}/{first.name} was not {wanted.lower()} after {timeout:g} s; "
                           f"it is {last.state.lower()}{f': {last.why}' if last.why else ''}. "
                           f"`trainmaster explain {first.name}` says more.")


async def _changes(session: Session, job: Job, patience: _Patience) -> AsyncGenerator[Object | None, None]:
    """The job as it is, and as it changes for a while; None once it is gone."""
    selector = f"metadata.name={job.name}"
    page = await session.client.list(job.resource, job.namespace, fields=selector)
    yield page.items[0] if page.items else None
    left = patience.left()
    if left is not None and left <= 0:
        return
    seconds = LONGEST_WATCH if left is None else max(1, min(LONGEST_WATCH, round(left + 0.5)))
    watch = session.client.watch(job.resource, job.namespace, fields=selector, revision=page.revision, timeout=seconds)
    async with aclosing(watch) as events:
        async for event in events:
            if event.type == "DELETED":
                yield None
            elif event.type in ("ADDED", "MODIFIED"):
                yield event.object
