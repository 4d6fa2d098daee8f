"""`trainmaster up`: start the embedded cluster."""

import shlex
import time

import click

from trainmaster.cli.cluster import output
from trainmaster.cli.output import BAD_INPUT, NO_CLUSTER, Told, of_files, printed, say
from trainmaster.local.asked import GANG_SCHEDULERS, VOLCANO
from trainmaster.local.home import Home
from trainmaster.local.nodes import MOST
from trainmaster.local.parts import StartError
from trainmaster.local.said import NOTHING, SIMULATED, Said
from trainmaster.local.up import Up, up


@click.command(epilog="Example: trainmaster up --resource nvidia.com/gpu=4")
@click.option("--foreground", is_flag=True, help="Stay, and stop the cluster with Ctrl-C or SIGTERM.")
@click.option("--port", type=click.IntRange(0, 65535), show_default="that of the last time, else any",
              help="Port of the API server on 127.0.0.1.")
@click.option("--nodes", type=click.IntRange(1, MOST), metavar="N", show_default="1",
              help="Split the machine into N nodes, which share what it offers.")
@click.option("--cpus", help="CPUs that the machine offers. Default: four times the cores.")
@click.option("--memory", help="Memory that the machine offers, such as 16Gi. Default: all that it has.")
@click.option("--resource", "resources", multiple=True, metavar="NAME=AMOUNT",
              help="Another resource that the machine offers, such as nvidia.com/gpu=4.")
@click.option("--only", type=click.Choice(["apiserver"]),
              help="Start the API server with its own controllers, but no scheduler, node or operator.")
@click.option("--gang-scheduler-name", "gang", type=click.Choice(list(GANG_SCHEDULERS)),
              show_default=VOLCANO, help="How jobs are kept whole; none: pod by pod, as on a plain cluster.")
@click.option("--preempt", is_flag=True, help="Gangs may push out less important gangs of their queue.")
@click.option("--reclaim", is_flag=True, help="Queues may take back what they deserve from queues that have more.")
@click.option("--fake-nodes", type=click.IntRange(0, 5000), metavar="N",
              help="Add N nodes whose pods are only simulated.")
@click.option("--fake-node", metavar="NAME=AMOUNT,…", show_default=",".join(map("=".join, SIMULATED.items())),
              help="What each of them offers.")
@output
def command(foreground: bool, port: int | None, nodes: int | None, cpus: str | None, memory: str | None,
            resources: tuple[str, ...], only: str | None, gang: str | None, preempt: bool, reclaim: bool,
            fake_nodes: int | None, fake_node: str | None, form: str) -> None:
    """Start the embedded cluster in the background and wait until it is ready; with --foreground, stay with it.

    A cluster that was not taken down, but crashed, has again what it was started with, unless told otherwise.
    """
    home = Home.from_environment()
    began = time.monotonic()
    simulated = offered(None, None, tuple(fake_node.split(",")), "--fake-node") if fake_node else None
    said = Said(port, only is not None or None, gang, fake_nodes, simulated, preempt or None, reclaim or None,
                offered(cpus, memory, resources))
    if nodes and only:
        raise Told("--nodes with --only apiserver: there are no nodes then. Leave one of them out.", BAD_INPUT)
    cluster = start(home, said, nodes)
    if cluster.already:
        started = f", started with {options}" if (options := cluster.said.options()) else ""
        say(f"The cluster is up already at {cluster.server}{started}.")
        if said.over(cluster.said).means() != cluster.said.means() or nodes not in (None, len(cluster.nodes)):
            say("note: a cluster that is up stays as it is. For what you ask of it, `trainmaster down` first.")
    else:
        say(f"The cluster is up at {cluster.server} after {time.monotonic() - began:.1f} s.")
        tell_kept(cluster)
    if len(cluster.nodes) > 1 and not cluster.said.only_apiserver:
        say(f"  {len(cluster.nodes)} nodes: {', '.join(cluster.nodes)}")
    names = list(cluster.nodes) if not cluster.said.only_apiserver else []
    if form in ("json", "yaml"):
        printed({"server": cluster.server, "kubeconfig": str(home.kubeconfig), "home": str(home.path), "nodes": names,
                 "alreadyUp": cluster.already, "startedWith": cluster.said.options()}, form)
    elif form == "name":
        for name in names:
            click.echo(f"node/{name}")
    else:
        say(f"  export KUBECONFIG={shlex.quote(str(home.kubeconfig))}")
    if foreground:
        _stay(home)


def _stay(home: Home) -> None:
    from trainmaster.local.down import down
    from trainmaster.local.staying import stay

    ended = stay(home, lambda: say("Ctrl-C stops it."))
    down(home, say=say)
    if ended:
        raise Told(f"The {ended} of the cluster ended; see {home.logs / f'{ended}.log'}. The cluster is down.",
                   NO_CLUSTER)
    say("The cluster is down.")


def tell_kept(cluster: Up) -> None:
    """Nobody asked for it this time, so it must not come as a surprise."""
    if cluster.kept:
        say(f"  It was not taken down before, so it has again what it was started with: {cluster.kept}\n"
            "  (`trainmaster down` forgets that)")


def start(home: Home, said: Said = NOTHING, nodes: int | None = None) -> Up:
    try:
        return up(home, said, nodes=nodes)
    except KeyboardInterrupt:
        say("Interrupted; what was about to start is stopped.")
        raise
    except StartError as problem:
        raise Told(f"The cluster could not be started: {problem}", NO_CLUSTER) from problem
    except OSError as problem:
        raise Told(of_files(problem), NO_CLUSTER) from problem


def offered(cpus: str | None, memory: str | None, resources: tuple[str, ...],
            option: str = "--resource") -> dict[str, str]:
    """What the machine shall offer, as asked for. Raises Told for what is no quantity."""
    from trainmaster.api import quantity

    asked = [("cpu", cpus), ("memory", memory)]
    for text in resources:
        name, equals, amount = text.partition("=")
        if not equals or not name:
            raise Told(f"{option} {text}: write NAME=AMOUNT, such as nvidia.com/gpu=4.", BAD_INPUT)
        asked.append((name, amount))
    found = {name: amount for name, amount in asked if amount is not None}
    for name, amount in found.items():
        try:
            quantity.parse(amount)
        except ValueError as problem:
            raise Told(f"{name}: {problem}.", BAD_INPUT) from problem
    return found
