"""`trainmaster down`: stop the embedded cluster."""

import click

from trainmaster.cli.output import say
from trainmaster.local.down import down
from trainmaster.local.home import Home


@click.command(epilog="Example: trainmaster down")
@click.option("--keep-pods", is_flag=True, help="Leave the pods running; the next `up` adopts them.")
def command(keep_pods: bool) -> None:
    """Stop the embedded cluster in order, pods first."""
    stopped = down(Home.from_environment(), keep_pods=keep_pods, say=say)
    say("The cluster is down." if stopped else "The cluster was not up.")
