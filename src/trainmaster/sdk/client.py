"""The SDK: jobs in, jobs and their words out; on an event loop or without one, from one implementation.

`AsyncClient` and `Client` have the same verbs with the same arguments. Both are thin over the functions of this
package; what differs is the transport, and who drives it (`kube.blocking`). Nothing here needs the
`kubernetes` package.

    from trainmaster import Client

    with Client() as client:
        job = client.submit("job.yaml")
        client.wait(job)
        for line in client.logs(job):
            print(line.replica, line.text)
"""

import builtins
import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from trainmaster.kube import kubeconfig as files
from trainmaster.kube.blocking import BlockingClock, done, each
from trainmaster.kube.client import Client as KubeClient
from trainmaster.kube.limits import Limits
from trainmaster.kube.transport import Transport
from trainmaster.sdk import embedded
from trainmaster.sdk.jobs import Job, is_training
from trainmaster.sdk.reach import Reached, reach
from trainmaster.sdk.session import Clock, JobRef, Session

if TYPE_CHECKING:      # each is loaded by the verb that needs it
    from trainmaster.sdk.apply import Applied
    from trainmaster.sdk.code import How
    from trainmaster.sdk.explain import Explanation
    from trainmaster.sdk.happenings import Happening
    from trainmaster.sdk.logs import Batch, Line, Wanted

AGENT = "trainmaster-sdk"
Submittable = str | Path | Mapping[str, Any] | Any      # anything else: a function, or an object of another SDK


