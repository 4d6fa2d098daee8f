"""`trainmaster images`: the image catalog of this machine."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.cluster import output
from trainmaster.cli.output import OBJECTS, printed
from trainmaster.cli.tables import Table

if TYPE_CHECKING:
    from trainmaster.local.catalog import Shown


@click.group(
    invoke_without_command=True,
    epilog="Example: trainmaster images add mine/net:1 --python pytorch --python-requirements transformers",
)
@output
@click.pass_context
def command(ctx: click.Context, form: str) -> None:
    """What image names mean on this machine.

    There is no container engine here: a name stands for packages of a Python, or for a root file system. Without a
    command, lists the names that are explained.
    """
    if ctx.invoked_subcommand is None:
        _list(form)


@command.command("list", epilog="Example: trainmaster images list -o wide")
@output
def list_images(form: str) -> None:
    """List the image names that mean something on this machine."""
    _list(form)


@command.command(
    epilog="Example: trainmaster images add mine/net --python tensorflow --workdir /app"
)
@click.argument("name")
@click.option("--python", default="", metavar="NAME",
              help="Packages that come with the catalog: tensorflow, pytorch, boosting, jax, paddle or mxnet.")
@click.option("--python-requirements", "requirements", multiple=True, metavar="PACKAGE|FILE",
              help="A package as pip takes it, or a requirements file; may be repeated.")
@click.option("--rootfs", type=click.Path(path_type=Path), metavar="PATH",
              help="A root file system: a directory, a tar, or an OCI archive (also what docker save writes).")
@click.option("--entrypoint", metavar="WORDS", help="What runs when the container gives no command.")
@click.option("--command", "arguments", metavar="WORDS", help="Its arguments when the container gives none.")
@click.option("--env", "environment", multiple=True, metavar="NAME=VALUE", help="A variable; may be repeated.")
@click.option("--workdir", metavar="DIRECTORY", help="Working directory.")
@click.option("--file", "files", multiple=True, metavar="SOURCE:PATH",
              help="A file or folder of this machine, shown read-only at a path in the pod; may be repeated.")
@output
def add(
    name: str, python: str, requirements: tuple[str, ...], rootfs: Path | None, entrypoint: str | None,
    arguments: str | None, environment: tuple[str, ...], workdir: str | None, files: tuple[str, ...], form: str,
) -> None:
    """Say what an image name means here. An entry of the same name is replaced."""
    from trainmaster.local import catalog
    from trainmaster.local.home import Home

    home = Home.from_environment()
    try:
        wish = catalog.Wish(
            name, python=python, requirements=catalog.requirements(requirements, Path.cwd()), rootfs=rootfs,
            entrypoint=_words("--entrypoint", entrypoint), command=_words("--command", arguments),
            environment=_variables(environment), directory=workdir, files=_files(files),
        )
        entry = catalog.add(home, wish)
    except catalog.Refused as error:
        raise click.UsageError(str(error)) from error
    if form in OBJECTS:
        _show([one for one in catalog.listed(home) if one.name == name], form, one=True)
        return
    click.echo(f"Image {name} added to {home.images}.")
    if not entry.entrypoint:
        click.echo("It has no entrypoint: containers of it must give a command.")


@command.command(epilog="Example: trainmaster images remove mine/net")
@click.argument("name")
@output
def remove(name: str, form: str) -> None:
    """Forget an image that you added."""
    from trainmaster.local import catalog
    from trainmaster.local.home import Home

    home = Home.from_environment()
    try:
        gone = [one for one in catalog.listed(home) if one.name == name]
        catalog.forget(home, name)
    except catalog.Refused as error:
        raise click.UsageError(str(error)) from error
    if form in OBJECTS:
        _show(gone, form, one=True)
        return
    click.echo(f"Image {name} removed from {home.images}.")


def _list(form: str) -> None:
    from trainmaster.local import catalog
    from trainmaster.local.home import Home

    try:
        shown = catalog.listed(Home.from_environment())
    except catalog.Refused as error:
        raise click.UsageError(str(error)) from error
    _show(shown, form)


def _show(shown: "Sequence[Shown]", form: str, *, one: bool = False) -> None:
    if form in ("json", "yaml"):
        found = [{"name": each.name, "environment": each.environment, "runs": each.runs, "note": each.note,
                  "yours": each.yours} for each in shown]
        printed(found[0] if one and found else found, form)
    elif form == "name":
        for each in shown:
            click.echo(each.name)
    else:
        wide = form == "wide"
        Table(["IMAGE", "ENVIRONMENT", "RUNS", "FROM", *(["NOTE"] if wide else [])], cut_last=not wide).show([
            [each.name, each.environment, each.runs or "<the container's command>", "you" if each.yours else "catalog",
             *([each.note] if wide else [])] for each in shown
        ])


def _words(option: str, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise click.UsageError(f"{option} {text!r}: {error}") from error


def _files(pairs: tuple[str, ...]) -> dict[str, Path]:
    found = {}
    for pair in pairs:
        source, colon, target = pair.rpartition(":")
        if not colon or not source:
            raise click.UsageError(f"--file {pair!r}: write SOURCE:PATH, such as ./trainer:/app/trainer")
        found[target] = Path(source)
    return found


def _variables(pairs: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--env {pair!r}: write NAME=VALUE")
        found[name] = value
    return found
