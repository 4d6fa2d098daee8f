"""`trainmaster status`: what is up."""

import sys
from typing import TYPE_CHECKING

import click

from trainmaster.cli.cluster import output
from trainmaster.cli.output import NO_CLUSTER, called, printed, say
from trainmaster.local import parts
from trainmaster.local.home import Home
from trainmaster.local.nodes import nodes
from trainmaster.local.said import said_before

if TYPE_CHECKING:
    from trainmaster.sdk.jobs import Job


@click.command(epilog="Example: trainmaster status")
@output
def command(form: str) -> None:
    """Say what is up, what runs and what waits. Exit code 3 if the cluster, or a part of it, is down."""
    home = Home.from_environment()
    control_plane, node = parts.control_plane(home).facts(), parts.node(home).facts()
    names = [each.name for each in nodes(home)] if node else []
    said = said_before(home)
    alone = bool(said.only_apiserver)
    if not control_plane or "server" not in control_plane:
        if form in ("json", "yaml"):
            printed({"controlPlane": None, "node": None, "home": str(home.path), "jobs": []}, form)
        say("The cluster is down. Start it with `trainmaster up`.")
        sys.exit(NO_CLUSTER)
    from trainmaster.kube.errors import KubeError

    try:
        found = jobs(home)
    except KubeError as problem:
        say(f"The control plane does not answer ({problem}). See {home.logs / 'control-plane.log'}; "
            "`trainmaster down` and `up` start it anew.")
        sys.exit(NO_CLUSTER)
    if form in ("json", "yaml"):
        up = {name: control_plane[name] for name in ("server", "pid")}
        agent = {"pid": node["pid"], "names": names} if node else None
        printed({"controlPlane": up, "node": agent, "home": str(home.path), "startedWith": said.options(),
                 "jobs": [job.summary() for job in found]}, form)
    elif form == "name":
        for job in found:
            click.echo(called(job.resource, job.name))
    else:
        click.echo(f"control plane  up, {control_plane['server']}, pid {control_plane['pid']}")
        called_so = f"{len(names)} nodes" if len(names) > 1 else "node"
        told = "none, as asked for" if alone else "down; `trainmaster up` starts it"
        if node:
            told = f"up, {', '.join(names)}, pid {node['pid']}"
        click.echo(f"{called_so:<13}  {told}")
        click.echo(f"home           {home.path}")
        if options := said.options():
            click.echo(f"started with   {options}")
        for job in found:
            why = f": {job.why}" if job.why else ""
            click.echo(f"{job.kind.lower()}/{job.namespace}/{job.name}  {job.state}{why}")
        if not found:
            click.echo("no jobs")
    sys.exit(0 if node or alone else NO_CLUSTER)


def jobs(home: Home) -> "list[Job]":
    """All jobs; loads the client only here."""
    from trainmaster.sdk.client import Client

    with Client(home.kubeconfig) as client:
        return client.list(all_namespaces=True)
