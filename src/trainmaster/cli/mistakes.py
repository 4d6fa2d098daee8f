"""Mistakes in manifests, as the sentences that `validate` says: file, line, field, remedy.

`run` and `apply` ask the cluster first, which is quick. Only what it refuses is looked at by the validator, whose
sentences are better, and which takes a second to load.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainmaster.cli.output import BAD_INPUT, Told, say
from trainmaster.sdk.manifests import Manifest

if TYPE_CHECKING:
    from trainmaster.kube.client import Client


async def told(manifests: Sequence[Manifest]) -> list[str]:
    """What is wrong with them, without a cluster."""
    from trainmaster.local.validate import validating

    async with validating() as validator:
        return [f"{manifest.place(finding.field)}: {finding}" for manifest in manifests
                for finding in await validator.findings(manifest.thing) if not finding.advice]


async def look(client: "Client", manifests: Sequence[Manifest], namespace: str) -> None:
    """Refuse what would fail later, and note what is not there. Raises Told."""
    from trainmaster.api.validation import problems
    from trainmaster.sdk.doubts import missing, refused_later

    doubtful = [each for each in manifests if problems(each.thing)]
    doubtful += [each for each in await refused_later(client, manifests, namespace) if each not in doubtful]
    if doubtful and (found := _aside(doubtful)):
        raise Told("\nerror: ".join(found), BAD_INPUT)
    for each in await missing(client, manifests, namespace):
        say(f"note: {each}")


def better(problem: Exception, manifests: Sequence[Manifest]) -> str:
    """What the server refused, in the words of `validate` where it has some."""
    return "\nerror: ".join(_aside(manifests)) or str(problem)


def _aside(manifests: Sequence[Manifest]) -> list[str]:
    """In a thread, as those who ask may have a loop that runs, or none."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(told(manifests))).result()
