"""`trainmaster run`: manifests or a script in, a job followed to its end, the outcome as exit code."""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.cluster import seconds
from trainmaster.cli.output import BAD_INPUT, FORMS, NO_CLUSTER, OBJECTS, Told, outcome, say, told
from trainmaster.cli.view import LiveView, PlainView, RunView
from trainmaster.sdk.errors import ManifestError
from trainmaster.sdk.manifests import Manifest, read
from trainmaster.sdk.pulse import QUIET

if TYPE_CHECKING:
    from trainmaster.cli.scripts import Options, Script
    from trainmaster.sdk.reach import Reached
    from trainmaster.sdk.submit import Submitted

FRAMEWORKS = ("pytorch", "tensorflow", "jax", "xgboost", "lightgbm", "paddle", "mxnet", "python")


class WithArguments(click.Command):
    """What stands after `--` is for the script, and nothing of it is ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours = args[:args.index("--")] if "--" in args else args
        ctx.meta["arguments"] = tuple(args[len(ours) + 1:])
        try:
            return super().parse_args(ctx, list(ours))
        except click.NoSuchOption as problem:
            scripts = [word for word in ours if word.endswith((".py", ".sh")) or Path(word).is_dir()]
            if not scripts or "--" in args:
                raise
            right = f"`trainmaster run {scripts[0]} -- {problem.option_name} ...`"
            hint = f"If it is for {scripts[0]}, write it after --: {right}."
            raise click.UsageError(f"{problem.format_message()} {hint}", ctx) from problem


@click.command(cls=WithArguments, epilog="Example: trainmaster run train.py --workers 4 -- --epochs 3")
@click.argument("targets", nargs=-1, required=True, type=click.Path(),
                metavar="MANIFEST|SCRIPT|FOLDER|-... [-- ARGUMENTS]")
@click.option("--framework", type=click.Choice(FRAMEWORKS), help="Of the script. Default: by what it imports.")
@click.option("--workers", type=click.IntRange(1), help="How many replicas of the script. Default: 1.")
@click.option("--ps", "servers", type=click.IntRange(0), help="Parameter servers beside them.")
@click.option("--gpus", type=click.IntRange(0), help="GPUs of each worker.")
@click.option("--env", "environment", multiple=True, metavar="NAME[=VALUE]",
              help="A variable of the script; without a value, what it is here.")
@click.option("--queue", help="The queue that the job waits in.")
@click.option("--priority", metavar="CLASS", help="The priority class of the job.")
@click.option("--name", help="Of the job. Default: that of the script.")
@click.option("--requirements", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
              help="Packages that the script needs; installed once for all that need the same.")
@click.option("--image", help="The image to run in; needed on any cluster but the embedded one.")
@click.option("--output", type=click.Path(file_okay=False), metavar="DIR",
              help="Keep the working directory of each replica in DIR/ROLE-INDEX.")
@click.option("--hangs-after", default="5m", show_default=True, metavar="SPAN",
              help="Time without output and without CPU use after which a job is said to hang.")
@click.option("-o", "form", type=click.Choice(FORMS), default="table", show_default=True,
              help="With json, yaml or name, the jobs as they ended are all that goes to standard output.")
@click.option("-n", "--namespace", default="", help="Namespace of objects that name none. Default: default.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False), envvar="KUBECONFIG",
              help="Run on this cluster instead of the embedded one.")
@click.option("--context", help="Context of the kubeconfig.")
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], namespace: str, kubeconfig: str | None,
            context: str | None, hangs_after: str, form: str, **given: Any) -> None:
    """Run manifests or a script, and follow the job to its end.

    On the embedded cluster, which is started if it is down, unless --kubeconfig, --context or KUBECONFIG names another.
    A script, or a folder with main.py or train.py, is sent as it is and needs no image there.

    Exit code: 0 the job succeeded, 1 it failed, 2 bad input, 3 no cluster, 130 detached or stopped by Ctrl-C.
    """
    from trainmaster.cli.scripts import Options, passed_over
    from trainmaster.sdk.reach import means_embedded

    options = Options(arguments=ctx.meta["arguments"], **given)
    patience = seconds(hangs_after, "--hangs-after")
    embedded = means_embedded(kubeconfig, context, os.environ)
    try:
        script = asked(targets, options, embedded=embedded)
        manifests = script.manifests() if script else read(targets, sys.stdin)
    except ManifestError as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    for sentence in script.said if script else passed_over(targets):
        say(sentence)
    if embedded:
        bring_up()
    with ExitStack() as stack:
        view = _view(stack, patience, form)
        ended: list[Submitted] = []
        code = asyncio.run(follow(_reached(kubeconfig, context), namespace, view, manifests, patience,
                                  ended=ended if form in OBJECTS else None))
    if form in OBJECTS:
        outcome([(job.resource, job.thing) for job in ended], form)
    for sentence in script.left() if script else ():
        say(sentence)
    sys.exit(code)


def asked(targets: Sequence[str], options: "Options", *, embedded: bool) -> "Script | None":
    """The script that is meant, or None for manifests. Raises ManifestError."""
    from trainmaster.cli import scripts

    target = scripts.meant(targets, options)
    return scripts.read(target, options, embedded=embedded) if target else None


def bring_up() -> None:
    """The embedded cluster is brought up, and never silently replaced."""
    from trainmaster.cli.up import start, tell_kept
    from trainmaster.local.home import Home

    began = time.monotonic()
    embedded = start(Home.from_environment())
    if embedded.already:
        say(f"on the embedded cluster ({embedded.server}):")
    else:
        say(f"The cluster is up at {embedded.server} after {time.monotonic() - began:.1f} s.")
        tell_kept(embedded)
    if embedded.said.only_apiserver:
        say("note: it was started with --only apiserver, so nothing runs there. `trainmaster down` first.")


def _view(stack: ExitStack, hangs_after: float, form: str) -> RunView:
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return PlainView(aside=form in OBJECTS)
    from rich.console import Console

    return stack.enter_context(LiveView(Console(highlight=False), hangs_after))


def _reached(kubeconfig: str | None, context: str | None) -> "Reached":
    """The cluster to run on; told by name unless it is the embedded one, which `bring_up` has named."""
    from trainmaster.sdk.reach import reach

    with told():
        found = reach(kubeconfig, context, os.environ)
    if not found.embedded:
        say(f"on {found.called}:")
    return found


async def follow(reached: "Reached", namespace: str, view: RunView, manifests: Sequence[Manifest],
                 hangs_after: float = QUIET, *, ended: "list[Submitted] | None" = None) -> int:
    """Send the objects and follow the jobs among them; the exit code. The jobs as they are then go to `ended`."""
    from trainmaster.cli import mistakes
    from trainmaster.cli.following import Following, as_they_are
    from trainmaster.kube import kubeconfig
    from trainmaster.kube.client import Client
    from trainmaster.kube.errors import KubeError
    from trainmaster.runtime.clock import RealClock
    from trainmaster.sdk.submit import submit

    access = reached.access
    try:
        client = Client(kubeconfig.transport(access), user_agent="trainmaster-run")
    except kubeconfig.KubeconfigError as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    try:
        await mistakes.look(client, manifests, namespace or access.namespace)
        submitted = await submit(client, RealClock(), manifests, namespace or access.namespace)
        code = await Following(client, view, hangs_after=hangs_after).run(submitted)
        if ended is not None:
            ended += await as_they_are(client, submitted)
        return code
    except ManifestError as problem:
        raise Told(mistakes.better(problem, manifests), BAD_INPUT) from problem
    except KubeError as problem:
        raise Told(f"{access.server} does not do what it should: {problem}", NO_CLUSTER) from problem
    finally:
        await client.close()
