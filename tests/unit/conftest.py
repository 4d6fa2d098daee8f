"""A cluster on virtual time, and a way in for the test itself."""

from collections.abc import AsyncIterator

import pytest

from trainmaster.kube.client import Client
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import Cluster, embedded


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def cluster(clock: VirtualClock) -> AsyncIterator[Cluster]:
    async with embedded(clock) as made:
        yield made


@pytest.fixture
def client(cluster: Cluster) -> Client:
    return cluster.client()
