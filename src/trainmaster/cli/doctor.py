"""`trainmaster doctor`: what is wrong with this machine, and what to do."""

import sys

import click

from trainmaster.cli.output import NO_CLUSTER
from trainmaster.local.home import Home


@click.command(epilog="Example: trainmaster doctor")
def command() -> None:
    """Try what a cluster needs of this machine; say what is missing and how to get it. Exit code 3 if something is."""
    from trainmaster.local.doctor import findings

    found = findings(Home.from_environment())
    for finding in found:
        click.echo(f"{'ok     ' if finding.fine else 'MISSING'}  {finding.what}: {finding.told}")
    sys.exit(0 if all(finding.fine for finding in found) else NO_CLUSTER)
