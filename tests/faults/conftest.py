"""How much was done to the operator is said at the end, because passing says nothing if little went wrong."""

import pytest

FAULTS = "faults"       # a property of a test: how many it injected


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = [
        int(str(value)) for reports in terminalreporter.stats.values() for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties if name == FAULTS
    ]
    if counts:
        terminalreporter.write_line(f"{sum(counts)} faults injected in {len(counts)} runs")
