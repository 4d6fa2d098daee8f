"""The embedded server as a fixture: on virtual time, in memory or on disk, with faults on the way in."""

from pathlib import Path

import pytest

from trainmaster.api.core import NAMESPACES, PODS
from trainmaster.api.meta import name_of
from trainmaster.kube.errors import Unreachable
from trainmaster.testing.builders import pod
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded
from trainmaster.testing.faults import Died, Lose, on


async def test_objects_on_disk_are_there_for_the_next_server(tmp_path: Path) -> None:
    clock, path = VirtualClock(), tmp_path / "cluster.db"
    async with embedded(clock, path) as cluster:
        await cluster.client().create(PODS, pod("a"))
    async with embedded(clock, path) as cluster:
        assert ["a"] == [name_of(found) for found in (await cluster.client().list(PODS)).items]


async def test_objects_in_memory_are_made_at_the_test_s_own_time() -> None:
    async with embedded(VirtualClock()) as cluster:
        made = await cluster.client().create(PODS, pod("a"))
        assert "2030-01-01T12:00:00Z" == made["metadata"]["creationTimestamp"]
        assert "default" in [name_of(found) for found in (await cluster.client().list(NAMESPACES)).items]


async def test_a_lost_answer_hides_a_write_that_was_done() -> None:
    async with embedded(VirtualClock()) as cluster:
        with pytest.raises(Unreachable):
            await cluster.client(plan=on("POST", "/pods", Lose())).create(PODS, pod("a"))

        assert "a" == name_of(await cluster.client().get(PODS, "a", "default"))


async def test_one_client_dies_and_the_others_live() -> None:
    async with embedded(VirtualClock()) as cluster:
        with pytest.raises(Died):
            await cluster.client(die_after=1).create(PODS, pod("a"))

        assert "a" == name_of(await cluster.client().get(PODS, "a", "default"))
