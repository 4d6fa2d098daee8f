"""How `run` shows jobs: a live table on a terminal, plain lines anywhere else."""

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, Self

import click

from trainmaster.cli.tables import REPLICA_COLOURS
from trainmaster.progress import curves, lines
from trainmaster.progress.curves import Curves
from trainmaster.progress.report import Report
from trainmaster.sdk.pulse import IDLE, QUIET, WORTH_SAYING
from trainmaster.sdk.replicas import Replica
from trainmaster.sdk.usage import Usage, in_words
from trainmaster.sdk.view import View

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

STATE_STYLES = {"Running": "green", "Completed": "green", "Error": "bold red", "OOMKilled": "bold red",
                "CrashLoopBackOff": "red", "Pending": "dim", "ContainerCreating": "dim"}
BAR = 12                 # signs of a bar of progress
LOOKED_AT = 8            # of the last lines of a replica, for progress
SHOWN_CURVES = 2         # beside a job's progress


class RunView(View, Protocol):
    """A view that can make room for a question, too."""

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """While the person is asked something."""
        ...


class ForOneOfMany:
    """A view that several jobs share: names say which job is meant."""

    def __init__(self, view: RunView, job: str) -> None:
        self._view, self._job = view, job
        self.wants_usage = view.wants_usage

    def replica(self, replica: Replica) -> None:
        self._view.replica(self._named(replica))

    def gone(self, replica: Replica) -> None:
        self._view.gone(self._named(replica))

    def lines(self, replica: str, texts: Sequence[str]) -> None:
        self._view.lines(f"{self._job}/{replica}", texts)

    def note(self, text: str) -> None:
        self._view.note(f"{self._job}: {text}")

    def progress(self, job: str, found: Curves) -> None:
        self._view.progress(job, found)

    def used(self, replica: str, amounts: Usage) -> None:
        self._view.used(f"{self._job}/{replica}", amounts)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        with self._view.quiet():
            yield

    def _named(self, replica: Replica) -> Replica:
        return replace(replica, name=f"{self._job}/{replica.name}")


class PlainView:
    """One line per change: states and notes to standard error, what the replicas print to standard output, or to
    standard error as well (`aside`) where that is for something else."""

    wants_usage = False

    def __init__(self, *, aside: bool = False) -> None:
        self._aside = aside

    def replica(self, replica: Replica) -> None:
        told = [replica.state, f"({replica.why})" if replica.why else "",
                f"restarts: {replica.restarts}" if replica.restarts else ""]
        self.note(f"{replica.name}: " + " ".join(part for part in told if part))

    def gone(self, replica: Replica) -> None:
        self.note(f"{replica.name}: removed")

    def lines(self, replica: str, texts: Sequence[str]) -> None:
        click.echo("\n".join(f"[{replica}] {lines.frame(text)}" for text in texts), err=self._aside)

    def note(self, text: str) -> None:
        click.echo(f"· {text}", err=True)

    def progress(self, job: str, found: Curves) -> None:
        """Said at the end; before, the lines say it themselves."""

    def used(self, replica: str, amounts: Usage) -> None:
        """For terminals only."""

    @contextmanager
    def quiet(self) -> Iterator[None]:
        yield


@dataclass(slots=True)
class _Row:
    """One replica in the table."""

    replica: Replica
    used: Usage | None = None
    heard: lines.Heard = field(default_factory=lines.Heard)
    report: Report = field(default_factory=Report)

    def listen(self, texts: Sequence[str]) -> None:
        for text in texts[-LOOKED_AT:]:
            self.heard, said = lines.read(self.heard, text)
            if said.fraction is not None:
                self.report = said

    @property
    def progress(self) -> str:
        if self.report.fraction is None or self.replica.ended:
            return ""
        return f"{self.report.fraction * 100:3.0f} %{f' of {self.report.label}' if self.report.label else ''}"


