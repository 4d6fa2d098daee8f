"""`trainmaster describe JOB`: all that is known about one job, for people."""

from typing import TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import called, printed
from trainmaster.cli.tables import Table, ago, span
from trainmaster.sdk.jobs import Job, is_job

if TYPE_CHECKING:
    from trainmaster.api.meta import Object, Resource
    from trainmaster.sdk.client import Client

MOST_EVENTS = 20


@click.command(epilog="Example: trainmaster describe mnist")
@click.argument("words", nargs=-1, required=True, metavar="JOB | KIND/NAME | KIND NAME",
                shell_complete=cluster.completes("jobs"))
@cluster.output
@cluster.options
def command(asked: cluster.Asked, words: tuple[str, ...], form: str) -> None:
    """Show a job: replicas, conditions, what failed first, why it waits, and what happened to it.

    Objects of other kinds are shown as they are, with their events.
    """
    if len(words) > 2:
        raise click.UsageError("one at a time: JOB, KIND/NAME or KIND NAME")
    with asked.client() as client:
        resource, thing = meant(client, "/".join(words))
        if form in ("json", "yaml"):
            printed(thing, form)
        elif form == "name":
            click.echo(called(resource, thing["metadata"]["name"]))
        elif is_job(resource):
            show(client, client.get(Job(resource, thing)))
        else:
            show_plain(client, resource, thing)


def meant(client: "Client", word: str) -> "tuple[Resource, Object]":
    """A job by its name, or any object by kind and name. Raises NoJob, NoSuchKind, NotFound."""
    from trainmaster.kube.blocking import done

    kind, slash, name = word.rpartition("/")
    resource = done(client.session.kind(kind)).resource if slash and kind not in ("job", "jobs") else None
    if resource is None or is_job(resource):
        job = client.get(name if resource is None else word)
        return job.resource, job.object
    where = client.session.namespace if resource.namespaced else ""
    return resource, done(client.session.client.get(resource, name, where))


def show_plain(client: "Client", resource: "Resource", thing: "Object") -> None:
    from trainmaster.api.core import EVENTS
    from trainmaster.cli.events import TITLES, row
    from trainmaster.kube.blocking import done
    from trainmaster.sdk.happenings import happening, in_order

    about = {name: value for name, value in thing["metadata"].items() if name != "managedFields"}
    click.echo(f"{resource.kind} {'/'.join(filter(None, (about.get('namespace'), about['name'])))}\n")
    printed({**thing, "metadata": about}, "yaml")
    fields = f"involvedObject.uid={about['uid']}"
    found = done(client.session.client.list(EVENTS, about.get("namespace", ""), fields=fields)).items
    if found:
        click.echo("\nEvents")
        Table(TITLES, indent="  ").show([row(happening(each)) for each in sorted(found, key=in_order)[-MOST_EVENTS:]])


def show(client: "Client", job: Job) -> None:
    told = client.explain(job)
    click.echo(f"{job.kind} {job.namespace}/{job.name}")
    for title, text in _facts(job, f"{told.state}: {told.why}" if told.why else told.state):
        click.echo(f"  {title:<10} {text}")
    progress = _progress(job)
    _chapter("Progress", progress)
    _chapter("Why", [line for line in told.more if line not in progress])
    _replicas(client, job)
    _conditions(job)
    _events(client, job)


def _chapter(title: str, lines: list[str]) -> None:
    if lines:
        click.echo("\n".join(["", title, *(f"  {line}" for line in lines)]))


def _progress(job: Job) -> list[str]:
    """How far it is, and its curves."""
    from datetime import UTC, datetime

    from trainmaster.progress import curves

    found = curves.of(job.object)
    return list(curves.told(found, datetime.now(UTC))) if found is not None else []


def _facts(job: Job, state: str) -> "list[tuple[str, str]]":
    policy = (job.object.get("spec") or {}).get("runPolicy") or {}
    scheduling = policy.get("schedulingPolicy") or {}
    facts = [("State", state)]
    if job.created:
        facts.append(("Created", f"{job.created:%Y-%m-%d %H:%M:%S} UTC, {ago(job.created)} ago"))
    if job.started and job.ended:
        facts.append(("Took", span((job.ended - job.started).total_seconds())))
    elif job.started and job.state == "Running":
        facts.append(("Runs for", ago(job.started)))
    facts += [(title, str(value)) for title, value in (
        ("Queue", scheduling.get("queue")), ("Priority", scheduling.get("priorityClass")),
        ("Deadline", f"{policy['activeDeadlineSeconds']} s" if policy.get("activeDeadlineSeconds") else ""),
        ("Back-off", f"fails at {policy['backoffLimit']} restarts" if policy.get("backoffLimit") is not None else ""),
        ("Clean-up", f"pods: {policy.get('cleanPodPolicy') or 'None'}"),
    ) if value]
    return facts


def _replicas(client: "Client", job: Job) -> None:
    from trainmaster.api.core import PODS
    from trainmaster.api.meta import metadata, moment
    from trainmaster.kube.blocking import done
    from trainmaster.sdk.logs import by_name
    from trainmaster.sdk.replicas import replica_of

    pods = done(client.session.client.list(PODS, job.namespace, labels=job.pods)).items
    click.echo("\nReplicas")
    if not pods:
        click.echo("  none now; asked for: " + ", ".join(f"{role.replicas} {role.name}" for role in job.roles()))
        return
    rows = []
    for pod in pods:
        replica, made = replica_of(pod), metadata(pod).get("creationTimestamp")
        rows.append((replica.name, replica.state, replica.restarts, (pod.get("spec") or {}).get("nodeName", ""),
                     ago(moment(made)) if made else "", replica.why))
    Table(("NAME", "STATE", "RESTARTS", "NODE", "AGE", "WHY"), indent="  ").show(
        sorted(rows, key=lambda row: by_name(str(row[0]))))


def _conditions(job: Job) -> None:
    from trainmaster.api.meta import moment

    rows = []
    for kind, each in job.conditions():
        since = each.get("lastTransitionTime")
        rows.append((kind, each.get("status", ""), ago(moment(since)) if since else "", each.get("reason", ""),
                     each.get("message", "")))
    if rows:
        click.echo("\nConditions")
        Table(("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"), indent="  ").show(rows)


def _events(client: "Client", job: Job) -> None:
    from trainmaster.cli.events import TITLES, row

    found = client.events(job)
    click.echo("\nEvents" if found else "\nEvents\n  none")
    if len(found) > MOST_EVENTS:
        click.echo(f"  the last {MOST_EVENTS} of {len(found)}; `trainmaster events {job.name}` has all")
    if found:
        Table(TITLES, indent="  ").show([row(each) for each in found[-MOST_EVENTS:]])
