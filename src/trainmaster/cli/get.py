"""`trainmaster get`: jobs of all kinds in one table, with the reason; any other kind as the server shows it."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import BAD_INPUT, Told, called, listed, printed, say
from trainmaster.cli.tables import Table, ago, span

if TYPE_CHECKING:
    from trainmaster.api.meta import Object, Resource
    from trainmaster.sdk.client import Client
    from trainmaster.sdk.jobs import Job

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
JOBS = ("jobs", "job")


@click.command(epilog="Example: trainmaster get jobs -A")
@click.argument("what", metavar="[jobs|KIND|KIND/NAME|JOB]", default="jobs", shell_complete=cluster.completes("kinds"))
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=cluster.completes("names"))
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces.")
@click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="Such as app=mnist,tier!=test.")
@click.option("-w", "--watch", is_flag=True, help="Go on and show what changes.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, what: str, names: tuple[str, ...], everywhere: bool, labels: str, watch: bool,
            form: str) -> None:
    """List jobs of all kinds and why each is as it is; or objects of any kind."""
    if watch and form not in ("table", "wide"):
        raise Told(f"-w shows a table; it cannot be combined with -o {form}.", BAD_INPUT)
    with asked.client() as client:
        view = View(client, form, everywhere, labels)
        if what in JOBS and not names:
            view.some_jobs((), watch=watch)
            return
        meant = list(view.meant(what, names))
        if watch and len(meant) > 1:
            raise Told("-w follows one kind or one object at a time.", BAD_INPUT)
        for number, (word, wanted) in enumerate(meant):
            if number:
                click.echo()
            view.kind(word, wanted, watch=watch)


class View:
    """One request to see something."""

    def __init__(self, client: "Client", form: str, everywhere: bool = False, labels: str = "") -> None:
        self.client, self.session = client, client.session
        self.form, self.everywhere, self.labels = form, everywhere, labels
        self.namespace = "" if everywhere else self.session.namespace
        self.table: Table | None = None

    def meant(self, what: str, names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """Kinds and names: pods, pods a b, pod/a pod/b, pods,services, or the name of a job."""
        from trainmaster.kube.blocking import done
        from trainmaster.sdk.session import named

        words = [what, *names]
        if any("/" in word for word in words):
            for word in words:
                kind, slash, name = word.partition("/")
                if not slash:
                    raise Told(f"{word}: write KIND/NAME everywhere, or KIND NAME NAME.", BAD_INPUT)
                yield kind, [name]
            return
        kinds = done(self.session.served())
        if all(word in JOBS or named(word, kinds) is not None for word in what.split(",")):
            yield from ((word, list(names)) for word in what.split(","))
        else:      # not a kind: the name of a job
            self.session.namespace = self.namespace or self.session.namespace
            self._is_job(what)
            yield "jobs", words

    def _is_job(self, word: str) -> None:
        from trainmaster.kube.blocking import done
        from trainmaster.sdk.errors import NoJob, NoSuchKind

        try:
            self.client.get(word)
        except NoJob as problem:
            try:
                done(self.session.kind(word))
            except NoSuchKind as other:
                raise Told(f"'{word}' is neither a kind nor a job. {other} {problem}", BAD_INPUT) from problem

    def some_jobs(self, names: Sequence[str], *, watch: bool) -> None:
        """Those of the names, or all."""
        from trainmaster.kube.blocking import done

        found = [self.client.get(name) for name in names] if names else \
            done(self.session.jobs(self.namespace, labels=self.labels))
        self.jobs(found, one=len(names) == 1)
        if watch:
            from trainmaster.cli.watching import jobs

            jobs(self, found, names)

    def jobs(self, jobs: "Sequence[Job]", *, one: bool = False) -> None:
        if self.form in ("json", "yaml"):
            printed(jobs[0].object if one else listed([job.object for job in jobs]), self.form)
        elif self.form == "name":
            for job in jobs:
                click.echo(called(job.resource, job.name))
        elif not jobs:
            say("No jobs." if self.everywhere else
                f"No jobs in namespace {self.session.namespace}. `trainmaster get jobs -A` looks into all.")
        else:
            self.rows(jobs)

    def rows(self, jobs: "Sequence[Job]") -> None:
        wide = self.form == "wide"
        if self.table is None:
            titles = [*(["NAMESPACE"] if self.everywhere else []), "KIND", "NAME", "STATE", "REPLICAS", "AGE",
                      *(["DURATION", "ROLES"] if wide else []), "WHY"]
            self.table = Table(titles, cut_last=not wide)
        self.table.show([self._row(job, wide) for job in sorted(jobs, key=_order)])

    def _row(self, job: "Job", wide: bool) -> list[object]:
        more = [_duration(job), ", ".join(f"{role.name} {_count(job, [role])}" for role in job.roles())] if wide else []
        return [*([job.namespace] if self.everywhere else []), job.kind, job.name, job.state, _count(job, job.roles()),
                ago(job.created), *more, job.why]

    def kind(self, word: str, names: Sequence[str], *, watch: bool) -> None:
        from trainmaster.kube.blocking import done

        if word in JOBS:
            self.some_jobs(names, watch=watch)
            return
        served = done(self.session.kind(word))
        if not served.can("get") or not served.can("list"):
            raise Told(f"{served.resource.plural} cannot be listed.", BAD_INPUT)
        Objects(self, served.resource).show(names, watch=watch)


class Objects:
    """Objects of one kind, as the server shows them."""

    def __init__(self, view: View, resource: "Resource") -> None:
        self._view, self._resource = view, resource
        self._namespace = view.namespace if resource.namespaced else ""
        self._spaces = view.everywhere and resource.namespaced
        self._table: Table | None = None
        self._columns: list[int] = []

    def show(self, names: Sequence[str], *, watch: bool) -> None:
        from trainmaster.kube.blocking import done

        client, view = self._view.session.client, self._view
        paths = [self._resource.path(self._namespace or view.session.namespace if self._resource.namespaced else "",
                                     name) for name in names] or [self._resource.path(self._namespace)]
        query = [("labelSelector", view.labels)] if view.labels and not names else []
        wants_table = view.form in ("table", "wide")
        answers = [done(client.request("GET", path, query=query, accept=TABLE if wants_table else "application/json"))
                   for path in paths]
        if not wants_table:
            things = [self._typed(item) for answer in answers for item in answer.get("items", [answer])]
            if view.form == "name":
                for thing in things:
                    click.echo(called(self._resource, thing["metadata"]["name"]))
            else:
                printed(things[0] if len(names) == 1 else listed(things), view.form)
            return
        for answer in answers:
            self._rows(answer)
        if self._table is None and not watch:
            where = f" in namespace {self._namespace}" if self._namespace else ""
            say(f"No {self._resource.plural}{where}.")
        if watch:
            revision = str((answers[-1].get("metadata") or {}).get("resourceVersion", ""))
            self._follow(names, query, revision)

    def _typed(self, thing: "Object") -> "Object":
        """Items of a list come without their kind from a real server."""
        return {"apiVersion": self._resource.api_version, "kind": self._resource.kind, **thing}

    def _rows(self, answer: "Object") -> None:
        if answer.get("kind") != "Table":      # a server that knows no tables
            answer = _plain_table(answer)
        if answer.get("columnDefinitions"):
            wide = self._view.form == "wide"
            self._columns = [number for number, column in enumerate(answer["columnDefinitions"])
                             if wide or not column.get("priority")]
            titles = [answer["columnDefinitions"][number]["name"].upper() for number in self._columns]
            if self._table is None and answer.get("rows"):
                self._table = Table([*(["NAMESPACE"] if self._spaces else []), *titles], cut_last=False)
        rows = []
        for row in answer.get("rows") or ():
            space = [((row.get("object") or {}).get("metadata") or {}).get("namespace", "")] if self._spaces else []
            rows.append([*space, *("<none>" if row["cells"][number] is None else row["cells"][number]
                                   for number in self._columns)])
        if rows and self._table is not None:
            self._table.show(rows)

    def _follow(self, names: Sequence[str], query: list[tuple[str, str]], revision: str) -> None:
        from trainmaster.kube.blocking import each
        from trainmaster.kube.errors import Gone

        fields = f"metadata.name={names[0]}" if len(names) == 1 else ""
        namespace = (self._namespace or self._view.session.namespace) if self._resource.namespaced and names else \
            self._namespace
        labels = dict(query).get("labelSelector", "")
        while True:
            try:
                for event in each(self._view.session.client.watch(
                        self._resource, namespace, labels=labels, fields=fields, revision=revision,
                        accept=TABLE, bookmarks=False)):
                    self._rows(event.object)
                    revision = _revision(event.object) or revision
            except Gone:
                revision = ""


def _revision(table: "Object") -> str:
    rows = table.get("rows") or [{}]
    return str(((rows[-1].get("object") or {}).get("metadata") or {}).get("resourceVersion", ""))


def _plain_table(answer: "Object") -> "Object":
    from trainmaster.api.meta import metadata, moment, name_of

    rows = []
    for thing in answer.get("items", [answer]):
        made = metadata(thing).get("creationTimestamp")
        rows.append({"cells": [name_of(thing), ago(moment(made) if made else None)], "object": thing})
    return {"columnDefinitions": [{"name": "Name"}, {"name": "Age"}], "rows": rows}


def _order(job: "Job") -> tuple[str, str]:
    return job.namespace, job.name


def _count(job: "Job", roles: Sequence[Any]) -> str:
    """How many of the replicas do what they should: run, or have succeeded."""
    wanted = sum(role.replicas for role in roles)
    good = sum(role.succeeded if job.finished else role.active + role.succeeded for role in roles)
    return f"{good}/{wanted}"


def _duration(job: "Job") -> str:
    if job.started is None:
        return ""
    return span(((job.ended or datetime.now(UTC)) - job.started).total_seconds())
