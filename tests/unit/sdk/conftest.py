"""What the tests of the verbs stand on."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.unit.sdk.stage import INSTALLED, Node, Stage

from trainmaster import AsyncClient
from trainmaster.api import groups
from trainmaster.api.schema import definitions
from trainmaster.cluster.controllers.garbage import Collector
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    clock = VirtualClock()
    async with embedded(clock) as cluster:
        kinds = [*definitions(), *groups.definitions()]
        await cluster.install([each for each in kinds if each["metadata"]["name"] in INSTALLED])
        node = Node(cluster.transport())
        collecting = asyncio.create_task(Collector(cluster.client("garbage"), clock).run())
        yield Stage(clock, AsyncClient(transport=node, clock=clock), cluster.client(), node)
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)
