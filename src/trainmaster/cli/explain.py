"""`trainmaster explain JOB`: why it waits, why it failed, why it hangs; or what would become of one (`-f`)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import BAD_INPUT, Told, printed

if TYPE_CHECKING:
    from trainmaster.sdk.client import Client
    from trainmaster.sdk.explain import Explanation


@click.command(epilog="Example: trainmaster explain mnist")
@click.argument("job", required=False, shell_complete=cluster.completes("jobs"))
@click.option("-f", "--file", "files", multiple=True, type=click.Path(), metavar="FILE",
              help="Jobs that are not submitted: would they start now, and if not, why?")
@click.option("--quiet", "--hangs-after", default="5m", show_default=True, metavar="SPAN",
              help="Silence after which a job is suspected to hang.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, job: str | None, files: tuple[str, ...], quiet: str, form: str) -> None:
    """Say in plain words why a job waits, failed or hangs; or, with -f, whether a job would start."""
    if bool(job) == bool(files):
        raise Told("Name a job, or a manifest with -f.", BAD_INPUT)
    limit = cluster.seconds(quiet, "--quiet")
    with asked.client() as client:
        found = list(_forecasts(client, files) if files else _explained(client, job or "", limit))
    if form in ("json", "yaml"):
        from dataclasses import asdict

        printed([{**asdict(each), "more": list(each.more)} for each in found], form)
        return
    for each in found:
        if form == "name":
            click.echo(f"{each.kind.lower()}/{each.name}")
            continue
        click.echo(f"{each.kind.lower()}/{each.name}  {each.state}: {each.why}")
        for line in (*each.more, *each.progress):
            click.echo(f"  {line}")


def _explained(client: "Client", job: str, quiet: float) -> "Iterator[Explanation]":
    from dataclasses import replace
    from datetime import UTC, datetime

    from trainmaster.kube.blocking import done
    from trainmaster.sdk.explain import explain

    found = client.get(job)
    for each in done(explain(client.session.client, found.name, found.namespace, now=datetime.now(UTC), quiet=quiet)):
        if each.kind == found.kind:
            doubtful = each.state in ("Hung", "Silent")
            yield replace(each, more=(*each.more, *_stacks(client, found.name))) if doubtful else each


def _stacks(client: "Client", job: str) -> Iterator[str]:
    """Where the programs stand, on the embedded cluster."""
    from trainmaster.api.core import PODS
    from trainmaster.api.membership import JOB_NAME
    from trainmaster.api.meta import uid_of
    from trainmaster.kube.blocking import done
    from trainmaster.local import stacks
    from trainmaster.local.home import Home
    from trainmaster.sdk.replicas import replica_of

    home = Home.from_environment()
    program = stacks.tool()
    pods = done(client.session.client.list(PODS, client.get(job).namespace, labels=f"{JOB_NAME}={job}")).items
    here = [pod for pod in pods if (home.run / "pods" / uid_of(pod)).exists()]
    if pods and not here:
        yield (f"where each stands: trainmaster exec {job}/{replica_of(pods[0]).name} -- py-spy dump --pid 1, if its "
               "image has py-spy")
    if here and program is None:
        yield stacks.NOT_INSTALLED
    for pod in here if program is not None else ():
        for stack in stacks.stacks(home, uid_of(pod), program or ""):
            yield f"{replica_of(pod).name}, process {stack.pid}:"
            yield from (f"  {line}" for line in stack.lines)


def _forecasts(client: "Client", files: tuple[str, ...]) -> "Iterator[Explanation]":
    import sys
    from datetime import UTC, datetime

    from trainmaster.api.meta import name_of
    from trainmaster.api.validation import problems
    from trainmaster.kube.blocking import done
    from trainmaster.local.forecast import fetch, forecast
    from trainmaster.sdk.explain import Explanation
    from trainmaster.sdk.manifests import read

    manifests = read(files, sys.stdin)
    there = done(fetch(client.session.client))
    jobs = 0
    for manifest in manifests:
        if wrong := problems(manifest.thing):
            raise Told("; ".join(f"{manifest.place(each.field)}: {each}" for each in wrong), BAD_INPUT)
        thing = manifest.thing
        if not thing["metadata"].get("namespace"):
            thing = {**thing, "metadata": {**thing["metadata"], "namespace": client.session.namespace}}
        found = forecast(thing, there, datetime.now(UTC))
        if found is not None:
            jobs += 1
            yield Explanation(str(thing["kind"]), name_of(thing), "would start now" if found.starts else "would wait",
                              found.told())
    if not jobs:
        raise Told(f"There is no training job in {', '.join(files)}.", BAD_INPUT)
