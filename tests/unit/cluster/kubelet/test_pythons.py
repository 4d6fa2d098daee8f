"""Which interpreter serves an image, and how an environment is made once."""

import asyncio
import sys
import zipfile
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet import pythons
from trainmaster.cluster.kubelet.images import ImageError
from trainmaster.cluster.kubelet.pythons import Packages, Pythons

NOTHING_TO_SAY = lambda _: None  # noqa: E731


async def test_an_interpreter_that_already_has_the_modules_is_taken(tmp_path: Path) -> None:
    found = await Pythons(tmp_path / "envs").having(Packages(("anything",), modules=("json",)), NOTHING_TO_SAY)

    assert Path(sys.executable).parent == found.program.parent
    assert not (tmp_path / "envs").exists(), "nothing had to be installed"


async def test_an_environment_is_made_once_even_if_many_ask_at_the_same_time(tmp_path: Path) -> None:
    """A package that needs no network: the environment is real."""
    said: list[str] = []
    wanted = Packages((str(local_package(tmp_path)),), modules=("no_such",))
    offered = Pythons(tmp_path)

    first, second = await asyncio.gather(*(offered.having(wanted, said.append) for _ in range(2)))

    assert first == second
    assert 1 == sum("new environment" in line for line in said)
    assert (first.prefixes[0] / pythons.COMPLETE).exists()


async def test_what_cannot_be_installed_says_why(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"could not be made: .*no/such/package") as raised:
        await Pythons(tmp_path).having(Packages(("./no/such/package",)), NOTHING_TO_SAY)

    assert "ErrImagePull" == raised.value.reason


def test_with_a_gpu_nothing_is_left_out() -> None:
    wanted = Packages(("numpy==2",), bare=("torch==2",), finish="torch_without_cuda.py", modules=("torch",))

    assert Packages(("numpy==2", "torch==2"), modules=("torch",)) == wanted.for_machine(gpu=True)
    assert wanted == wanted.for_machine(gpu=False)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Collecting numpy>=1.26", None),
        ("Downloading idna-3.20-py3-none-any.whl (69 kB)", None),
        ("Downloading h5py-3.14-cp311-manylinux.whl (4.9 MB)", None),
        ("Downloading tensorflow_cpu-2.21.0-cp311-manylinux.whl (274.3 MB)", "downloading tensorflow_cpu, 274 MB"),
        ("Installing collected packages: namex, six, tensorflow-cpu", "installing 3 packages"),
        ("Installing collected packages: torch", None),
    ],
)
def test_progress_is_what_a_person_waits_for(line: str, expected: str | None) -> None:
    assert expected == pythons.worth_saying(line)


def local_package(folder: Path) -> Path:
    """A wheel made by hand: the smallest thing pip can install without a network."""
    wheel = folder / "nothing-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nothing.py", "")
        archive.writestr("nothing-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: nothing\nVersion: 1\n")
        archive.writestr("nothing-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("nothing-1.dist-info/RECORD", "")
    return wheel
