"""An image name becomes an environment: which entry explains it, which interpreter serves it, what is made once."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest

from trainmaster.cluster.kubelet import images
from trainmaster.cluster.kubelet.images import Catalog, Entry, ImageError

NOTHING_TO_SAY = lambda _: None  # noqa: E731


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param("python", "python", id="a bare name is itself"),
        pytest.param("docker.io/library/python:3.11", "python", id="registry defaults and tag are left out"),
        pytest.param("docker.io/kubeflow/x:1", "kubeflow/x", id="an organisation stays"),
        pytest.param("localhost:5000/x", "localhost:5000/x", id="the port of a registry is not a tag"),
        pytest.param("localhost:5000/x:2", "localhost:5000/x", id="a tag behind a port is"),
        pytest.param("x@sha256:0123", "x", id="a digest is left out"),
    ],
)
def test_repository(image: str, expected: str) -> None:
    assert expected == images.repository(image)


def test_every_shipped_entry_is_well_formed_and_its_programs_exist() -> None:
    for entry in images.shipped():
        for program in entry.files.values():
            assert (images.PROGRAMS / program).is_file(), program


def test_an_entry_with_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(msgspec.ValidationError, match="entrypont"):
        images.entries("images: [{names: [x], entrypont: [python]}]")


async def test_a_known_image_runs_in_an_interpreter_that_already_has_its_modules(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "envs", [Entry(names=("x",), packages=("anything",), modules=("json",))])

    image = await catalog.prepare("x:1", NOTHING_TO_SAY)

    assert image.environment["PATH"].startswith(str(Path(sys.executable).parent))
    assert not (tmp_path / "envs").exists(), "nothing had to be installed"


async def test_an_environment_is_made_once_even_if_many_ask_at_the_same_time(tmp_path: Path) -> None:
    """An entry without packages to fetch: the environment is real, the network is not needed."""
    said: list[str] = []
    catalog = Catalog(tmp_path, [Entry(names=("x",), packages=(str(local_package(tmp_path)),), modules=("no_such",))])

    first, second = await asyncio.gather(*(catalog.prepare("x", said.append) for _ in range(2)))

    assert first == second
    assert 1 == sum("new environment" in line for line in said)
    assert (first.visible[0] / images.COMPLETE).exists()


async def test_what_cannot_be_installed_says_why(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, [Entry(names=("x",), packages=("./no/such/package",), modules=("no_such",))])

    with pytest.raises(ImageError, match=r"could not be made: .*no/such/package") as raised:
        await catalog.prepare("x", NOTHING_TO_SAY)

    assert "ErrImagePull" == raised.value.reason


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Collecting numpy>=1.26", None),
        ("Downloading idna-3.20-py3-none-any.whl (69 kB)", None),
        ("Downloading h5py-3.14-cp311-manylinux.whl (4.9 MB)", None),
        ("Downloading tensorflow_cpu-2.21.0-cp311-manylinux.whl (274.3 MB)", "downloading tensorflow_cpu, 274 MB"),
        ("Installing collected packages: namex, six, tensorflow-cpu", "installing 3 packages"),
    ],
)
def test_progress_is_what_a_person_waits_for(line: str, expected: str | None) -> None:
    assert expected == images.worth_saying(line)


async def test_a_name_nobody_explains_runs_with_the_programs_of_the_machine_and_warns(tmp_path: Path) -> None:
    image = await Catalog(tmp_path, []).prepare("gcr.io/mine/trainer:7", NOTHING_TO_SAY)

    assert () == image.entrypoint
    assert "gcr.io/mine/trainer:7" in image.warning


@pytest.mark.parametrize("name", ["", "<训练镜像>", "two words"])
async def test_what_is_not_an_image_name_is_said_with_an_example(name: str, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="is not an image name") as raised:
        await Catalog(tmp_path, []).prepare(name, NOTHING_TO_SAY)

    assert "InvalidImageName" == raised.value.reason


def local_package(folder: Path) -> Path:
    """A wheel made by hand: the smallest thing pip can install without a network."""
    import zipfile

    wheel = folder / "nothing-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nothing.py", "")
        archive.writestr("nothing-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: nothing\nVersion: 1\n")
        archive.writestr("nothing-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("nothing-1.dist-info/RECORD", "")
    return wheel
