"""Rows in columns, coloured and cut to the width of the screen only where there is one."""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

GAP = "   "
STATE_COLOURS = {"Running": "green", "Succeeded": "green", "Completed": "green", "Failed": "red", "Error": "red",
                 "OOMKilled": "red", "CrashLoopBackOff": "red", "Waiting": "yellow", "Pending": "yellow",
                 "Restarting": "yellow", "Suspended": "blue", "Warning": "yellow"}
REPLICA_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")
NOTHING = "<none>"


class Table:
    """Prints rows under their titles. Later rows keep the widths of the first ones, as they are followed."""

    def __init__(self, titles: Sequence[str], *, cut_last: bool = True, indent: str = "") -> None:
        self._titles = list(titles)
        self._widths = [len(title) for title in titles]
        self._cut_last = cut_last
        self._indent = indent
        self._headed = False
        self._screen = width()

    def show(self, rows: Sequence[Sequence[object]]) -> None:
        texts = [[_text(cell) for cell in row] for row in rows]
        for row in texts:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, row, strict=True)]
        if not self._headed:
            self._headed = True
            self._line(self._titles)
        for row in texts:
            self._line(row)

    def _line(self, row: Sequence[str]) -> None:
        cells = []
        for number, (cell, width) in enumerate(zip(row, self._widths, strict=True)):
            padded = cell.ljust(width) if number < len(row) - 1 else cell
            cells.append(click.style(padded, STATE_COLOURS[cell]) if self._screen and cell in STATE_COLOURS else padded)
        if self._cut_last and self._screen:
            used = len(self._indent) + sum(self._widths[:-1]) + len(GAP) * (len(row) - 1)
            cells[-1] = _cut(cells[-1], max(20, self._screen - used))
        click.echo((self._indent + GAP.join(cells)).rstrip())


def width() -> int:
    """Of the screen, 0 if there is none. Not by shutil, which loads four libraries of compression."""
    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns)
    except (OSError, ValueError):      # not a terminal, or no number
        return 0


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, as kubectl says it: at most two units."""
    if moment is None:
        return NOTHING
    return span(((now or datetime.now(UTC)) - moment).total_seconds())


def span(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    return f"{days}d"


def _text(cell: object) -> str:
    if cell is None or cell == "":
        return ""
    return " ".join(str(cell).split())


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width - 1] + "…"
