"""`trainmaster scheduler`: only the gang scheduler, beside the default scheduler of any cluster."""

import os

import click

from trainmaster.cli.output import BAD_INPUT, NO_CLUSTER, Told
from trainmaster.local.scheduler import NAMES


@click.command(epilog="Example: trainmaster scheduler --kubeconfig ~/.kube/config --gang-scheduler-name volcano")
@click.option("--kubeconfig", envvar="KUBECONFIG", help="The cluster to work in. Default: that of the pod we run in.")
@click.option("--context", help="The context of the kubeconfig.")
@click.option("--gang-scheduler-name", "names", multiple=True, type=click.Choice(NAMES),
              help="Which groups to serve. Default: all whose kinds the cluster has.")
@click.option("--preempt", is_flag=True, help="Gangs may push out less important gangs of their queue.")
@click.option("--reclaim", is_flag=True, help="Queues may take back what they deserve from queues that have more.")
@click.option("--patience", type=click.FloatRange(0), default=600.0, show_default=True,
              help="Seconds after which room is kept for the first in line; 0: never.")
def command(kubeconfig: str | None, context: str | None, names: tuple[str, ...], preempt: bool, reclaim: bool,
            patience: float) -> None:
    """Run the gang scheduler until it is stopped. Pods of the default scheduler are not touched."""
    import asyncio
    from pathlib import Path

    from trainmaster.kube import kubeconfig as files
    from trainmaster.kube.errors import KubeError
    from trainmaster.local.scheduler import NothingToServe, Settings, run
    from trainmaster.runtime import log

    log.setup("info")
    try:
        access = files.load(Path(kubeconfig), context) if kubeconfig else files.in_cluster(os.environ)
    except files.KubeconfigError as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    if access is None:
        raise Told("No cluster: give --kubeconfig, set KUBECONFIG, or run inside a pod.", NO_CLUSTER)
    try:
        asyncio.run(run(access, names, Settings(preempt=preempt, reclaim=reclaim, patience=patience)))
    except NothingToServe as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    except KubeError as problem:
        raise Told(f"The cluster at {access.server} does not answer: {problem}", NO_CLUSTER) from problem
