"""The cluster that a command talks to: the options that name it, the client, and what the person is told about it."""

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.output import BAD_INPUT, FORMS, Told, say, told

if TYPE_CHECKING:
    from trainmaster.sdk.client import Client
    from trainmaster.sdk.reach import Reached

Command = Callable[..., Any]
DEFAULT = "Default: KUBECONFIG, else the embedded cluster if it is up, else ~/.kube/config."


@dataclass(frozen=True, slots=True)
class Asked:
    """What the person said about the cluster."""

    namespace: str | None = None
    kubeconfig: str | None = None
    context: str | None = None

    def reached(self, *, changes: bool = False) -> "Reached":
        """Where that is. Says so, if something will be changed there, or if it may be another than was meant."""
        import os

        from trainmaster.sdk.reach import reach

        found = reach(self.kubeconfig, self.context, os.environ)
        if found.surprise:
            say(found.surprise)
        elif changes:
            say(f"on {found.called}:")
        return found

    @contextmanager
    def client(self, *, changes: bool = False) -> "Iterator[Client]":
        """A client without an event loop, with errors as sentences."""
        from trainmaster.kube import kubeconfig
        from trainmaster.sdk.client import Client

        with told():
            found = self.reached(changes=changes)
            client = Client(transport=kubeconfig.blocking(found.access),
                            namespace=self.namespace or found.access.namespace)
            client.cluster = found
            try:
                yield client
            finally:
                client.close()


def options(command: Command) -> Command:
    """-n, --kubeconfig and --context; the command gets them as `asked`."""

    @functools.wraps(command)
    def given(*, namespace: str | None, kubeconfig: str | None, context: str | None, **rest: Any) -> Any:
        return command(asked=Asked(namespace, kubeconfig, context), **rest)

    for option in (
        click.option("--context", help="Context of the kubeconfig."),
        click.option("--kubeconfig", type=click.Path(), metavar="FILE", help=f"Which cluster. {DEFAULT}"),
        click.option("-n", "--namespace", help="Default: that of the kubeconfig's context.",
                     shell_complete=completes("namespaces")),
    ):
        given = option(given)
    return given


def output(command: Command) -> Command:
    """-o; the command gets it as `form`."""
    return click.option("-o", "--output", "form", type=click.Choice(FORMS), default="table", show_default=True,
                        help="Form of the output.")(command)


def job_argument(command: Command) -> Command:
    return click.argument("job", metavar="JOB", shell_complete=completes("jobs"))(command)


def completes(what: str) -> Any:
    """Names from the cluster for the shell: jobs, kinds, names of a kind, namespaces, replicas."""

    def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from trainmaster.cli.completing import candidates

        found: list[str] = candidates(what, ctx, param, incomplete)
        return found

    return names


def seconds(text: str, option: str) -> float:
    """30, 30s, 5m, 1h30m: how many seconds. Raises Told."""
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?", text)
    if not text or parts is None:
        raise Told(f"{option} {text}: write a span of time, such as 30s, 5m or 1h30m.", BAD_INPUT)
    hours, minutes, rest = parts.groups()
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(rest or 0)
