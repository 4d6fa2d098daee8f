"""Which tests must not run beside others, how far properties are tried, and which may be left out in CI."""

import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

# These make namespaces and count what is left behind on the machine.
ON_THE_MACHINE = ("tests/e2e/", "tests/unit/cluster/kubelet/", "tests/faults/test_node")

# A tier runs a fixed slice by default, also of what hypothesis makes up, and something new each time with FULL=1. Never
# judged by the clock: a busy machine is not a bug.
settings.register_profile("slice", deadline=None, derandomize=True, database=None)
settings.register_profile("full", deadline=None, print_blob=True)
settings.load_profile("full" if os.environ.get("FULL") == "1" else "slice")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent.parent
    for item in items:
        if item.path.relative_to(root).as_posix().startswith(ON_THE_MACHINE):
            item.add_marker(pytest.mark.machine)


# In CI (CI=true) a test that is left out has failed: a tool that is not there would hide a gap for ever. But for these,
# by a part of their reason, and why they hide nothing.
NO_GAPS = {
    r"not in \S*(shared|parity|upstream|spec)": "recordings of other operators, which are not part of the checkout",
    r"we are an ordinary user already|only root can|the ordinary user": "the same is tried by the other user",
    r"TRAINMASTER_NO_\w+=1": "somebody asked for it",
    r"does not know these words": "of an old kubectl",
    r"for x86_64|stand for GPUs|no Debian|of another version|has no network": "of another machine",
    r"control groups|cgroup": "what this kernel hands out; the other way of keeping limits is tried then",
    r"file system to fill up": "needs a mount that containers are not allowed",
    r"this machine has no (zsh|fish)$": "shells that few machines have; bash is tried everywhere",
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not any(re.search(pattern, reason) for pattern in NO_GAPS):
            report.outcome = "failed"
            report.longrepr = f"left out, which CI does not allow (see NO_GAPS in tests/conftest.py): {reason}"
    return report
