"""GPUs: found in the driver's files, given to who asks, taken back with the attempt that had them."""

from pathlib import Path

import pytest
from tests.unit.cluster.kubelet.node import Node

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet import records
from trainmaster.cluster.kubelet.environment import ConfigError
from trainmaster.cluster.kubelet.gpus import Gpu, found, given, held, variables
from trainmaster.testing.builders import pod as built

ONE, TWO = Gpu("GPU-0a", ("/dev/fuse",)), Gpu("GPU-0b", ("/dev/net/tun",))


def information(number: str, name: str) -> str:
    return f"Model: \t\t NVIDIA A100\nIRQ:   \t\t 35\nGPU UUID: \t {name}\nDevice Minor: \t {number}\n"


def test_the_drivers_files_say_which_there_are(tmp_path: Path) -> None:
    for bus, number, name in (("b", "0", "GPU-0a-1"), ("a", "1", "GPU-0b-2"), ("c", "7", "GPU-0c"), ("d", "?", "x")):
        (tmp_path / bus).mkdir()
        (tmp_path / bus / "information").write_text(information(number, name))
    for node in ("nvidia0", "nvidia1"):
        (tmp_path / node).touch()

    assert [("GPU-0a-1", f"{tmp_path}/nvidia0"), ("GPU-0b-2", f"{tmp_path}/nvidia1")] == [
        (gpu.name, gpu.devices[0]) for gpu in found(tmp_path, str(tmp_path))
    ]
    assert () == found(tmp_path / "nowhere")


def asking(count: str) -> Object:
    return {"name": "main", "resources": {"limits": {"nvidia.com/gpu": count}}}


@pytest.mark.parametrize(("expected", "container", "taken"), [
    pytest.param((), {"name": "main"}, set(), id="none to who asks for none"),
    pytest.param((ONE,), asking("1"), set(), id="one to who asks for one"),
    pytest.param((TWO,), asking("1"), {"GPU-0a"}, id="one that nobody has"),
    pytest.param((ONE, TWO), asking("2"), set(), id="all"),
])
def test_who_gets_which(expected: tuple[Gpu, ...], container: Object, taken: set[str]) -> None:
    assert expected == given(container, (ONE, TWO), taken)


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"2 of nvidia.com/gpu wanted, 1 free"):
        given(asking("2"), (ONE, TWO), {"GPU-0b"})


def test_they_are_held_by_attempts_that_have_not_ended(tmp_path: Path) -> None:
    for attempt, name in ((0, "GPU-0a"), (1, "GPU-0b")):
        folder = tmp_path / "uid" / "main" / str(attempt)
        folder.mkdir(parents=True)
        records.write(str(folder), records.SHIM, {"gpus": [name]})
    records.write(str(tmp_path / "uid" / "main" / "0"), records.EXIT, {})

    assert {"GPU-0b"} == held(tmp_path)


def test_variables() -> None:
    assert {"CUDA_VISIBLE_DEVICES": "GPU-0a,GPU-0b", "NVIDIA_VISIBLE_DEVICES": "GPU-0a,GPU-0b"} == variables((ONE, TWO))
    assert {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"} == variables(())


@pytest.mark.skipif(not all(Path(gpu.devices[0]).exists() for gpu in (ONE, TWO)), reason="devices that stand for GPUs")
async def test_a_container_gets_the_devices_of_its_gpus_and_no_others(node: Node) -> None:
    await node.stop()
    await node.start(gpus=(ONE, TWO))
    say = "echo $CUDA_VISIBLE_DEVICES; ls /dev/fuse /dev/net/tun 2> /dev/null; exec sleep 1000"
    for name, count in (("a", "1"), ("b", "1"), ("c", "1")):
        made = built(name, node="here", command=("/bin/sh", "-c", say))
        made["spec"]["containers"][0] |= {"resources": {"limits": {"nvidia.com/gpu": count}}}
        await node.client.create(PODS, made)
        if name != "c":
            await node.phase(name, "Running")
            await node.heard(name, "/dev/")
    said = {(await node.log(name))[1] for name in "ab"}

    assert {"GPU-0a\n/dev/fuse\n", "GPU-0b\n/dev/net/tun\n"} == said
    assert "1 of nvidia.com/gpu wanted, 0 free on this machine" in await node.event("Failed")
