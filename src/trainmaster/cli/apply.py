"""`trainmaster apply -f`: bring a cluster to what files say; with --dry-run, see what would be made."""

import sys

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import BAD_INPUT, Told, called, documents, listed, printed, say


@click.command(epilog="Example: trainmaster apply -f job.yaml")
@click.option("-f", "--filename", "files", multiple=True, type=click.Path(), metavar="FILE|FOLDER|-",
              help="May be given several times.")
@click.argument("more", nargs=-1, type=click.Path(), metavar="[FILE|FOLDER|-]...")
@click.option("--dry-run", is_flag=True, help="Change nothing; print the objects that would be made.")
@click.option("--validate/--no-validate", default=True, show_default=True,
              help="Look at everything before anything is sent.")
@click.option("--force-conflicts", "force", is_flag=True, help="Take fields over that somebody else has set.")
@cluster.output
@cluster.options
def command(asked: cluster.Asked, files: tuple[str, ...], more: tuple[str, ...], dry_run: bool, validate: bool,
            force: bool, form: str) -> None:
    """Create or change what files describe, by server-side apply."""
    from trainmaster.cli import mistakes
    from trainmaster.kube.blocking import done
    from trainmaster.sdk.errors import ManifestError
    from trainmaster.sdk.manifests import read

    if not files and not more:
        raise click.UsageError("give a file, a folder, or - for standard input, with -f")
    with asked.client(changes=not dry_run) as client:
        manifests = read((*files, *more), sys.stdin)
        if validate:
            done(mistakes.look(client.session.client, manifests, client.session.namespace))
        try:
            found = client.apply(manifests, dry_run=dry_run, force=force)
        except ManifestError as problem:
            raise Told(mistakes.better(problem, manifests), BAD_INPUT) from problem
        if dry_run:
            _preview([each.object for each in found], form)
        elif form in ("json", "yaml"):
            things = [each.object for each in found]
            printed(things[0] if len(things) == 1 else listed(things), form)
        else:
            for each in found:
                name = called(each.resource, each.object["metadata"]["name"])
                click.echo(name if form == "name" else f"{name} {each.how}")


def _preview(things: "list[dict[str, object]]", form: str) -> None:
    """The objects, and what the operator would make of each job among them."""
    from datetime import UTC, datetime

    from trainmaster.api.meta import Resource, name_of
    from trainmaster.operator.preview import preview

    made = [each for thing in things for each in (thing, *preview(thing, datetime.now(UTC)))]
    if form == "name":
        for each in made:
            group, _, version = str(each["apiVersion"]).rpartition("/")
            click.echo(called(Resource(group, version, "", str(each["kind"])), name_of(each)))
    elif form == "json":
        printed(listed(made), "json")
    else:
        documents(made)
        say(f"Nothing was changed: {len(made)} object{'s' if len(made) != 1 else ''} would be made or changed.")
