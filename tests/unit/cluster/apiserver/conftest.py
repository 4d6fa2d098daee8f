"""One API server per test, and one of webhooks."""

from collections.abc import AsyncIterator

import pytest
from tests.unit.cluster.apiserver.api import Api, serving
from tests.unit.cluster.apiserver.hook_server import HookServer, hook_server


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving() as found:
        yield found


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with hook_server() as found:
        yield found
