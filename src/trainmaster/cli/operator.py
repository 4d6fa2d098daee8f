"""`trainmaster operator`: only the operator, against any cluster, with the flags of kubeflow's."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from trainmaster import __version__
from trainmaster.cli.output import BAD_INPUT, FAILED, NO_CLUSTER, Told
from trainmaster.operator import flags

if TYPE_CHECKING:
    from trainmaster.kube.kubeconfig import Access


class GoFlags(click.Command):
    """Takes flags as Go programs do: with one dash or two, switches with or without a value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_two_dashes(word) for word in args])


SHORT = {"namespace": ["-n"]}      # as with all commands; Go's have none


def options() -> list[click.Parameter]:
    made: list[click.Parameter] = []
    for flag in flags.FLAGS:
        switch = isinstance(flag.default, bool)
        said = flag.meaning if not flag.stands_for else f"{flag.meaning} The same as --{flag.stands_for}."
        made.append(click.Option(
            [*SHORT.get(flag.name, ()), f"--{flag.name}", flag.name.replace("-", "_")], multiple=True,
            metavar="[true|false]" if switch else None, is_flag=False, flag_value="true" if switch else None,
            help=f"{said}{_default(flag)}",
        ))
    return made


def _default(flag: flags.Flag) -> str:
    if flag.ignored:
        return f" Does nothing: {flag.ignored}."
    if flag.many or flag.stands_for or flag.default == "":
        return ""
    return f" [default: {str(flag.default).lower() if isinstance(flag.default, bool) else flag.default}]"


def _two_dashes(word: str) -> str:
    return f"-{word}" if word.startswith("-") and not word.startswith("--") and len(word) > 2 else word


def run(**words: Any) -> None:
    """Run the operator until it is stopped. The custom resource definitions must be there."""
    import asyncio

    from trainmaster.kube import kubeconfig
    from trainmaster.operator import process
    from trainmaster.operator.probes import Taken
    from trainmaster.runtime import log
    from trainmaster.runtime.clock import RealClock

    try:
        given = flags.read({name.replace("_", "-"): said for name, said in words.items()}, os.environ)
        level, json = flags.log_form(given)
        log.setup(level, json=json)
        process.from_flags(given, None, os.environ)     # a wrong flag is told also where there is no cluster
        access = reached(given)
        wanted = process.from_flags(given, access.namespace if access.context == "in-cluster" else None, os.environ)
        through = kubeconfig.transport(access)
    except (flags.BadFlag, kubeconfig.KubeconfigError) as problem:
        raise Told(str(problem), BAD_INPUT) from problem
    for note in given.notes:
        log.logger("operator").warning(note)

    async def work() -> None:
        stop = asyncio.Event()
        process.on_signals(stop)
        await process.run(wanted, through, access.server.partition("://")[2], RealClock(), stop)

    try:
        asyncio.run(work())
    except Taken as problem:
        raise Told(str(problem), FAILED) from problem
    except asyncio.CancelledError:
        return  # a second signal


def reached(given: flags.Given) -> "Access":
    """The cluster to work in."""
    from pathlib import Path

    from trainmaster.kube import kubeconfig

    path = given.text("kubeconfig")
    found = kubeconfig.load(Path(path), given.text("context") or None) if path else kubeconfig.in_cluster(os.environ)
    if found is None and not given.text("master"):
        raise Told("No cluster: give --kubeconfig, set KUBECONFIG, or run inside a pod.", NO_CLUSTER)
    if given.text("master"):
        found = replace(found or kubeconfig.Access(""), server=given.text("master"))
    assert found is not None
    return found


command = click.version_option(__version__, prog_name="trainmaster operator")(GoFlags(
    "operator", params=options(), callback=run, help=run.__doc__,
    epilog="Example: trainmaster operator --kubeconfig ~/.kube/config",
))
