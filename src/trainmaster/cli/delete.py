"""`trainmaster delete`: jobs by name, objects of any kind, or what a file says."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import BAD_INPUT, Told, called, reported, say

if TYPE_CHECKING:
    from trainmaster.api.meta import Object, Resource
    from trainmaster.sdk.client import Client


@click.command(epilog="Example: trainmaster delete mnist")
@click.argument("words", nargs=-1, metavar="[JOB|KIND/NAME]... | KIND NAME...",
                shell_complete=cluster.completes("jobs"))
@click.option("-f", "--filename", "files", multiple=True, type=click.Path(), metavar="FILE|FOLDER|-",
              help="What this file describes.")
@click.option("-l", "--selector", "labels", default="", metavar="LABELS", help="All that have these labels.")
@click.option("--all", "everything", is_flag=True, help="All of the namespace: jobs, or of the kind.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Until it is gone, with its pods.")
@click.option("--ignore-not-found", is_flag=True, help="What is not there is no error.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, words: tuple[str, ...], files: tuple[str, ...], labels: str, everything: bool,
            wait: bool, ignore_not_found: bool, form: str) -> None:
    """Delete jobs with their pods, or objects of any kind."""
    from trainmaster.kube.blocking import done
    from trainmaster.sdk.jobs import is_job
    from trainmaster.sdk.removal import remove

    if not (words or files or labels or everything):
        raise click.UsageError("say what to delete: a JOB, KIND NAME, -f FILE, -l LABELS or --all")
    if files and words:
        raise click.UsageError("give names or -f FILE, not both")
    with asked.client(changes=True) as client:
        target = _Target(client, ignore_not_found)
        found = list(target.in_files(files) if files else target.named(words, labels, everything))
        session = client.session
        for resource, thing in found:
            done(remove(session.client, session.clock, resource, thing, wait=wait, foreground=is_job(resource)))
            reported(resource, thing, "deleted", form)
        if not found:
            say("Nothing to delete.")


class _Target:
    def __init__(self, client: "Client", ignore: bool) -> None:
        self._client, self._session, self._ignore = client, client.session, ignore

    def in_files(self, files: tuple[str, ...]) -> "Iterator[tuple[Resource, Object]]":
        from trainmaster.kube.blocking import done
        from trainmaster.sdk.errors import ManifestError
        from trainmaster.sdk.manifests import read, unknown_kind

        for manifest in read(files, sys.stdin):
            resource = done(self._session.resource_of(manifest.thing))
            if resource is None:
                known = [(each.resource.api_version, each.resource.kind) for each in done(self._session.served())]
                raise ManifestError(unknown_kind(manifest, known))
            about = manifest.thing["metadata"]
            if not about.get("name"):
                raise ManifestError(f"{manifest.source}: has a generateName only, so the name is not known. Delete it "
                                    "by name.")
            yield from self._object(resource, about["name"], about.get("namespace"))

    def named(self, words: tuple[str, ...], labels: str, everything: bool) -> "Iterator[tuple[Resource, Object]]":
        from trainmaster.kube.blocking import done
        from trainmaster.sdk.session import named

        kind = named(words[0], done(self._session.served())) if words and "/" not in words[0] else None
        if labels or everything:
            yield from self._all(kind.resource if kind else None, words, labels)
        elif kind is not None and len(words) > 1:
            for name in words[1:]:
                yield from self._object(kind.resource, name)
        else:
            for word in words:
                yield from self._word(word)

    def _all(self, kind: "Resource | None", words: tuple[str, ...], labels: str) -> "Iterator[tuple[Resource, Object]]":
        from trainmaster.kube.blocking import done

        if (words and kind is None) or len(words) > 1:
            raise Told("--all and -l delete all of a kind; they take no names.", BAD_INPUT)
        if kind is None or words[0] in ("jobs", "job"):
            for job in done(self._session.jobs(None, labels=labels, reasons=False)):
                yield job.resource, job.object
            return
        namespace = self._session.namespace if kind.namespaced else ""
        for thing in done(self._session.client.list(kind, namespace, labels=labels)).items:
            yield kind, thing

    def _word(self, word: str) -> "Iterator[tuple[Resource, Object]]":
        from trainmaster.kube.blocking import done
        from trainmaster.sdk.errors import NoJob

        kind, slash, name = word.rpartition("/")
        if slash:
            yield from self._object(done(self._session.kind(kind)).resource, name)
            return
        try:
            job = self._client.get(word)
            yield job.resource, job.object
        except NoJob:
            if not self._ignore:
                raise

    def _object(
        self, resource: "Resource", name: str, namespace: str | None = None
    ) -> "Iterator[tuple[Resource, Object]]":
        from trainmaster.kube.blocking import done
        from trainmaster.kube.errors import NotFound

        where = (namespace or self._session.namespace) if resource.namespaced else ""
        try:
            yield resource, done(self._session.client.get(resource, name, where))
        except NotFound as problem:
            if not self._ignore:
                raise Told(f"{called(resource, name)}: {problem}.", BAD_INPUT) from problem
