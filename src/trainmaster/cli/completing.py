"""Names from the cluster for the shell: quickly or not at all, and never an error in the middle of a line."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trainmaster.sdk.client import Client

PATIENCE = 2.0      # seconds; whoever presses Tab does not wait longer
MOST = 200


def candidates(what: str, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What may stand here: jobs, kinds, names of the kind before it, replicas of the job before it, namespaces."""
    from trainmaster.kube.errors import KubeError
    from trainmaster.kube.kubeconfig import KubeconfigError, blocking
    from trainmaster.sdk.client import Client
    from trainmaster.sdk.errors import SdkError
    from trainmaster.sdk.reach import reach

    given = ctx.params
    try:
        found = reach(given.get("kubeconfig"), given.get("context"), os.environ)
        if found.surprise:
            return []      # not what was meant; completing is no place to say so
        client = Client(transport=blocking(found.access, patience=PATIENCE),
                        namespace=given.get("namespace") or found.access.namespace)
        try:
            names = sorted({name for name in _names(what, client, given) if name.startswith(incomplete)})
        finally:
            client.close()
    except (KubeError, KubeconfigError, SdkError, OSError):
        return []
    taken = given.get(param.name or "") or ()
    return [name for name in names if name not in (taken if isinstance(taken, tuple) else ())][:MOST]


def _names(what: str, client: "Client", given: dict[str, Any]) -> Iterator[str]:
    from trainmaster.api.core import NAMESPACES, PODS
    from trainmaster.api.meta import name_of
    from trainmaster.kube.blocking import done
    from trainmaster.sdk.replicas import replica_of

    session = client.session
    match what:
        case "kinds":
            yield "jobs"
            yield from (each.resource.plural for each in done(session.served()) if each.can("list"))
        case "namespaces":
            yield from map(name_of, done(session.client.list(NAMESPACES)).items)
        case "replicas":
            job = client.get(str(given.get("job") or ""))
            pods = done(session.client.list(PODS, job.namespace, labels=job.pods)).items
            yield from (replica_of(pod).name for pod in pods)
        case "names" if given.get("what") not in (None, "jobs", "job"):
            resource = done(session.kind(str(given["what"]))).resource
            where = session.namespace if resource.namespaced else ""
            yield from map(name_of, done(session.client.list(resource, where)).items)
        case _:
            yield from (job.name for job in done(session.jobs(None, reasons=False)))