class LiveView:
    """A table of the replicas at the foot of the terminal, their output scrolling above it."""

    wants_usage = True

    def __init__(self, console: "Console", hangs_after: float = QUIET) -> None:
        from rich.live import Live

        self._console = console
        self._rows: dict[str, _Row] = {}
        self._jobs: dict[str, Curves] = {}
        self._colours = itertools.cycle(REPLICA_COLOURS)
        self._colour_of: dict[str, str] = {}
        self._began = self._active = time.monotonic()
        self._hangs_after = hangs_after
        self._held: list[Text] | None = None   # what was printed while the person is asked something
        self._live = Live(get_renderable=self.shown, console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def replica(self, replica: Replica) -> None:
        self._active = time.monotonic()
        row = self._rows.get(replica.name)
        if row is not None and row.replica.uid == replica.uid:
            row.replica = replica
        else:
            self._rows[replica.name] = _Row(replica)

    def gone(self, replica: Replica) -> None:
        if (row := self._rows.get(replica.name)) is not None and row.replica.uid == replica.uid:
            del self._rows[replica.name]

    def lines(self, replica: str, texts: Sequence[str]) -> None:
        from rich.text import Text

        self._active = time.monotonic()
        if (row := self._rows.get(replica)) is not None:
            row.listen(texts)
        prefix = Text(f"{replica:<12} ", style=self._colour(replica))
        self._print(Text("\n").join(
            prefix + Text.from_ansi(lines.frame(text)) for text in texts))

    def note(self, text: str) -> None:
        from rich.text import Text

        self._print(Text(f"· {text}", style="dim"))

    def progress(self, job: str, found: Curves) -> None:
        self._jobs[job] = found

    def used(self, replica: str, amounts: Usage) -> None:
        if (row := self._rows.get(replica)) is not None:
            row.used = amounts

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

    def shown(self) -> "RenderableType":
        """The foot of the terminal as it is now."""
        from rich.console import Group

        return Group(*(_headline(job, found) for job, found in sorted(self._jobs.items())), self._table(),
                     *self._silence())

    def _silence(self) -> "Iterator[Text]":
        """When a job that does nothing will be said to hang, so that nobody waits for it in the dark."""
        from rich.text import Text

        silent = time.monotonic() - self._active
        running = [row.used for row in self._rows.values() if row.replica.state == "Running"]
        if silent >= WORTH_SAYING and running and all(used is not None and used.cpu < IDLE for used in running):
            yield Text(f"silent and idle for {curves.lasting(silent)}; said to hang after "
                       f"{curves.lasting(self._hangs_after)} (--hangs-after)", style="yellow")

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
        measured = any(row.used for row in self._rows.values())
        counted = any(row.progress for row in self._rows.values())
        for title, shown in (("REPLICA", True), ("STATE", True), ("RESTARTS", True), ("CPU", measured),
                             ("MEMORY", measured), ("PROGRESS", counted),
                             (f"{time.monotonic() - self._began:.0f} s", True)):
            if shown:
                table.add_column(title, justify="right" if title in ("CPU", "MEMORY", "RESTARTS") else "left")
        most = max(4, self._console.height // 2)
        names = sorted(self._rows, key=_order)
        for name in names[:most]:
            row = self._rows[name]
            replica, used = row.replica, row.used
            cells: list[Text | str] = [Text(name, style=self._colour(name)),
                     Text(replica.state, style=STATE_STYLES.get(replica.state, "")), str(replica.restarts)]
            cells += [f"{used.cpu:.2f}" if used else "", in_words(used.memory) if used else ""] if measured else []
            cells += [row.progress] if counted else []
            table.add_row(*cells, Text(replica.why, style="dim", overflow="ellipsis", no_wrap=True))
        if len(names) > most:
            rest = [self._rows[name].replica.state for name in names[most:]]
            words = ", ".join(f"{rest.count(state)} {state}" for state in sorted(set(rest)))
            table.add_row(Text(f"and {len(rest)} more: {words}", style="dim"))
        return table


def _headline(job: str, found: Curves) -> "Text":
    """`mnist  ━━━━────────  37 %, 2 min left   loss ▇▅▃▁ 0.21`."""
    from rich.text import Text

    line = Text(f"{job}  ", style="bold")
    if found.percent is not None:
        done = round(found.percent / 100 * BAR)
        line.append("━" * done, style="green")
        line.append("─" * (BAR - done) + "  ", style="dim")
        line.append(f"{curves.short_progress(found)}   ")
    for name, points in curves.worth_showing(found)[:SHOWN_CURVES]:
        values = [value for _, value in points]
        line.append(f"{name} ", style="dim")
        line.append(f"{curves.sparkline(values, BAR)} ", style="cyan")
        line.append(f"{values[-1]:g}   ")
    return line


def _order(name: str) -> tuple[str, int]:
    """worker-2 before worker-10."""
    role, _, index = name.rpartition("-")
    return (role, int(index)) if index.isdigit() else (name, 0)
