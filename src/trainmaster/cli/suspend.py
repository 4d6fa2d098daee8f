"""`trainmaster suspend JOB`: its pods go, the job stays."""

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import reported


@click.command(epilog="Example: trainmaster suspend mnist")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...", shell_complete=cluster.completes("jobs"))
@cluster.output
@cluster.options
def command(asked: cluster.Asked, jobs: tuple[str, ...], form: str) -> None:
    """Take the pods of jobs away; the jobs stay, and go on when they are resumed."""
    with asked.client(changes=True) as client:
        for job in jobs:
            found = client.suspend(job)
            reported(found.resource, found.object, "suspended", form)
