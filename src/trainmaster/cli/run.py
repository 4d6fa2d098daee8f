"""`trainmaster run`: manifests in, a job followed to its end, the outcome as exit code."""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.output import BAD_INPUT, FAILED, INTERRUPTED, NO_CLUSTER, Told, say
from trainmaster.cli.view import LiveView, PlainView, RunView
from trainmaster.sdk.manifests import Manifest, ManifestError, read

if TYPE_CHECKING:
    from trainmaster.kube.client import Client
    from trainmaster.sdk.follow import Outcome
    from trainmaster.sdk.submit import Submitted


@click.command(epilog="Example: trainmaster run examples/tfjob/dist-mnist.yaml")
@click.argument("targets", nargs=-1, required=True, metavar="FILE|FOLDER|-...")
@click.option("-n", "--namespace", default="", help="Namespace of objects that name none. Default: default.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), envvar="KUBECONFIG",
              help="Run on this cluster instead of the embedded one.")
@click.option("--context", help="Context of the kubeconfig.")
def command(targets: tuple[str, ...], namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Run manifests and follow the job to its end.

    On the embedded cluster, which is started if it is down, unless --kubeconfig, --context or KUBECONFIG names another.

    Exit code: 0 the job succeeded, 1 it failed, 2 bad input, 3 no cluster, 130 detached or stopped by Ctrl-C.
    """
    try:
        manifests = read(targets, sys.stdin)
    except ManifestError as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    path = cluster(kubeconfig, context)
    with ExitStack() as stack:
        view = _view(stack)
        code = asyncio.run(_Run(path, context, namespace, view).run(manifests))
    sys.exit(code)


def cluster(kubeconfig: str | None, context: str | None) -> Path:
    """The kubeconfig of the cluster to run on; the embedded one is brought up, and never silently replaced."""
    from trainmaster.cli.up import start
    from trainmaster.local.home import Home

    home = Home.from_environment()
    first = (kubeconfig or "").partition(":")[0]   # as a list, KUBECONFIG means the first that is there; we take one
    meant = Path(first) if first else (Path.home() / ".kube" / "config" if context else home.kubeconfig)
    if meant.resolve() != home.kubeconfig.resolve():
        return meant
    began = time.monotonic()
    embedded = start(home)
    if not embedded.already:
        say(f"The cluster is up at {embedded.server} after {time.monotonic() - began:.1f} s.")
    return home.kubeconfig


def _view(stack: ExitStack) -> RunView:
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return PlainView()
    from rich.console import Console

    return stack.enter_context(LiveView(Console(highlight=False)))


@dataclass(slots=True)
class _Run:
    """One `run`, from the first request to the last word."""

    kubeconfig: Path
    context: str | None
    namespace: str
    view: RunView

    async def run(self, manifests: Sequence[Manifest]) -> int:
        from trainmaster.kube import kubeconfig
        from trainmaster.kube.client import Client
        from trainmaster.kube.errors import KubeError

        try:
            access = kubeconfig.load(self.kubeconfig, self.context)
            client = Client(kubeconfig.transport(access), user_agent="trainmaster-run")
        except kubeconfig.KubeconfigError as problem:
            raise Told(str(problem), BAD_INPUT) from problem
        try:
            return await self._submit_and_follow(client, manifests, self.namespace or access.namespace)
        except ManifestError as problem:
            raise Told(str(problem), BAD_INPUT) from problem
        except KubeError as problem:
            raise Told(f"{access.server} does not do what it should: {problem}", NO_CLUSTER) from problem
        finally:
            await client.close()

    async def _submit_and_follow(self, client: "Client", manifests: Sequence[Manifest], namespace: str) -> int:
        from trainmaster.sdk.submit import submit

        submitted = await submit(client, manifests, namespace)
        for one in submitted:
            name = one.thing["metadata"]["name"]
            self.view.note(f"{one.resource.kind.lower()}.{one.resource.group or 'core'}/{name} {one.how}")
        codes = [await self._follow(client, one) for one in submitted if one.is_job]
        return max(codes, default=0)

    async def _follow(self, client: "Client", job: "Submitted") -> int:
        from trainmaster.runtime.clock import RealClock
        from trainmaster.sdk.follow import JobGone, follow

        began = time.monotonic()
        following = asyncio.ensure_future(follow(client, RealClock(), job.resource, job.thing, self.view))
        interrupted: asyncio.Queue[None] = asyncio.Queue()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.put_nowait, None)
        try:
            while not following.done():
                pressed = asyncio.ensure_future(interrupted.get())
                await asyncio.wait([following, pressed], return_when=asyncio.FIRST_COMPLETED)
                if pressed.done() and not following.done():
                    match await self._ask(job, interrupted):
                        case "stop":
                            await client.delete(job.resource, job.thing["metadata"]["name"],
                                                job.thing["metadata"]["namespace"], propagation="Background")
                            self.view.note("the job was stopped and removed")
                            return INTERRUPTED
                        case "detach":
                            self.view.note(f"detached; the job goes on. Stop it with: {_delete(job)}")
                            return INTERRUPTED
                pressed.cancel()
            outcome = following.result()
        except JobGone:
            self.view.note("the job was deleted before it ended")
            return FAILED
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        return self._tell(outcome, job, time.monotonic() - began)

    async def _ask(self, job: "Submitted", interrupted: asyncio.Queue[None]) -> str:
        """Ctrl-C once: detach or stop, or go on; twice: stop. Nobody to ask: detach."""
        if not sys.stdin.isatty():
            return "detach"
        with self.view.quiet():
            say(f"\n{job.resource.kind} {job.thing['metadata']['name']}: [d]etach, [s]top it, or [g]o on? "
                "(Ctrl-C again: stop)")
            asked = asyncio.ensure_future(_typed_line())
            again = asyncio.ensure_future(interrupted.get())
            try:
                await asyncio.wait([asked, again], return_when=asyncio.FIRST_COMPLETED)
                answer = "s" if again.done() else asked.result().strip().lower()
            finally:
                asked.cancel()
                again.cancel()
        return {"s": "stop", "d": "detach"}.get(answer[:1], "go on")

    def _tell(self, outcome: "Outcome", job: "Submitted", seconds: float) -> int:
        note = self.view.note
        if outcome.failures and not outcome.succeeded:
            first = outcome.failures[0]
            note(f"first to fail: {first.replica}, {first.why or 'no exit code known'}; its last lines:")
            for line in first.last_lines:
                note(f"    {line}")
            if len(outcome.failures) > 1:
                note("failed after it: " + ", ".join(failure.replica for failure in outcome.failures[1:]))
        if outcome.left_running and _keeps_pods(job):
            note(f"still running: {', '.join(outcome.left_running)}. Remove them with the job: {_delete(job)}")
        note(f"{'Succeeded' if outcome.succeeded else 'Failed'} after {seconds:.1f} s: {outcome.message}")
        return 0 if outcome.succeeded else FAILED


def _keeps_pods(job: "Submitted") -> bool:
    """Whether pods that still run at the end are left alone; else the operator is about to remove them."""
    policy = (job.thing.get("spec", {}).get("runPolicy") or {}).get("cleanPodPolicy")
    return policy in (None, "", "None")


def _delete(job: "Submitted") -> str:
    about = job.thing["metadata"]
    return f"kubectl delete {job.resource.kind.lower()} {about['name']} -n {about['namespace']}"


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
