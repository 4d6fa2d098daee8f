"""`trainmaster events [JOB]`: what happened to a job, its replicas and its group; or to everything."""

from typing import TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import printed, say
from trainmaster.cli.tables import Table, ago

if TYPE_CHECKING:
    from trainmaster.sdk.happenings import Happening

TITLES = ("LAST SEEN", "TYPE", "REASON", "ABOUT", "MESSAGE")


@click.command(epilog="Example: trainmaster events mnist")
@click.argument("job", required=False, metavar="[JOB]", shell_complete=cluster.completes("jobs"))
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces; without a JOB.")
@click.option("--warnings", is_flag=True, help="Only warnings.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, job: str | None, everywhere: bool, warnings: bool, form: str) -> None:
    """List what happened to a job, or to all that is in the namespace; the oldest first."""
    if job and everywhere:
        raise click.UsageError("a job is in one namespace; leave it out, or -A")
    with asked.client() as client:
        all_ = client.events(job, all_namespaces=everywhere)
        found = [each for each in all_ if each.type == "Warning" or not warnings]
    if form in ("json", "yaml"):
        printed([{"time": each.time.isoformat() if each.time else None, "type": each.type, "reason": each.reason,
                  "about": each.about, "message": each.message, "count": each.count} for each in found], form)
    elif form == "name":
        for each in found:
            click.echo(f"event/{each.name}")
    elif found:
        spaces = [(each.namespace,) if everywhere else () for each in found]
        Table([*(["NAMESPACE"] if everywhere else []), *TITLES], cut_last=form != "wide").show(
            [[*space, *row(each)] for space, each in zip(spaces, found, strict=True)])
    else:
        say(f"No {'warnings' if warnings else 'events'}. The cluster forgets them after an hour.")


def row(each: "Happening") -> tuple[object, ...]:
    times = f" (x{each.count})" if each.count > 1 else ""
    return ago(each.time) + times, each.type, each.reason, each.about, each.message
