"""`trainmaster operator`: only the operator, against any cluster."""

import asyncio
import os
import signal

import click

from trainmaster.cli.output import BAD_INPUT, NO_CLUSTER, Told


@click.command(epilog="Example: trainmaster operator --kubeconfig ~/.kube/config")
@click.option("--kubeconfig", "path", type=click.Path(dir_okay=False), envvar="KUBECONFIG",
              help="Which cluster. Default: KUBECONFIG, else the account of the pod we run in.")
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--json-logs", is_flag=True, help="Logs as JSON.")
def command(path: str | None, context: str | None, json_logs: bool) -> None:
    """Run the operator until it is stopped. The custom resource definitions must be there."""
    from pathlib import Path

    from trainmaster.kube import kubeconfig
    from trainmaster.kube.client import Client
    from trainmaster.operator import main as operator
    from trainmaster.runtime import log
    from trainmaster.runtime.clock import RealClock

    log.setup("info", json=json_logs)
    try:
        access = kubeconfig.load(Path(path), context) if path else kubeconfig.in_cluster(os.environ)
    except kubeconfig.KubeconfigError as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    if access is None:
        raise Told("No cluster: give --kubeconfig, set KUBECONFIG, or run inside a pod.", NO_CLUSTER)

    async def run() -> None:
        client = Client(kubeconfig.transport(access), user_agent="trainmaster-operator")
        work = asyncio.ensure_future(operator.run(client, RealClock()))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        try:
            await asyncio.gather(work, return_exceptions=False)
        except asyncio.CancelledError:
            return
        finally:
            await client.close()

    asyncio.run(run())
