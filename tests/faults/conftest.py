"""How much was done to the operator is said at the end, because passing says nothing if little went wrong.

The whole long run fails if it was less than promised; a part of it, chosen by name, is only counted.
"""

import os
from dataclasses import dataclass

import pytest

FAULTS = "faults"       # a property of a test: what it injected, as `Injected.text`
PROMISED = 100_000      # by all runs of FULL=1 together


@dataclass(frozen=True, slots=True)
class Injected:
    """What went wrong in one run."""

    seed: int
    faults: int
    runs: int           # that there are in all

    @property
    def text(self) -> str:
        return f"{self.seed} {self.faults} {self.runs}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = _found(session.config)
    if session.exitstatus == pytest.ExitCode.OK and is_short(found, full=_full()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    found = _found(terminalreporter.config)
    if not found:
        return
    seeds = sorted({each.seed for each in found})
    terminalreporter.write_line(
        f"{sum(each.faults for each in found)} faults injected in {len(found)} of {found[0].runs} runs, "
        f"seeds {seeds[0]} to {seeds[-1]}; the name of a run has its seed and plays it again"
    )
    if is_short(found, full=_full()):
        terminalreporter.write_line(f"FAILED: at least {PROMISED} were promised", red=True)


def is_short(found: list[Injected], *, full: bool) -> bool:
    """Whether everything ran, and less went wrong than was promised."""
    everything = full and bool(found) and len(found) == found[0].runs
    return everything and sum(each.faults for each in found) < PROMISED


def _full() -> bool:
    return os.environ.get("FULL") == "1"


def _found(config: pytest.Config) -> list[Injected]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return []       # a worker of several, which reports to the first
    return [
        Injected(*map(int, str(value).split())) for reports in reporter.stats.values() for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties if name == FAULTS
    ]