class AsyncClient:
    """Talks to one cluster: that of `kubeconfig` and `context`, else the one that `trainmaster` would talk to.

    A `transport` of one's own is for tests, and for those who sit in the server's process.
    """

    def __init__(
        self, kubeconfig: str | Path | None = None, context: str | None = None, namespace: str | None = None, *,
        transport: Transport | None = None, clock: Clock | None = None,
    ) -> None:
        self.cluster: Reached | None = None
        if transport is None:
            self.cluster = reach(kubeconfig, context, os.environ)
            transport = files.transport(self.cluster.access)
            namespace = namespace or self.cluster.access.namespace
        if clock is None:
            from trainmaster.runtime.clock import RealClock

            clock = RealClock()
        client = KubeClient(transport, user_agent=AGENT, limits=Limits(clock=clock))
        self.session = Session(client, clock, namespace or "default")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; `with` does it, too."""
        await self.session.client.close()

    async def submit(self, what: Submittable, *, namespace: str | None = None, **how: "Unpack[How]") -> Job:
        """Create a job from a file, YAML text, a dictionary or an object of another SDK; what comes with it, too.

        Or from a script or folder of code, or from a function that imports what it needs: `submit("train.py",
        workers=4, args=["--epochs", "3"], requirements="requirements.txt", output="results")`. Raises ManifestError,
        also if there is not exactly one job in it.
        """
        from trainmaster.sdk.submitting import submit

        here = self.cluster is None or self.cluster.embedded
        return await submit(self.session, what, namespace, how, home=embedded.home(os.environ) if here else None)

    async def apply(self, what: Submittable, *, namespace: str | None = None, dry_run: bool = False,
                    force: bool = False) -> "builtins.list[Applied]":
        """Bring the cluster to what is written, by server-side apply. Raises ManifestError."""
        from trainmaster.sdk.apply import apply
        from trainmaster.sdk.submitting import manifests_of

        return await apply(self.session, manifests_of(what), namespace, dry_run=dry_run, force=force)

    async def get(self, job: JobRef, *, namespace: str | None = None) -> Job:
        """The job as it is now, by NAME, KIND/NAME or an earlier one. Raises NoJob."""
        found = await self.session.find(job, namespace)
        return (await self.session.with_reasons([found], found.namespace))[0]

    async def list(self, *, namespace: str | None = None, all_namespaces: bool = False, labels: str = "") -> list[Job]:
        """All jobs, of every kind."""
        return await self.session.jobs("" if all_namespaces else namespace, labels=labels)

    async def wait(self, job: JobRef, goal: str = "Succeeded", *, namespace: str | None = None,
                   timeout: float | None = None) -> Job:
        """Until it has succeeded, or is what `goal` says: Running, Finished, Failed, Suspended, Created, Deleted.

        Raises JobFailed with the reason as soon as that cannot come any more, JobGone, TimedOut.
        """
        from trainmaster.sdk.waiting import wait

        return await wait(self.session, job, goal, namespace=namespace, timeout=timeout)

    async def logs(self, job: JobRef, *, follow: bool = False, replica: str = "", container: str = "",
                   tail: int | None = None, since: float | None = None, previous: bool = False,
                   namespace: str | None = None) -> "AsyncGenerator[Line, None]":
        """What the replicas print, merged; with `follow` until the job has ended. Raises NoReplica."""
        from trainmaster.sdk.logs import Line, Wanted

        wanted = Wanted(replica, container, tail, since, previous)
        async with aclosing(self.log_batches(job, wanted, follow=follow, namespace=namespace)) as batches:
            async for name, lines in batches:
                for time, text in lines:
                    yield Line(name, time, text)

    async def log_batches(self, job: JobRef, wanted: "Wanted", *, follow: bool = False,
                          namespace: str | None = None) -> "AsyncGenerator[Batch, None]":
        """The same, as many lines of one replica together as came together: for those who print them fast."""
        from trainmaster.sdk.logs import followed, printed

        found = await self.session.find(job, namespace)
        lines = followed(self.session, found, wanted) if follow else printed(self.session, found, wanted)
        async with aclosing(lines):
            async for batch in lines:
                yield batch

    async def events(self, job: JobRef | None = None, *, namespace: str | None = None,
                     all_namespaces: bool = False) -> "builtins.list[Happening]":
        """What happened to the job, its pods and its group, the oldest first; without a job, to everything."""
        from trainmaster.sdk.happenings import everything, happenings

        if job is None:
            return await everything(self.session, "" if all_namespaces else namespace or self.session.namespace)
        return await happenings(self.session, await self.session.find(job, namespace))

    async def explain(self, job: JobRef, *, namespace: str | None = None) -> "Explanation":
        """Why it waits, or why it failed, in plain words."""
        from trainmaster.sdk.explain import Explanation, explain

        found = await self.session.find(job, namespace)
        if not is_training(found.resource):
            return Explanation(found.kind, found.name, found.state, found.why)
        told = await explain(self.session.client, found.name, found.namespace, now=self.session.clock.now())
        return next(each for each in told if each.kind == found.kind)

    async def scale(self, job: JobRef, replicas: int | Mapping[str, int], *, namespace: str | None = None) -> Job:
        """So many workers, or so many of each role: `scale(job, {"worker": 3})`. Raises NoReplica, NotPossible."""
        from trainmaster.sdk import changes

        return await changes.scale(self.session, job, replicas, namespace)

    async def suspend(self, job: JobRef, *, namespace: str | None = None) -> Job:
        """Take its pods away until it is resumed. Raises NotPossible for one that has ended."""
        from trainmaster.sdk import changes

        return await changes.suspend(self.session, job, namespace)

    async def resume(self, job: JobRef, *, namespace: str | None = None) -> Job:
        """Let a suspended job go on."""
        from trainmaster.sdk import changes

        return await changes.resume(self.session, job, namespace)

    async def restart(self, job: JobRef, *, namespace: str | None = None, replica: str = "") -> Job:
        """From the beginning, also one that has ended; or only one replica of one that runs."""
        from trainmaster.sdk import changes

        return await changes.restart(self.session, job, namespace, replica=replica)

    async def delete(self, job: JobRef, *, namespace: str | None = None, wait: bool = True) -> Job:
        """With its pods. Returns once it is gone."""
        from trainmaster.sdk import changes

        return await changes.delete(self.session, job, namespace, wait=wait)


class Client:
    """The same without an event loop: for scripts, notebooks and the command line."""

    def __init__(
        self, kubeconfig: str | Path | None = None, context: str | None = None, namespace: str | None = None, *,
        transport: Transport | None = None, clock: Clock | None = None,
    ) -> None:
        self.cluster: Reached | None = None
        if transport is None:
            self.cluster = reach(kubeconfig, context, os.environ)
            transport = files.blocking(self.cluster.access)
            namespace = namespace or self.cluster.access.namespace
        self._same = AsyncClient(namespace=namespace, transport=transport, clock=clock or BlockingClock())
        self._same.cluster = self.cluster
        self.session = self._same.session

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """As `AsyncClient.close`."""
        done(self._same.close())

    def submit(self, what: Submittable, *, namespace: str | None = None, **how: "Unpack[How]") -> Job:
        """As `AsyncClient.submit`."""
        return done(self._same.submit(what, namespace=namespace, **how))

    def apply(self, what: Submittable, *, namespace: str | None = None, dry_run: bool = False,
              force: bool = False) -> "builtins.list[Applied]":
        """As `AsyncClient.apply`."""
        return done(self._same.apply(what, namespace=namespace, dry_run=dry_run, force=force))

    def get(self, job: JobRef, *, namespace: str | None = None) -> Job:
        """As `AsyncClient.get`."""
        return done(self._same.get(job, namespace=namespace))

    def list(self, *, namespace: str | None = None, all_namespaces: bool = False, labels: str = "") -> list[Job]:
        """As `AsyncClient.list`."""
        return done(self._same.list(namespace=namespace, all_namespaces=all_namespaces, labels=labels))

    def wait(self, job: JobRef, goal: str = "Succeeded", *, namespace: str | None = None,
             timeout: float | None = None) -> Job:
        """As `AsyncClient.wait`."""
        return done(self._same.wait(job, goal, namespace=namespace, timeout=timeout))

    def logs(self, job: JobRef, *, follow: bool = False, replica: str = "", container: str = "",
             tail: int | None = None, since: float | None = None, previous: bool = False,
             namespace: str | None = None) -> "Iterator[Line]":
        """As `AsyncClient.logs`."""
        from trainmaster.sdk.logs import Line, Wanted

        wanted = Wanted(replica, container, tail, since, previous)
        for name, lines in self.log_batches(job, wanted, follow=follow, namespace=namespace):
            for time, text in lines:
                yield Line(name, time, text)

    def log_batches(self, job: JobRef, wanted: "Wanted", *, follow: bool = False,
                    namespace: str | None = None) -> "Iterator[Batch]":
        """As `AsyncClient.log_batches`. Many logs at once need a loop, which then runs in a thread of its own."""
        if not follow:
            return each(self._same.log_batches(job, wanted, namespace=namespace))
        if self.cluster is None:
            raise RuntimeError("a client with a transport of its own cannot follow; use AsyncClient")
        from trainmaster.sdk.aside import aside

        access, where = self.cluster.access, namespace or self.session.namespace

        async def batches() -> "AsyncGenerator[Batch, None]":
            async with (
                AsyncClient(namespace=where, transport=files.transport(access)) as client,
                aclosing(client.log_batches(job, wanted, follow=True)) as found,
            ):
                async for batch in found:
                    yield batch

        return aside(batches)

    def events(self, job: JobRef | None = None, *, namespace: str | None = None,
               all_namespaces: bool = False) -> "builtins.list[Happening]":
        """As `AsyncClient.events`."""
        return done(self._same.events(job, namespace=namespace, all_namespaces=all_namespaces))

    def explain(self, job: JobRef, *, namespace: str | None = None) -> "Explanation":
        """As `AsyncClient.explain`."""
        return done(self._same.explain(job, namespace=namespace))

    def scale(self, job: JobRef, replicas: int | Mapping[str, int], *, namespace: str | None = None) -> Job:
        """As `AsyncClient.scale`."""
        return done(self._same.scale(job, replicas, namespace=namespace))

    def suspend(self, job: JobRef, *, namespace: str | None = None) -> Job:
        """As `AsyncClient.suspend`."""
        return done(self._same.suspend(job, namespace=namespace))

    def resume(self, job: JobRef, *, namespace: str | None = None) -> Job:
        """As `AsyncClient.resume`."""
        return done(self._same.resume(job, namespace=namespace))

    def restart(self, job: JobRef, *, namespace: str | None = None, replica: str = "") -> Job:
        """As `AsyncClient.restart`."""
        return done(self._same.restart(job, namespace=namespace, replica=replica))

    def delete(self, job: JobRef, *, namespace: str | None = None, wait: bool = True) -> Job:
        """As `AsyncClient.delete`."""
        return done(self._same.delete(job, namespace=namespace, wait=wait))
