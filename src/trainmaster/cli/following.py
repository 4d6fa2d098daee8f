"""What happens between the first request of `run` and its last word: jobs are followed, Ctrl-C is heard, ends are told.

All jobs of one call are followed at once and share one terminal; Ctrl-C is about all that have not ended.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from trainmaster.api.meta import labels_of
from trainmaster.cli.output import FAILED, INTERRUPTED, say
from trainmaster.cli.view import ForOneOfMany, RunView
from trainmaster.kube.errors import KubeError
from trainmaster.progress import curves
from trainmaster.runtime.clock import RealClock
from trainmaster.sdk.ends import remedy
from trainmaster.sdk.follow import CannotStart, Failure, JobGone, Outcome, follow
from trainmaster.sdk.pulse import QUIET
from trainmaster.sdk.replicas import OOM
from trainmaster.sdk.submit import FOR_JOB, Submitted

if TYPE_CHECKING:
    from trainmaster.kube.client import Client


class Following:
    """One `run`."""

    def __init__(self, client: "Client", view: RunView, *, hangs_after: float = QUIET) -> None:
        self._client, self._view, self._hangs_after = client, view, hangs_after
        self._interrupted: asyncio.Queue[None] = asyncio.Queue(maxsize=16)

    async def run(self, submitted: Sequence[Submitted]) -> int:
        """Follow every job among them; the exit code, the worst one."""
        for one in submitted:
            if FOR_JOB not in labels_of(one.thing):
                name = one.thing["metadata"]["name"]
                self._view.note(f"{one.resource.kind} {name} {one.how}")
        jobs = [one for one in submitted if one.is_training]
        if not jobs:
            self._view.note("None of this is a training job, so there is nothing to follow. `trainmaster get` and "
                            "`trainmaster describe` show what becomes of it.")
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._pressed)
        codes: list[int] = []
        tasks = {asyncio.create_task(self._follow(job, alone=len(jobs) == 1)): job for job in jobs}
        try:
            while left := [task for task in tasks if not task.done()]:
                pressed = asyncio.ensure_future(self._interrupted.get())
                await asyncio.wait([*left, pressed], return_when=asyncio.FIRST_COMPLETED)
                unfinished = [tasks[task] for task in left if not task.done()]
                if not pressed.done():
                    pressed.cancel()
                elif unfinished and await self._interrupt(unfinished, tasks):
                    return INTERRUPTED
            codes = [task.result() for task in tasks]
        finally:
            await _ended(tasks)
        return max(codes, default=0)

    def _pressed(self) -> None:
        if not self._interrupted.full():
            self._interrupted.put_nowait(None)

    async def _follow(self, job: Submitted, *, alone: bool) -> int:
        view = self._view if alone else ForOneOfMany(self._view, job.thing["metadata"]["name"])
        began = time.monotonic()
        try:
            outcome = await follow(self._client, RealClock(), job.resource, job.thing, view,
                                   hangs_after=self._hangs_after)
        except JobGone:
            view.note("the job was deleted before it ended")
            return FAILED
        except CannotStart as error:
            view.note(f"{error} The job would wait for ever; remove it with: {delete(job)}")
            return FAILED
        return tell(view, outcome, job, time.monotonic() - began)

    async def _interrupt(self, jobs: Sequence[Submitted], tasks: Iterable[asyncio.Task[int]]) -> bool:
        """Whether we are to leave. Who stops a job needs not be told by those who follow it that it is gone."""
        match await self._ask(jobs):
            case "stop":
                await _ended(tasks)
                for job in jobs:
                    await self._client.delete(job.resource, job.thing["metadata"]["name"],
                                              job.thing["metadata"]["namespace"], propagation="Background")
                self._view.note("the job was stopped and removed" if len(jobs) == 1 else
                                f"{len(jobs)} jobs were stopped and removed")
                return True
            case "detach":
                for job in jobs:
                    self._view.note(f"detached; the job goes on. Stop it with: {delete(job)}")
                return True
        return False

    async def _ask(self, jobs: Sequence[Submitted]) -> str:
        """Ctrl-C once: detach or stop, or go on; twice: stop. Nobody to ask: detach."""
        if not sys.stdin.isatty():
            return "detach"
        with self._view.quiet():
            names = ", ".join(f"{job.resource.kind} {job.thing['metadata']['name']}" for job in jobs)
            say(f"\n{names}: [d]etach, [s]top, or [g]o on? (Ctrl-C again: stop)")
            asked = asyncio.ensure_future(_typed_line())
            again = asyncio.ensure_future(self._interrupted.get())
            try:
                await asyncio.wait([asked, again], return_when=asyncio.FIRST_COMPLETED)
                answer = "s" if again.done() else asked.result().strip().lower()
            finally:
                asked.cancel()
                again.cancel()
        return {"s": "stop", "d": "detach"}.get(answer[:1], "go on")


async def as_they_are(client: "Client", submitted: Sequence[Submitted]) -> list[Submitted]:
    """The jobs among them now; without those that are gone, or whose server is."""
    found = []
    for one in submitted:
        if one.is_training:
            about = one.thing["metadata"]
            with suppress(KubeError):
                found.append(replace(one, thing=await client.get(one.resource, about["name"], about["namespace"])))
    return found


async def _ended(tasks: Iterable[asyncio.Task[int]]) -> None:
    for task in (tasks := list(tasks)):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def tell(view: RunView, outcome: Outcome, job: Submitted, seconds: float) -> int:
    """Say how a job ended; its exit code."""
    if outcome.failures and not outcome.succeeded:
        first = outcome.failures[0]
        words = "its last lines:" if first.last_lines else "it printed nothing"
        view.note(f"first to fail: {first.replica}, {first.why or 'no exit code known'}; {words}")
        for line in first.last_lines:
            view.note(f"    {line}")
        if advice := remedy("\n".join(first.last_lines), OOM if first.why.startswith("out of memory") else ""):
            view.note(advice)
        if len(outcome.failures) > 1:
            view.note("failed after it: " + ", ".join(_later(first, each) for each in outcome.failures[1:]))
        name = job.thing["metadata"]["name"]
        view.note(f"all that each replica printed: trainmaster logs {name}; why it failed: trainmaster explain {name}")
    if outcome.curves is not None and outcome.curves.metrics:
        for line in curves.told(outcome.curves, outcome.curves.updated)[1:]:
            view.note(line)
    if outcome.left_running and _keeps_pods(job):
        view.note(f"still running: {', '.join(outcome.left_running)}. Remove them with the job: {delete(job)}")
    view.note(f"{'Succeeded' if outcome.succeeded else 'Failed'} after {seconds:.1f} s: {outcome.message}")
    return 0 if outcome.succeeded else FAILED


def _later(first: Failure, other: Failure) -> str:
    """Who, and how long after the first, as far as the clocks of nodes tell."""
    if first.at is None or other.at is None or other.at <= first.at:
        return other.replica
    return f"{other.replica} ({(other.at - first.at).total_seconds():.0f} s later)"


def delete(job: Submitted) -> str:
    """The command that removes a job with its pods."""
    about = job.thing["metadata"]
    return f"trainmaster delete {job.resource.kind.lower()}/{about['name']} -n {about['namespace']}"


def _keeps_pods(job: Submitted) -> bool:
    """Whether pods that still run at the end are left alone; else the operator is about to remove them."""
    policy = (job.thing.get("spec", {}).get("runPolicy") or {}).get("cleanPodPolicy")
    return policy in (None, "", "None")


async def _typed_line() -> str:
    """A line from the terminal, without a thread that could not be stopped."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sys.stdin, readable.set)
    try:
        await readable.wait()
        return sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin)
