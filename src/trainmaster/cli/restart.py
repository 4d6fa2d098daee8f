"""`trainmaster restart JOB`: from the beginning."""

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import reported


@click.command(epilog="Example: trainmaster restart mnist")
@cluster.job_argument
@click.option("--replica", default="", metavar="NAME", help="Only this one, as worker-0: its pod is made anew.",
              shell_complete=cluster.completes("replicas"))
@cluster.output
@cluster.options
def command(asked: cluster.Asked, job: str, replica: str, form: str) -> None:
    """Run a job from the beginning: with new pods, or made anew if it has ended. What it wrote to volumes stays."""
    with asked.client(changes=True) as client:
        found = client.restart(job, replica=replica)
        reported(found.resource, found.object, f"restarted{f': {replica}' if replica else ''}", form)
