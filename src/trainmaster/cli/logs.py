"""`trainmaster logs JOB`: what all replicas print, as one stream."""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import OBJECTS, printed, say, told
from trainmaster.cli.tables import REPLICA_COLOURS
from trainmaster.progress.lines import frame

if TYPE_CHECKING:
    from trainmaster.sdk.client import Client
    from trainmaster.sdk.jobs import Job
    from trainmaster.sdk.logs import Batch, Wanted

ONE = re.compile(r".*-\d+")


@click.command(epilog="Example: trainmaster logs -f mnist")
@cluster.job_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--replica", default="", metavar="NAME", help="Only this replica, as worker-0, or this role, as worker.",
              shell_complete=cluster.completes("replicas"))
@click.option("-c", "--container", default="", metavar="NAME", help="Only this container.")
@click.option("--tail", type=click.IntRange(0), help="The last so many lines of each replica.")
@click.option("--since", metavar="SPAN", help="Not older than this, as 10m.")
@click.option("-p", "--previous", is_flag=True, help="Of the life of each container before this one.")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@click.option("--prefix/--no-prefix", default=None, help="The replica before each line. Default: unless one is named.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, job: str, follow: bool, replica: str, container: str, tail: int | None,
            since: str | None, previous: bool, timestamps: bool, prefix: bool | None, form: str) -> None:
    """Print what the replicas of a job print, merged in the order of time.

    With -o json each line is an object of its own: replica, time and text; with -o yaml an item of a list. -o name
    prints who printed something, and -o wide the time of each line.
    """
    from trainmaster.sdk.logs import Wanted

    span = cluster.seconds(since, "--since") if since else None
    with asked.client() as client:
        found, replica = meant(client, job, replica)
        wanted = Wanted(replica, container, tail, span, previous)
        if prefix is None:
            prefix = not ONE.fullmatch(replica)
        writer: Writer = _Objects(found.name, form) if form in OBJECTS else Writer(prefix, timestamps or form == "wide")
        if follow:
            _follow(client, found, wanted, writer)
        else:
            for batch in client.log_batches(found, wanted):
                writer.write(batch)
        if not writer.wrote and not follow:
            say(f"Nothing was printed{' that is wanted' if tail == 0 or span or container else ''} by {found.kind} "
                f"{found.name}, which is {found.state.lower()}.")


def meant(client: "Client", job: str, replica: str) -> "tuple[Job, str]":
    """The job; or, if there is none of that name but a pod, its job and that replica."""
    from trainmaster.api.core import PODS
    from trainmaster.api.membership import JOB_NAME
    from trainmaster.api.meta import labels_of
    from trainmaster.kube.blocking import done
    from trainmaster.kube.errors import ApiError
    from trainmaster.sdk.errors import NoJob

    try:
        return client.get(job.removeprefix("pod/")), replica
    except NoJob:
        try:
            pod = done(client.session.client.get(PODS, job.removeprefix("pod/"), client.session.namespace))
            return client.get(labels_of(pod)[JOB_NAME]), job.removeprefix("pod/")
        except (ApiError, KeyError):
            pass
        raise


class Writer:
    """Writes lines with the replica before each; a batch at a time, since there may be many."""

    def __init__(self, prefix: bool, timestamps: bool) -> None:
        self._prefix, self._timestamps = prefix, timestamps
        self._coloured = sys.stdout.isatty()
        self._prefixes: dict[str, str] = {}
        self.wrote = False

    def write(self, batch: "Batch") -> None:
        name, lines = batch
        before = self._before(name) if self._prefix else ""
        if before:       # a bar that redraws its line would write over the name of its replica, or run on for pages
            lines = [(time, frame(text)) if "\r" in text else (time, text) for time, text in lines]
        self.wrote = True
        sys.stdout.write("".join(self._written(before, lines)))
        sys.stdout.flush()

    def _written(self, before: str, lines: "Iterable[tuple[str, str]]") -> Iterator[str]:
        if self._timestamps:
            return (f"{before}{time} {text}\n" for time, text in lines)
        return (f"{before}{text}\n" for _, text in lines)

    def _before(self, name: str) -> str:
        if name not in self._prefixes:
            plain = f"[{name}] "
            colour = REPLICA_COLOURS[len(self._prefixes) % len(REPLICA_COLOURS)]
            self._prefixes[name] = click.style(plain, colour) if self._coloured else plain
        return self._prefixes[name]


class _Objects(Writer):
    """The same for programs: a line, an item or a name."""

    def __init__(self, job: str, form: str) -> None:
        super().__init__(prefix=False, timestamps=True)
        self._job, self._form = job, form
        self._named: set[str] = set()

    def write(self, batch: "Batch") -> None:
        name, lines = batch
        self.wrote = True
        found = [{"replica": name, "time": time, "text": text} for time, text in lines]
        if self._form == "yaml":
            printed(found, "yaml")
        elif self._form == "json":
            import orjson

            sys.stdout.write("".join(f"{orjson.dumps(line).decode()}\n" for line in found))
        elif name not in self._named:
            self._named.add(name)
            click.echo(f"pod/{self._job}-{name}")
        sys.stdout.flush()


def _follow(client: "Client", job: "Job", wanted: "Wanted", writer: Writer) -> None:
    """Several logs at once need a loop."""
    import asyncio
    import logging
    from contextlib import aclosing

    from trainmaster.kube import kubeconfig
    from trainmaster.sdk.client import AsyncClient

    assert client.cluster is not None
    transport = kubeconfig.transport(client.cluster.access)

    async def follow() -> None:
        async with (
            AsyncClient(transport=transport, namespace=job.namespace) as following,
            aclosing(following.log_batches(job, wanted, follow=True)) as batches,
        ):
            async for batch in batches:
                writer.write(batch)

    # That the server is away for a moment is no news for whoever reads the log.
    logging.getLogger("trainmaster").setLevel(logging.ERROR)
    with told():
        asyncio.run(follow())
