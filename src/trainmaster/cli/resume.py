"""`trainmaster resume JOB`: go on after `suspend`."""

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import called


@click.command(epilog="Example: trainmaster resume mnist")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...", shell_complete=cluster.completes("jobs"))
@cluster.options
def command(asked: cluster.Asked, jobs: tuple[str, ...]) -> None:
    """Let suspended jobs go on."""
    with asked.client(changes=True) as client:
        for job in jobs:
            found = client.resume(job)
            click.echo(f"{called(found.resource, found.name)} resumed")
