"""What is used: counters to rates, from control groups of either version and from processes."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from tests.unit.cluster.kubelet.node import PATIENCE, Node, soon

from trainmaster.cluster.kubelet.cgroups import Cgroups
from trainmaster.cluster.kubelet.usage import MACHINE, Key, Look, Looks, Place, Usage, look_at, told
from trainmaster.testing.clock import VirtualClock

SECOND = 1_000_000_000


async def test_nobody_asks_nobody_looks() -> None:
    """After a silence two looks, a second apart; then one is enough, and tells the average since the last."""
    clock = VirtualClock()
    moments: list[float] = []

    async def look(_places: Iterable[Place]) -> Mapping[tuple[Key, int], Look]:
        moments.append(clock.monotonic())
        return {(MACHINE, 0): Look(int(clock.monotonic() * 2 * SECOND), 1000)}

    usage = Usage("here", Cgroups(), clock, look)

    async def cores() -> int:
        return int((await clock.run(usage.summary([])))["node"]["cpu"]["usageNanoCores"])

    assert 2 * SECOND == await cores()
    await clock.advance(10)
    assert 2 * SECOND == await cores()
    await clock.advance(1000)
    await cores()
    assert [0.0, 1.0, 11.0, 1011.0, 1012.0] == moments


def test_a_node_that_is_not_the_whole_machine_uses_what_its_containers_use() -> None:
    def looks(when: float, *spent: int) -> Looks:
        keys: list[tuple[Key, int]] = [(MACHINE, 0), (("u", "a"), 0), (("v", "b"), 1)]
        return Looks(when, {key: Look(cpu * SECOND, 100 * cpu) for key, cpu in zip(keys, spent, strict=True)})

    before, after = looks(0.0, 100, 1, 2), looks(2.0, 900, 3, 6)

    of_share, of_all = (told("here", [], before, after, "now", whole=whole)["node"] for whole in (False, True))
    assert (3 * SECOND, 900) == (of_share["cpu"]["usageNanoCores"], of_share["memory"]["workingSetBytes"])
    assert 400 * SECOND == of_all["cpu"]["usageNanoCores"]


@pytest.mark.parametrize("files", [
    pytest.param({"cpuacct.usage": "5000000000\n", "memory.usage_in_bytes": "9000\n",
                  "memory.stat": "cache 1\ntotal_inactive_file 4000\n"}, id="the first version"),
    pytest.param({"cpu.stat": "usage_usec 5000000\nuser_usec 1\n", "memory.current": "9000\n",
                  "memory.stat": "anon 1\ninactive_file 4000\n"}, id="the second version"),
])
def test_control_groups(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    found = look_at([Place(("u", "main"), 0, (tmp_path,), 0)])

    assert Look(5 * SECOND, 5000) == found[("u", "main"), 0]
    assert found[MACHINE, 0].memory > 0


async def test_a_busy_and_an_idle_container(node: Node) -> None:
    """Through the node, and by their processes alone."""
    await node.pod("busy", "while :; do :; done")
    await node.pod("idle", "sleep 1000")
    shims = {}
    for name in ("busy", "idle"):
        found = await node.phase(name, "Running")
        record = node.settings.pods / found["metadata"]["uid"] / "main" / "0" / "shim.json"
        shims[name] = json.loads(record.read_text())["pid"]

    async with asyncio.timeout(PATIENCE):
        while True:      # a machine with other things to do may give it nothing for as long as two looks are apart
            summary = json.loads(await node.ask("GET", "/stats/summary"))
            used = {pod["podRef"]["name"]: pod["containers"][0] for pod in summary["pods"]}
            if used["busy"]["cpu"]["usageNanoCores"] > used["idle"]["cpu"]["usageNanoCores"]:
                break
    assert 0 < used["idle"]["memory"]["workingSetBytes"] < 100_000_000
    assert summary["node"]["memory"]["workingSetBytes"] > used["busy"]["memory"]["workingSetBytes"]

    places = [Place(("u", name), 0, (), pid) for name, pid in shims.items()]
    await soon(lambda: look_at(places)[("u", "busy"), 0].cpu > SECOND // 5)
    looks = look_at(places)
    assert looks[("u", "busy"), 0].cpu > looks[("u", "idle"), 0].cpu
    assert 0 < looks[("u", "idle"), 0].memory < 100_000_000
