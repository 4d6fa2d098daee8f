"""`trainmaster validate`: what is wrong with manifests, without a cluster."""

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from trainmaster.api.meta import name_of
from trainmaster.cli.cluster import output
from trainmaster.cli.output import BAD_INPUT, printed, say
from trainmaster.sdk.errors import ManifestError
from trainmaster.sdk.manifests import Manifest, files, read

if TYPE_CHECKING:
    from trainmaster.local.validate import Finding


@click.command(epilog="Example: trainmaster validate -f job.yaml")
@click.argument("targets", nargs=-1, type=click.Path(), metavar="[FILE|FOLDER|-]...")
@click.option("-f", "--filename", "named", multiple=True, type=click.Path(), metavar="FILE|FOLDER|-",
              help="As kubectl has it.")
@output
def command(targets: tuple[str, ...], named: tuple[str, ...], form: str) -> None:
    """Say what is wrong with manifests, with file, line, field and remedy.

    Nothing is sent anywhere. Exit code: 0 nothing is wrong, 2 something is; -o name lists the objects that are right.
    """
    wanted = (*named, *targets)
    if not wanted:
        raise click.UsageError("give a file, a folder, or - for standard input")
    wrong, manifests = _read(wanted)
    found = asyncio.run(_judge(manifests))
    mistakes = len(wrong) + sum(not finding.advice for _, finding in found)
    if form in ("json", "yaml"):
        printed([*({"what": problem, "advice": False} for problem in wrong), *(_record(*each) for each in found)], form)
        sys.exit(BAD_INPUT if mistakes else 0)
    if form == "name":
        for manifest in manifests:
            if not any(each is manifest and not finding.advice for each, finding in found):
                click.echo(f"{manifest.thing['kind'].lower()}/{name_of(manifest.thing)}")
        sys.exit(BAD_INPUT if mistakes else 0)
    for problem in wrong:
        say(f"error: {problem}")
    for manifest, finding in found:
        say(f"{'note' if finding.advice else 'error'}: {manifest.place(finding.field)}: {finding}")
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


def _record(manifest: Manifest, finding: "Finding") -> dict[str, object]:
    return {"source": manifest.source, "line": manifest.line(finding.field), "field": finding.field,
            "what": finding.what, "remedy": finding.remedy, "advice": finding.advice}


async def _judge(manifests: list[Manifest]) -> "list[tuple[Manifest, Finding]]":
    """What is wrong with each."""
    from trainmaster.local.validate import validating

    async with validating() as validator:
        return [(manifest, finding) for manifest in manifests for finding in await validator.findings(manifest.thing)]
