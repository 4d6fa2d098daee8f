"""What was measured beside what was to be reached: lines of a table, on the screen and in the results."""

import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Line:
    """One figure. `bound` is what it is compared with: at most, or at least; without one it is only told."""

    what: str
    value: float
    unit: str = ""
    bound: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.bound is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def cells(self) -> tuple[str, str, str, str, str]:
        goal = "" if self.bound is None else f"{'≥' if self.at_least else '≤'} {self.bound:g} {self.unit}".strip()
        verdict = {None: "", True: "met", False: "NOT MET"}[self.met]
        return self.what, f"{self.value:.4g} {self.unit}".strip(), goal, verdict, self.note


def table(lines: Iterable[Line]) -> str:
    rows = [("figure", "measured", "goal", "", ""), *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    shown = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
             for row in rows]
    return "\n".join([shown[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *shown[1:]])


def machine() -> str:
    """What the figures were measured on, without its name or the day."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # Distributions build theirs with profiles; what pyenv builds without being told to takes a third longer.
    whose = "the distribution's" if sys.base_prefix == "/usr" else "built here"
    return (f"{os.cpu_count()} cores, {pages / 2**30:.0f} GiB, {platform.system()} {platform.release().split('-')[0]}, "
            f"Python {platform.python_version()} ({whose})")


def tell(section: str, lines: Iterable[Line], results: Path, remark: str = "") -> bool:
    """Print a section, put it into the results in place of the last one of that name; whether all goals are met."""
    lines = list(lines)
    text = "\n\n".join(part for part in (f"## {section}", f"Measured on {machine()}.", remark, table(lines)) if part)
    print(text, flush=True)
    head = "# Results\n\nWritten by the benchmarks of this folder; `make bench` measures anew.\n"
    before = results.read_text() if results.exists() else head
    sections = before.split("\n## ")
    kept = [one for one in sections[1:] if one.split("\n", 1)[0] != section]
    whole = "\n## ".join([sections[0].rstrip() + "\n", *(one.strip() + "\n" for one in kept), text[3:] + "\n"])
    results.write_text(whole)
    return all(line.met is not False for line in lines)
