"""`trainmaster status`: what is up."""

import sys

import click

from trainmaster.cli.output import NO_CLUSTER, say
from trainmaster.local import parts
from trainmaster.local.home import Home


@click.command(epilog="Example: trainmaster status")
def command() -> None:
    """Say what is up, what runs and what waits. Exit code 3 if the cluster, or a part of it, is down."""
    home = Home.from_environment()
    control_plane, node = parts.control_plane(home).facts(), parts.node(home).facts()
    if not control_plane or "server" not in control_plane:
        say("The cluster is down. Start it with `trainmaster up`.")
        sys.exit(NO_CLUSTER)
    click.echo(f"control plane  up, {control_plane['server']}, pid {control_plane['pid']}")
    click.echo(f"node           {'up, pid ' + str(node['pid']) if node else 'down; `trainmaster up` starts it'}")
    click.echo(f"home           {home.path}")
    from trainmaster.kube.errors import KubeError

    try:
        for line in jobs(home):
            click.echo(line)
    except KubeError as problem:
        say(f"The control plane does not answer ({problem}). See {home.logs / 'control-plane.log'}; "
            "`trainmaster down` and `up` start it anew.")
        sys.exit(NO_CLUSTER)
    sys.exit(0 if node else NO_CLUSTER)


def jobs(home: Home) -> list[str]:
    """A line per job; loads the client only here."""
    import asyncio

    from trainmaster.api.meta import key_of
    from trainmaster.kube import kubeconfig
    from trainmaster.kube.client import Client
    from trainmaster.kube.discovery import served
    from trainmaster.sdk.submit import is_job

    async def ask() -> list[str]:
        client = Client(kubeconfig.transport(kubeconfig.load(home.kubeconfig)))
        try:
            kinds = [kind.resource for kind in await served(client) if is_job(kind.resource)]
            return [
                f"{kind.kind.lower()}/{key_of(job)}  {state(job)}"
                for kind in kinds for job in (await client.list(kind)).items
            ]
        finally:
            await client.close()

    def state(job: dict[str, dict[str, list[dict[str, str]]]]) -> str:
        conditions = job.get("status", {}).get("conditions") or [{"type": "Created"}]
        return conditions[-1]["type"]

    return asyncio.run(ask()) or ["no jobs"]
