"""`trainmaster events JOB`: what happened to a job, its replicas and its group."""

from typing import TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import printed, say
from trainmaster.cli.tables import Table, ago

if TYPE_CHECKING:
    from trainmaster.sdk.happenings import Happening

TITLES = ("LAST SEEN", "TYPE", "REASON", "ABOUT", "MESSAGE")


@click.command(epilog="Example: trainmaster events mnist")
@cluster.job_argument
@click.option("--warnings", is_flag=True, help="Only warnings.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, job: str, warnings: bool, form: str) -> None:
    """List what happened to a job, the oldest first."""
    with asked.client() as client:
        found = [each for each in client.events(job) if each.type == "Warning" or not warnings]
    if form in ("json", "yaml"):
        printed([{"time": each.time.isoformat() if each.time else None, "type": each.type, "reason": each.reason,
                  "about": each.about, "message": each.message, "count": each.count} for each in found], form)
    elif form == "name":
        for each in found:
            click.echo(each.reason)
    elif found:
        Table(TITLES, cut_last=form != "wide").show([row(each) for each in found])
    else:
        say("No events. The cluster forgets them after an hour.")


def row(each: "Happening") -> tuple[object, ...]:
    times = f" (x{each.count})" if each.count > 1 else ""
    return ago(each.time) + times, each.type, each.reason, each.about, each.message
