"""What a machine runs short of, and who goes for it."""

from pathlib import Path

import pytest
from tests.unit.cluster.kubelet.node import SYSTEM_PYTHON, Node, soon

from trainmaster.api.core import PODS
from trainmaster.cluster.kubelet import pressure
from trainmaster.cluster.kubelet.pressure import CRITICAL, DISK, MEMORY, Consumer, Machine, Shortage, shortages, victim
from trainmaster.testing.builders import pod as built

MEBI, GIBI = 1 << 20, 1 << 30
EAT = "a = bytearray(100 << 20); import time; time.sleep(1000)"


@pytest.mark.parametrize(("expected", "machine"), [
    pytest.param([], Machine(), id="nothing can be told"),
    pytest.param([], Machine(memory=GIBI, disk=(50 * GIBI, 100 * GIBI)), id="enough of all"),
    pytest.param([Shortage(MEMORY, 100 * MEBI, 99 * MEBI)], Machine(memory=99 * MEBI), id="hardly any memory"),
    pytest.param([Shortage(DISK, 2 * GIBI, GIBI)], Machine(disk=(GIBI, 100 * GIBI)), id="hardly any disk"),
    pytest.param([], Machine(disk=(3 * GIBI, 100 * GIBI)), id="a large disk has enough in a small part"),
    pytest.param([], Machine(disk=(GIBI, 5 * GIBI)), id="a small disk with more than a tenth"),
])
def test_what_there_is_too_little_of(expected: list[Shortage], machine: Machine) -> None:
    assert expected == shortages(machine)


def consumer(uid: str, used: int, requested: int = 0, priority: int = 0) -> Consumer:
    return Consumer(uid, priority, {"main": used * MEBI}, {"main": requested * MEBI})


@pytest.mark.parametrize(("expected", "consumers"), [
    pytest.param("", [], id="nobody is there"),
    pytest.param("", [consumer("a", 63)], id="who took little is not the cause"),
    pytest.param("b", [consumer("a", 100), consumer("b", 300), consumer("c", 200)], id="who took most"),
    pytest.param("a", [consumer("a", 100), consumer("b", 300, 250)], id="beyond what was asked for"),
    pytest.param("a", [consumer("a", 100), consumer("b", 900, 1000)], id="who keeps to it goes last"),
    pytest.param("b", [consumer("b", 900, 1000)], id="but goes"),
    pytest.param("b", [consumer("a", 900, priority=5), consumer("b", 100, priority=1)], id="the least important first"),
    pytest.param("", [consumer("a", 900, priority=CRITICAL)], id="never one that all depend on"),
])
def test_who_goes(expected: str, consumers: list[Consumer]) -> None:
    found = victim(consumers)

    assert expected == (found.uid if found is not None else "")


def test_why() -> None:
    told = pressure.words(Shortage(MEMORY, 100 * MEBI, MEBI), Consumer("u", 0, {"a": GIBI, "b": 1}, {"b": MEBI}))

    assert told == ("The node was low on resource: memory. Threshold quantity: 102400Ki, available: 1024Ki. Container "
                    "a was using 1048576Ki, request is 0, has larger consumption of memory. ")


@pytest.mark.parametrize(("resource", "machine", "script"), [
    pytest.param(DISK, Machine(disk=(0, 100 * GIBI)), "dd if=/dev/zero of=/cache/big bs=1M count=70", id="the disk"),
    pytest.param(MEMORY, Machine(memory=0), f"exec {SYSTEM_PYTHON} -c '{EAT}'", id="the memory"),
])
async def test_a_pod_that_takes_all_there_is_harms_itself_alone(
    resource: str, machine: Machine, script: str, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any limit. What it wrote to a disk that is full is removed."""
    monkeypatch.setattr(pressure, "EVERY", 0.2)
    look = Look()
    monkeypatch.setattr(pressure, "measured", look)
    await node.stop()
    await node.start()
    for name, does in (("greedy", script), ("modest", "true")):
        made = built(name, node="here", command=("/bin/sh", "-c", f"{does}; echo ready; exec sleep 1000"),
                     volumes=[{"name": "v", "emptyDir": {}}], restart="Always", terminationGracePeriodSeconds=1)
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/cache"}]
        await node.client.create(PODS, made)
        await node.phase(name, "Running")
    await node.heard("modest", "ready")
    if resource == DISK:
        await node.heard("greedy", "ready")

    look.found = machine
    status = (await node.phase("greedy", "Failed"))["status"]

    assert "Evicted" == status["reason"]
    assert status["message"].startswith(f"The node was low on resource: {resource}. Threshold quantity: ")
    assert f"has larger consumption of {resource}. " in status["message"]
    assert "Running" == (await node.phase("modest", "Running", "Failed"))["status"]["phase"]
    if resource == DISK:
        await soon(lambda: not list(node.settings.volumes.glob("pods/*/v/big")))


class Look:
    """A machine that has enough, until somebody says otherwise."""

    def __init__(self) -> None:
        self.found = Machine()

    def __call__(self, _folder: Path) -> Machine:
        return self.found
