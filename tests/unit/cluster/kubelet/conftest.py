"""A node of its own for each test that asks for one."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.cluster.kubelet.node import Node, running


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    # A path longer than the 107 bytes that the address of a Unix socket can hold.
    base = Path(tempfile.mkdtemp(prefix="tm-node-")) / ("long" * 25)
    base.mkdir(mode=0o700)
    async with running(base) as made:
        yield made
