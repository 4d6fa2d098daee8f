"""How `run` shows a job: a live table on a terminal, plain lines anywhere else."""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, Self

import click

from trainmaster.sdk.replicas import Replica

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")
STATE_STYLES = {"Running": "green", "Completed": "green", "Error": "bold red", "OOMKilled": "bold red",
                "CrashLoopBackOff": "red", "Pending": "dim", "ContainerCreating": "dim"}


class RunView(Protocol):
    """A view that can be told headlines, too."""

    def replica(self, replica: Replica) -> None: ...

    def gone(self, replica: Replica) -> None: ...

    def line(self, replica: str, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """While the person is asked something."""
        ...


class ForOneOfMany:
    """A view that several jobs share: names say which job is meant."""

    def __init__(self, view: RunView, job: str) -> None:
        self._view, self._job = view, job

    def replica(self, replica: Replica) -> None:
        self._view.replica(self._named(replica))

    def gone(self, replica: Replica) -> None:
        self._view.gone(self._named(replica))

    def line(self, replica: str, text: str) -> None:
        self._view.line(f"{self._job}/{replica}", text)

    def note(self, text: str) -> None:
        self._view.note(f"{self._job}: {text}")

    @contextmanager
    def quiet(self) -> Iterator[None]:
        with self._view.quiet():
            yield

    def _named(self, replica: Replica) -> Replica:
        return replace(replica, name=f"{self._job}/{replica.name}")


class PlainView:
    """One line per change: states and notes to standard error, what the replicas print to standard output."""

    def replica(self, replica: Replica) -> None:
        told = [replica.state, f"({replica.why})" if replica.why else "",
                f"restarts: {replica.restarts}" if replica.restarts else ""]
        self.note(f"{replica.name}: " + " ".join(part for part in told if part))

    def gone(self, replica: Replica) -> None:
        self.note(f"{replica.name}: removed")

    def line(self, replica: str, text: str) -> None:
        click.echo(f"[{replica}] {text}")

    def note(self, text: str) -> None:
        click.echo(f"· {text}", err=True)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        yield


class LiveView:
    """A table of the replicas at the foot of the terminal, their output scrolling above it."""

    def __init__(self, console: "Console") -> None:
        from rich.live import Live

        self._console = console
        self._replicas: dict[str, Replica] = {}
        self._colours = itertools.cycle(COLOURS)
        self._colour_of: dict[str, str] = {}
        self._began = time.monotonic()
        self._held: list[Text] | None = None   # what was printed while the person is asked something
        self._live = Live(get_renderable=self._table, console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def replica(self, replica: Replica) -> None:
        self._replicas[replica.name] = replica

    def gone(self, replica: Replica) -> None:
        if (shown := self._replicas.get(replica.name)) is not None and shown.uid == replica.uid:
            del self._replicas[replica.name]

    def line(self, replica: str, text: str) -> None:
        from rich.text import Text

        self._print(Text(f"{replica:<12} ", style=self._colour(replica)) + Text(text))

    def note(self, text: str) -> None:
        from rich.text import Text

        self._print(Text(f"· {text}", style="dim"))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        self._live.stop()
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            self._live.start()
            for text in held:
                self._print(text)

    def _print(self, text: "Text") -> None:
        if self._held is not None:
            self._held.append(text)
        else:
            self._console.print(text, soft_wrap=True)

    def _colour(self, replica: str) -> str:
        if replica not in self._colour_of:
            self._colour_of[replica] = next(self._colours)
        return self._colour_of[replica]

    def _table(self) -> "Table":
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="dim")
        for title in ("REPLICA", "STATE", "RESTARTS", f"{time.monotonic() - self._began:.0f} s"):
            table.add_column(title)
        for name in sorted(self._replicas):
            replica = self._replicas[name]
            table.add_row(
                Text(name, style=self._colour(name)), Text(replica.state, style=STATE_STYLES.get(replica.state, "")),
                str(replica.restarts), Text(replica.why, style="dim", overflow="ellipsis", no_wrap=True),
            )
        return table
