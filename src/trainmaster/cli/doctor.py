"""`trainmaster doctor`: what is wrong with this machine or with a cluster, and what to do."""

import os
import sys
from typing import TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import NO_CLUSTER, printed
from trainmaster.local.home import Home

if TYPE_CHECKING:
    from trainmaster.sdk.checkup import Finding


@click.command(epilog="Example: trainmaster doctor")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, form: str) -> None:
    """Try what a cluster needs of this machine; say what is missing and how to get it. Exit code 3 if something is.

    With --kubeconfig, --context or KUBECONFIG: what that cluster lacks for training jobs, instead. The embedded cluster
    is looked at as well if it is up.
    """
    home = Home.from_environment()
    elsewhere = bool(asked.kubeconfig or asked.context
                     or os.environ.get("KUBECONFIG", "") not in ("", str(home.kubeconfig)))
    found = [*([] if elsewhere else _of_this_machine(home)), *(_of_cluster(asked) if elsewhere or _is_up(home) else [])]
    if form in ("json", "yaml"):
        printed([{"what": each.what, "fine": each.fine, "told": each.told} for each in found], form)
    elif form == "name":
        for finding in found:
            click.echo(finding.what)
    else:
        for finding in found:
            click.echo(f"{'ok     ' if finding.fine else 'MISSING'}  {finding.what}: {finding.told}")
    sys.exit(0 if all(finding.fine for finding in found) else NO_CLUSTER)


def _is_up(home: Home) -> bool:
    from trainmaster.local.up import is_up

    return is_up(home) is not None


def _of_this_machine(home: Home) -> "list[Finding]":
    from trainmaster.local.doctor import findings

    return findings(home)


def _of_cluster(asked: cluster.Asked) -> "list[Finding]":
    from trainmaster.kube.blocking import done
    from trainmaster.sdk.checkup import checkup

    with asked.client() as client:
        assert client.cluster is not None
        return done(checkup(client.session, client.cluster.called))
