"""`trainmaster top`: what replicas and nodes use of CPU and memory."""

from typing import TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import FAILED, Told, listed, printed, say
from trainmaster.cli.tables import Table

if TYPE_CHECKING:
    from trainmaster.api.meta import Object
    from trainmaster.sdk.client import Client

NOT_YET = "No figures yet. They come a few seconds after a container has started."
GROUP = "/apis/metrics.k8s.io/v1beta1"


@click.command(epilog="Example: trainmaster top mnist")
@click.argument("what", metavar="[JOB|pods|nodes]", default="pods", shell_complete=cluster.completes("jobs"))
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, what: str, everywhere: bool, form: str) -> None:
    """Show what the replicas of a job use, or all pods, or nodes."""
    from trainmaster.api.meta import name_of

    sort = "node" if what in ("nodes", "node", "no") else "pod"
    with asked.client() as client:
        if sort == "node":
            things, job = _asked(client, f"{GROUP}/nodes"), ""
            none = NOT_YET
        elif what in ("pods", "pod", "po"):
            space = "" if everywhere else f"/namespaces/{client.session.namespace}"
            things, job = _asked(client, f"{GROUP}{space}/pods"), ""
            none = NOT_YET
        else:
            found = client.get(what)
            job = found.name
            none = f"{found.kind} {found.name} has {found.state.lower()}; nothing of it runs." if found.finished else \
                NOT_YET
            things = _asked(client, f"{GROUP}/namespaces/{found.namespace}/pods", found.pods)
        if form in ("json", "yaml"):
            printed(listed(things), form)
        elif form == "name":
            for thing in things:
                click.echo(f"{sort}/{name_of(thing)}")
        elif not things:
            say(none)
        else:
            _show(things, job, everywhere)


def _asked(client: "Client", path: str, labels: str = "") -> "list[Object]":
    from trainmaster.kube.blocking import done
    from trainmaster.kube.errors import ApiError, NotFound

    try:
        answer = done(client.session.client.request("GET", path, query=[("labelSelector", labels)] if labels else ()))
    except NotFound as problem:
        raise Told("The cluster has no metrics (metrics.k8s.io). On a Kubernetes of your own, install metrics-server; "
                   "the embedded cluster has them once its node is up.", FAILED) from problem
    except ApiError as problem:
        if problem.code != 503:
            raise
        raise Told("The metrics of the cluster (metrics.k8s.io) do not answer now. Try again in a moment.", FAILED
                   ) from problem
    items: list[Object] = answer.get("items") or []
    return items


def _show(things: "list[Object]", job: str, everywhere: bool) -> None:
    from trainmaster.api.meta import name_of, namespace_of
    from trainmaster.sdk.logs import by_name

    rows = []
    for thing in things:
        used = [each.get("usage") or {} for each in thing.get("containers") or [thing]]
        name = name_of(thing).removeprefix(f"{job}-") if job else name_of(thing)
        rows.append([*([namespace_of(thing)] if everywhere else []), name, millicores(used), mebibytes(used)])
    rows.sort(key=lambda row: by_name(row[-3]))
    titles = ["REPLICA" if job else "NAME", "CPU", "MEMORY"]
    Table([*(["NAMESPACE"] if everywhere else []), *titles]).show(rows)


def millicores(used: "list[Object]") -> str:
    from trainmaster.api.quantity import parse

    return f"{round(sum(float(parse(str(each.get('cpu', '0')))) for each in used) * 1000)}m"


def mebibytes(used: "list[Object]") -> str:
    from trainmaster.api.quantity import parse

    return f"{round(sum(float(parse(str(each.get('memory', '0')))) for each in used) / (1 << 20))}Mi"
