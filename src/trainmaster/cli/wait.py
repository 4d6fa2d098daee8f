"""`trainmaster wait JOB`: until it is so far, or cannot be any more."""

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import called, printed

GOALS = ("Succeeded", "Failed", "Finished", "Running", "Suspended", "Created", "Deleted")


@click.command(epilog="Example: trainmaster wait mnist --for Running --timeout 2m")
@cluster.job_argument
@click.option("--for", "goal", default="Succeeded", show_default=True, metavar="STATE",
              help=f"What to wait for: {', '.join(GOALS)}; or condition=NAME, as kubectl has it.")
@click.option("--timeout", metavar="SPAN", help="How long at most, as 10m. Default: for ever.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, job: str, goal: str, timeout: str | None, form: str) -> None:
    """Wait for a job. Exit code 1 as soon as it has failed instead, with the reason, or when the time is over."""
    patience = cluster.seconds(timeout, "--timeout") if timeout else None
    with asked.client() as client:
        found = client.wait(job, goal, timeout=patience)
        if form in ("json", "yaml"):
            printed(found.object, form)
        elif form == "name":
            click.echo(called(found.resource, found.name))
        elif goal.lower().startswith("delete"):
            click.echo(f"{called(found.resource, found.name)} deleted")
        else:
            click.echo(f"{called(found.resource, found.name)} {found.state}{f': {found.why}' if found.why else ''}")
