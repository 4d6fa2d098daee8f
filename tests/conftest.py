"""Which tests must not run beside others: they make namespaces and count what is left behind on the machine."""

from pathlib import Path

import pytest

ON_THE_MACHINE = ("tests/e2e/", "tests/unit/cluster/kubelet/", "tests/faults/test_node")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent.parent
    for item in items:
        if item.path.relative_to(root).as_posix().startswith(ON_THE_MACHINE):
            item.add_marker(pytest.mark.machine)
