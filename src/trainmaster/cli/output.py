"""What commands have in common towards the person: where words go, exit codes, errors as sentences."""

import sys
from collections.abc import Callable

import click

FAILED, BAD_INPUT, NO_CLUSTER, INTERRUPTED = 1, 2, 3, 130


class Told(click.ClickException):
    """An error that is a sentence already, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: object = None) -> None:  # noqa: ARG002  click's signature
        say(f"error: {self.message}")


def say(text: str) -> None:
    """To the person; results go to standard output by click.echo instead."""
    click.echo(text, err=True)


def guarded(command: Callable[[], None]) -> None:
    """Run a command; what nobody expected becomes one sentence, with the traceback only for `--debug`."""
    try:
        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        say(f"error: {where}{problem.strerror or problem}. If this is about the home of the cluster, set "
            "TRAINMASTER_HOME to a folder of your own.")
        sys.exit(NO_CLUSTER)
    except Exception as problem:  # noqa: BLE001  the last place that can turn a bug into a sentence
        say(f"error: {type(problem).__name__}: {problem}\nThis is a bug in Trainmaster. "
            "Run the command again with --debug to see where it happened.")
        sys.exit(FAILED)
