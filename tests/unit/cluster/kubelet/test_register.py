"""What is said of the node: conditions from measures, and the times at which they became true."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainmaster.api.core import NODES
from trainmaster.cluster.apiserver.documents import Version
from trainmaster.cluster.controllers.stranded import QUARANTINE
from trainmaster.cluster.kubelet.pressure import Machine, measured
from trainmaster.cluster.kubelet.register import conditions, keep_alive, register, status
from trainmaster.cluster.kubelet.settings import NodeSettings
from trainmaster.testing.clock import VirtualClock
from trainmaster.testing.cluster import embedded

GIBI = 1 << 30
WELL = Machine(8 * GIBI, (100 * GIBI, 200 * GIBI), (500, 32768))


@pytest.mark.parametrize(("expected", "machine"), [
    pytest.param(set(), WELL, id="a machine with room"),
    pytest.param(set(), Machine(), id="nothing is known: nothing is said"),
    pytest.param({"MemoryPressure"}, Machine(memory=99 << 20), id="hardly any memory left"),
    pytest.param({"DiskPressure"}, Machine(disk=(1 * GIBI, 200 * GIBI)), id="hardly any disk left"),
    pytest.param(set(), Machine(disk=(50 * GIBI, 2000 * GIBI)), id="a small part of a large disk is enough"),
    pytest.param(set(), Machine(disk=(1 * GIBI, 4 * GIBI)), id="so is a large part of a small one"),
    pytest.param({"PIDPressure"}, Machine(processes=(30000, 32768)), id="hardly any process can be started"),
])
def test_pressure(expected: set[str], machine: Machine) -> None:
    found = conditions(machine, {})

    assert expected == {kind for kind, (value, _, _) in found.items() if value == "True"} - {"Ready"}
    assert {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"} == found.keys()


def test_this_machine_can_be_measured(tmp_path: Path) -> None:
    found = measured(tmp_path)

    assert found.memory
    assert found.disk
    assert found.processes
    assert 0 < found.processes[0] < found.processes[1]


def test_a_condition_keeps_the_time_at_which_it_became_true(tmp_path: Path) -> None:
    settings = NodeSettings("here", tmp_path, tmp_path, tmp_path, "8", "16Gi")
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    notes = {"OutsideReachable": ("True", "Relay", "by TCP only")}
    first = status(settings, {}, early, conditions(WELL, notes))

    second = status(settings, first, late, conditions(Machine(memory=1), notes))

    times = {one["type"]: one["lastTransitionTime"] for one in second["conditions"]}
    assert ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z") == (
        times["MemoryPressure"], times["Ready"], times["OutsideReachable"])


def test_what_the_node_is_has_no_line_ends(tmp_path: Path) -> None:
    """They are read from files, each of which ends with one."""
    settings = NodeSettings("here", tmp_path, tmp_path, tmp_path, "8", "16Gi")

    info = status(settings, {}, datetime(2026, 1, 1, tzinfo=UTC), conditions(WELL, {}))["nodeInfo"]

    assert info == {name: value.strip() for name, value in info.items()}
    assert info["bootID"]


def test_the_node_is_of_the_release_that_the_server_names(tmp_path: Path) -> None:
    """`kubectl get nodes` and `kubectl version` must not contradict each other."""
    settings = NodeSettings("here", tmp_path, tmp_path, tmp_path, "8", "16Gi")

    info = status(settings, {}, datetime(2026, 1, 1, tzinfo=UTC), conditions(WELL, {}))["nodeInfo"]

    assert Version().git_version == info["kubeletVersion"] == info["kubeProxyVersion"]


async def test_a_node_that_somebody_deleted_is_back_before_its_pods_are_let_go(tmp_path: Path) -> None:
    clock, settings = VirtualClock(), NodeSettings("here", tmp_path, tmp_path, tmp_path, "8", "16Gi")
    async with embedded(clock) as cluster:
        client = cluster.client()
        await register(settings, client, clock)
        alive = asyncio.create_task(keep_alive(settings, client, clock))
        await clock.advance(60)
        await client.delete(NODES, "here")
        await clock.advance(QUARANTINE.total_seconds() / 2)

        assert "8" == (await client.get(NODES, "here"))["status"]["capacity"]["cpu"]
        alive.cancel()
        await asyncio.gather(alive, return_exceptions=True)
