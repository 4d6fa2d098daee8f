"""Parses the command line and loads the one command that was asked for."""

import importlib
import sys

import click

from trainmaster import __version__

# name -> module and the sentence of `--help`; here, so that `--help` loads none of them
COMMANDS = {
    "up": ("trainmaster.cli.up", "Start the embedded cluster in the background."),
    "down": ("trainmaster.cli.down", "Stop the embedded cluster, pods first."),
    "status": ("trainmaster.cli.status", "What is up, what runs, what waits."),
    "run": ("trainmaster.cli.run", "Run a script or manifests, and follow the job to its end."),
    "apply": ("trainmaster.cli.apply", "Create or change what files describe."),
    "get": ("trainmaster.cli.get", "List jobs of all kinds, with the reason; or objects of any kind."),
    "describe": ("trainmaster.cli.describe", "All that is known about a job."),
    "logs": ("trainmaster.cli.logs", "What the replicas of a job print, merged."),
    "events": ("trainmaster.cli.events", "What happened to a job."),
    "wait": ("trainmaster.cli.wait", "Wait until a job is so far, or cannot be any more."),
    "top": ("trainmaster.cli.top", "What replicas and nodes use of CPU and memory."),
    "exec": ("trainmaster.cli.exec", "Run a command in a replica of a job."),
    "cp": ("trainmaster.cli.cp", "Copy files from or to a replica of a job."),
    "scale": ("trainmaster.cli.scale", "Change how many replicas a job has."),
    "suspend": ("trainmaster.cli.suspend", "Take the pods of a job away until it is resumed."),
    "resume": ("trainmaster.cli.resume", "Let a suspended job go on."),
    "restart": ("trainmaster.cli.restart", "Run a job from the beginning."),
    "delete": ("trainmaster.cli.delete", "Delete jobs with their pods, or objects of any kind."),
    "validate": ("trainmaster.cli.validate", "What is wrong with a manifest, without a cluster."),
    "explain": ("trainmaster.cli.explain", "Why a job waits, or why it failed."),
    "crds": ("trainmaster.cli.crds", "Print the custom resource definitions."),
    "images": ("trainmaster.cli.images", "What image names mean on this machine."),
    "doctor": ("trainmaster.cli.doctor", "What this machine lacks to run pods, and how to get it."),
    "operator": ("trainmaster.cli.operator", "Run only the operator, against the cluster of a kubeconfig."),
    "completion": ("trainmaster.cli.completion", "Print the completion script of a shell."),
    "scheduler": ("trainmaster.cli.scheduler", "Run only the gang scheduler, against the cluster of a kubeconfig."),
}

# What people type who come from kubectl, docker, systemctl and their like, and what it is called here.
HABITS = {
    "create": "apply", "submit": "run", "start": "up", "stop": "down", "ps": "get", "ls": "get", "list": "get",
    "rm": "delete", "remove": "delete", "kill": "delete", "attach": "logs", "why": "explain", "check": "validate",
    "lint": "validate", "info": "status", "install": "crds", "version": "--version", "help": "--help",
}
BEFORE = "trainmaster.before"      # words that were said before the command

SECTIONS = (      # of `--help`
    ("Jobs", ("run", "get", "describe", "explain", "logs", "events", "wait", "scale", "suspend", "resume", "restart",
              "delete")),
    ("Inside of replicas", ("exec", "cp", "top")),
    ("Manifests", ("apply", "validate")),
    ("The embedded cluster", ("up", "down", "status", "doctor", "images")),
    ("On Kubernetes", ("operator", "scheduler", "crds")),
    ("Shell", ("completion",)),
)


def debug() -> click.Option:
    """An option of every command; `main` has taken it away before click looks."""
    return click.Option(["--debug"], is_flag=True, expose_value=False, help="Show where an unexpected error happened.")


def cluster_options(*, used: bool) -> list[click.Option]:
    """Which cluster, before the command as after it. A command that asks none takes them all the same, as kubectl's do:
    scripts write them once for all."""
    return [click.Option(words, expose_value=False, hidden=not used, help="As after the command.",
                         callback=_handed_on if used else None)
            for words in (["-n", "--namespace"], ["--kubeconfig"], ["--context"])]


def form() -> click.Option:
    """For commands that print one thing only, or nothing: what is written for all commands does no harm there."""
    from trainmaster.cli.output import FORMS

    return click.Option(["-o", "--output"], type=click.Choice(FORMS), expose_value=False, hidden=True,
                        help="As with other commands.")


def with_common_options(command: click.Command) -> click.Command:
    """Give it, and what it has below it, those of the options of all commands that it does not have by itself."""
    there = {word for each in command.params for word in each.opts}
    command.params += [each for each in (*cluster_options(used=False), form(), debug())
                       if there.isdisjoint(each.opts)]
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        with_common_options(below)
    return command


def _handed_on(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """What is said before the command is said to it first, so that what is said after it counts more."""
    if value is not None:
        ctx.meta.setdefault(BEFORE, []).extend([param.opts[-1], value])


class Lazy(click.Group):
    """A group whose commands are modules, each with a click command called `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        found = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(found, click.Command)
        return with_common_options(found)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:      # click would say "Aborted!" and that the job failed
            from trainmaster.cli.output import INTERRUPTED

            ctx.exit(INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, COMMANDS))
        listed = {name for _, names in SECTIONS for name in names}
        for title, names in (*SECTIONS, ("More", [name for name in COMMANDS if name not in listed])):
            rows = [(name.ljust(width), COMMANDS[name][1]) for name in names if name in COMMANDS]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            import difflib

            near = [HABITS[args[0]]] if args[0] in HABITS else difflib.get_close_matches(args[0], COMMANDS, 1, 0.6)
            ctx.fail(f"No such command '{args[0]}'.{f' Did you mean {near[0]}?' if near else ''}")
        return super().resolve_command(ctx, [*args[:1], *ctx.meta.get(BEFORE, ()), *args[1:]])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trainmaster")
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an unexpected error happened.")
def cli() -> None:
    """Distributed training jobs, on this machine or on any Kubernetes.

    \b
    trainmaster run job.yaml      run a job here and follow it to its end
    trainmaster up                start the embedded cluster; kubectl works with it
    """


cli.params += cluster_options(used=True)


def main() -> None:
    """The `trainmaster` command. Exit codes: 0 done, 1 the job failed, 2 bad input, 3 no cluster."""
    ours = sys.argv[1:sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    if "--debug" in ours:
        sys.argv.remove("--debug")
        cli(standalone_mode=True)
        return
    from trainmaster.cli.output import guarded

    guarded(cli)


if __name__ == "__main__":
    main()
