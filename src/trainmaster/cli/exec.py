"""`trainmaster exec JOB -- command`: a program beside the one that trains."""

import sys

import click

from trainmaster.cli import cluster
from trainmaster.cli.output import BAD_INPUT, printed, say, told


class WithCommand(click.Command):
    """What stands after `--` is the command, and nothing of it is ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours = args[:args.index("--")] if "--" in args else args
        ctx.meta["command"] = tuple(args[len(ours) + 1:])
        try:
            return super().parse_args(ctx, list(ours))
        except click.MissingParameter:
            raise
        except click.UsageError as problem:
            if "--" in args:
                raise
            hint = "What to run comes after --, as in `trainmaster exec mnist -- ls`."
            raise click.UsageError(f"{problem.format_message().rstrip('.')}. {hint}", ctx) from problem


@click.command(cls=WithCommand, epilog="Example: trainmaster exec -it mnist/worker-1 -- bash")
@click.argument("job", metavar="JOB[/REPLICA] -- COMMAND...", shell_complete=cluster.completes("jobs"))
@click.option("--replica", default="", metavar="NAME", help="As worker-1. Default: the one that leads.",
              shell_complete=cluster.completes("replicas"))
@click.option("-c", "--container", default="", metavar="NAME", help="Default: the first.")
@click.option("-i", "--stdin", is_flag=True, help="Hand standard input over.")
@click.option("-t", "--tty", is_flag=True, help="Give it a terminal.")
@cluster.output
@cluster.options
@click.pass_context
def command(ctx: click.Context, asked: cluster.Asked, job: str, replica: str, container: str, stdin: bool,
            tty: bool, form: str) -> None:
    """Run a command in a replica of a job. The exit code is that of the command.

    With -o json or yaml what it prints is shown when it has ended, together with the replica and the exit code.
    """
    words = ctx.meta["command"]
    if not words:
        raise click.UsageError("say what to run, after --")
    if tty and not sys.stdin.isatty():
        say("There is no terminal here to hand over; -t is left out.")
        tty = False
    with asked.client(changes=True) as client:
        from trainmaster.cli.replicas import place

        meant = place(client, job, replica, container)
        assert client.cluster is not None
        access = client.cluster.access
    if form == "name":
        click.echo(f"pod/{meant.pod}", err=True)
    elif not replica and "/" not in job:
        say(f"in {meant.replica}:")
    from trainmaster.cli.remote import Heard, interactive

    heard = Heard() if form in ("json", "yaml") else None
    with told():
        code = interactive(access, meant, words, stdin=stdin, tty=tty and heard is None, heard=heard)
    if heard is not None:
        printed({"pod": meant.pod, "replica": meant.replica, "exitCode": code, "stdout": heard.out.decode(
            errors="replace"), "stderr": heard.err.decode(errors="replace")}, form)
    sys.exit(code if 0 <= code < 256 else BAD_INPUT)
