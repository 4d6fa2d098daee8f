"""`trainmaster doctor`: what is wrong with this machine, and what to do."""

import sys

import click

from trainmaster.cli.cluster import output
from trainmaster.cli.output import NO_CLUSTER, printed
from trainmaster.local.home import Home


@click.command(epilog="Example: trainmaster doctor")
@output
def command(form: str) -> None:
    """Try what a cluster needs of this machine; say what is missing and how to get it. Exit code 3 if something is."""
    from trainmaster.local.doctor import findings

    found = findings(Home.from_environment())
    if form in ("json", "yaml"):
        printed([{"what": each.what, "fine": each.fine, "told": each.told} for each in found], form)
    elif form == "name":
        for finding in found:
            click.echo(finding.what)
    else:
        for finding in found:
            click.echo(f"{'ok     ' if finding.fine else 'MISSING'}  {finding.what}: {finding.told}")
    sys.exit(0 if all(finding.fine for finding in found) else NO_CLUSTER)
