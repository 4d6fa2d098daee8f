"""`trainmaster resume JOB`: go on after `suspend`."""

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import reported


@click.command(epilog="Example: trainmaster resume mnist")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...", shell_complete=cluster.completes("jobs"))
@cluster.output
@cluster.options
def command(asked: cluster.Asked, jobs: tuple[str, ...], form: str) -> None:
    """Let suspended jobs go on."""
    with asked.client(changes=True) as client:
        for job in jobs:
            found = client.resume(job)
            reported(found.resource, found.object, "resumed", form)
