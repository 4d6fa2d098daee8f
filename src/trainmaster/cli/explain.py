"""`trainmaster explain JOB`: why it waits, why it failed."""

import click

from trainmaster.cli.output import BAD_INPUT, NO_CLUSTER, Told


@click.command(epilog="Example: trainmaster explain mnist")
@click.argument("job")
@click.option("-n", "--namespace", help="Default: that of the kubeconfig's context.")
@click.option("--kubeconfig", envvar="KUBECONFIG", help="Default: the embedded cluster.")
@click.option("--context", help="The context of the kubeconfig.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(job: str, namespace: str | None, kubeconfig: str | None, context: str | None, output: str) -> None:
    """Say in plain words why a job waits, or why it failed."""
    import asyncio
    from dataclasses import asdict
    from pathlib import Path

    from trainmaster.kube import kubeconfig as files
    from trainmaster.kube.client import Client
    from trainmaster.kube.errors import KubeError
    from trainmaster.local.home import Home
    from trainmaster.local.up import is_up
    from trainmaster.sdk.errors import NoJob
    from trainmaster.sdk.explain import Explanation, explain

    home = Home.from_environment()
    if not kubeconfig and is_up(home) is None:
        raise Told("The cluster is down. Start it with `trainmaster up`, or give --kubeconfig.", NO_CLUSTER)
    try:
        access = files.load(Path(kubeconfig) if kubeconfig else home.kubeconfig, context)
    except files.KubeconfigError as problem:
        raise Told(str(problem), BAD_INPUT) from problem

    async def ask() -> list[Explanation]:
        client = Client(files.transport(access))
        try:
            return await explain(client, job, namespace or access.namespace or "default")
        finally:
            await client.close()

    try:
        found = asyncio.run(ask())
    except NoJob as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    except KubeError as problem:
        raise Told(f"The cluster at {access.server} does not answer: {problem}", NO_CLUSTER) from problem
    if output == "json":
        import json

        click.echo(json.dumps([asdict(each) for each in found], indent=2))
        return
    for each in found:
        click.echo(f"{each.kind.lower()}/{each.name}  {each.state}: {each.why}")
        for line in each.more:
            click.echo(f"  {line}")
