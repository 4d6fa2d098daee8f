"""`trainmaster up`: start the embedded cluster."""

import time

import click

from trainmaster.cli.output import BAD_INPUT, NO_CLUSTER, Told, say
from trainmaster.local.home import Home
from trainmaster.local.parts import StartError
from trainmaster.local.up import Up, up


@click.command(epilog="Example: trainmaster up --resource nvidia.com/gpu=4")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="that of the last time, else any",
              help="Port of the API server on 127.0.0.1.")
@click.option("--cpus", help="CPUs that the node offers. Default: four times the cores.")
@click.option("--memory", help="Memory that the node offers, such as 16Gi. Default: that of the machine.")
@click.option("--resource", "resources", multiple=True, metavar="NAME=AMOUNT",
              help="Another resource that the node offers, such as nvidia.com/gpu=4.")
@click.option("--only", type=click.Choice(["apiserver"]),
              help="Start the API server with its own controllers, but no scheduler, node or operator.")
def command(port: int, cpus: str | None, memory: str | None, resources: tuple[str, ...], only: str | None) -> None:
    """Start the embedded cluster in the background and wait until it is ready."""
    home = Home.from_environment()
    began = time.monotonic()
    cluster = start(home, port, offered(cpus, memory, resources), only_apiserver=only is not None)
    if cluster.already:
        say(f"The cluster is up already at {cluster.server}.")
    else:
        say(f"The cluster is up at {cluster.server} after {time.monotonic() - began:.1f} s.")
    say(f"  export KUBECONFIG={home.kubeconfig}")


def start(
    home: Home, port: int = 0, offers: dict[str, str] | None = None, *, only_apiserver: bool = False
) -> Up:
    try:
        return up(home, port=port, offered=offers, only_apiserver=only_apiserver)
    except StartError as problem:
        raise Told(f"The cluster could not be started: {problem}", NO_CLUSTER) from problem
    except OSError as problem:
        raise Told(f"{problem.filename}: {problem.strerror}. Set TRAINMASTER_HOME to a folder of your own.",
                   NO_CLUSTER) from problem


def offered(cpus: str | None, memory: str | None, resources: tuple[str, ...]) -> dict[str, str]:
    """What the node shall offer, as asked for. Raises Told for what is no quantity."""
    from trainmaster.api import quantity

    asked = [("cpu", cpus), ("memory", memory)]
    for text in resources:
        name, equals, amount = text.partition("=")
        if not equals or not name:
            raise Told(f"--resource {text}: write NAME=AMOUNT, such as nvidia.com/gpu=4.", BAD_INPUT)
        asked.append((name, amount))
    found = {name: amount for name, amount in asked if amount is not None}
    for name, amount in found.items():
        try:
            quantity.parse(amount)
        except ValueError as problem:
            raise Told(f"{name}: {problem}.", BAD_INPUT) from problem
    return found
