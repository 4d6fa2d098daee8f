"""`trainmaster validate`: what is wrong with manifests, without a cluster."""

import asyncio
import sys

import click

from trainmaster.cli.output import BAD_INPUT, say
from trainmaster.sdk.manifests import Manifest, ManifestError, files, read


@click.command(epilog="Example: trainmaster validate -f job.yaml")
@click.argument("targets", nargs=-1, metavar="[FILE|FOLDER|-]...")
@click.option("-f", "--filename", "named", multiple=True, metavar="FILE|FOLDER|-", help="As kubectl has it.")
def command(targets: tuple[str, ...], named: tuple[str, ...]) -> None:
    """Say what is wrong with manifests, with file, line, field and remedy.

    Nothing is sent anywhere. Exit code: 0 nothing is wrong, 2 something is.
    """
    wanted = (*named, *targets)
    if not wanted:
        raise click.UsageError("give a file, a folder, or - for standard input")
    wrong, manifests = _read(wanted)
    for problem in wrong:
        say(f"error: {problem}")
    mistakes = len(wrong) + asyncio.run(_judge(manifests))
    if mistakes:
        say(f"{mistakes} mistake{'s' if mistakes > 1 else ''} in {len(manifests) + len(wrong)} "
            f"object{'s' if len(manifests) + len(wrong) > 1 else ''}.")
        sys.exit(BAD_INPUT)
    click.echo(f"{len(manifests)} object{'s' if len(manifests) != 1 else ''}: nothing is wrong.")


def _read(targets: tuple[str, ...]) -> tuple[list[str], list[Manifest]]:
    """What could be read; a file that cannot be does not keep the others from being looked at."""
    wrong: list[str] = []
    found: list[Manifest] = []
    for target in targets:
        try:
            for file in files(target):
                try:
                    found += read([file], sys.stdin)
                except ManifestError as problem:
                    wrong.append(str(problem))
        except ManifestError as problem:
            wrong.append(str(problem))
    return wrong, found


async def _judge(manifests: list[Manifest]) -> int:
    """Say what is wrong with each; how many mistakes there are."""
    from trainmaster.local.validate import validating

    mistakes = 0
    async with validating() as validator:
        for manifest in manifests:
            for finding in await validator.findings(manifest.thing):
                say(f"{'note' if finding.advice else 'error'}: {manifest.place(finding.field)}: {finding}")
                mistakes += not finding.advice
    return mistakes
