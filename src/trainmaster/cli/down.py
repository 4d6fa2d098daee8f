"""`trainmaster down`: stop the embedded cluster."""

import click

from trainmaster.cli.cluster import output
from trainmaster.cli.output import printed, say
from trainmaster.local.down import down
from trainmaster.local.home import Home


@click.command(epilog="Example: trainmaster down")
@click.option("--keep-pods", is_flag=True, help="Leave the pods running; the next `up` adopts them.")
@output
def command(keep_pods: bool, form: str) -> None:
    """Stop the embedded cluster in order, pods first."""
    home = Home.from_environment()
    stopped = down(home, keep_pods=keep_pods, say=say)
    if form in ("json", "yaml"):
        printed({"stopped": stopped, "home": str(home.path)}, form)
    say("The cluster is down." if stopped else "The cluster was not up.")
