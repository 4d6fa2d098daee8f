"""One server per test."""

from collections.abc import AsyncIterator

import pytest
from tests.unit.cluster.apiserver.api import Api, serving


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving() as found:
        yield found
