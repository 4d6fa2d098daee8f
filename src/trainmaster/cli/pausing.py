"""What `suspend` and `resume` have in common: one verb for several jobs."""

from typing import Literal

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import reported


def pausing(verb: Literal["suspend", "resume"], past: str, sentence: str) -> click.Command:
    """The command of a verb of the client."""

    @click.command(verb, epilog=f"Example: trainmaster {verb} mnist", help=sentence)
    @click.argument("jobs", nargs=-1, required=True, metavar="JOB...", shell_complete=cluster.completes("jobs"))
    @cluster.output
    @cluster.options
    def command(asked: cluster.Asked, jobs: tuple[str, ...], form: str) -> None:
        with asked.client(changes=True) as client:
            for job in jobs:
                found = client.suspend(job) if verb == "suspend" else client.resume(job)
                reported(found.resource, found.object, past, form)

    return command
