"""Which tests must not run beside others, and how far properties are tried."""

import os
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
