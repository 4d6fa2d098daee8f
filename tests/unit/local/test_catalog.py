"""A person's own images: what is added, listed and refused, and with which words."""

import tarfile
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet.catalog import Entry
from trainmaster.local import catalog
from trainmaster.local.catalog import Refused, Wish
from trainmaster.local.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def entry_of(home: Home, name: str) -> Entry:
    return next(one for one in catalog.users(home).images if name in one.names)


def test_an_image_that_is_added_is_listed_as_yours(home: Home) -> None:
    program = ("python", "a.py")
    catalog.add(home, Wish("mine/net:1", python="pytorch", requirements=("transformers",), entrypoint=program))

    found = {one.name: one for one in catalog.listed(home)}
    mine = catalog.Shown("mine/net:1", "PyTorch 2.15, transformers", "python a.py", "", yours=True)
    assert mine == found["mine/net:1"]
    assert not found["kubeflow/jaxjob-simple"].yours


def test_the_same_name_again_replaces_it_and_removing_brings_the_shipped_one_back(home: Home) -> None:
    catalog.add(home, Wish("busybox", entrypoint=("one",)))
    catalog.add(home, Wish("busybox", entrypoint=("two",)))

    assert [("two",)] == [one.entrypoint for one in catalog.users(home).images]
    catalog.forget(home, "busybox")
    assert {"sh"} == {one.runs for one in catalog.listed(home) if one.name == "busybox"}


def test_a_directory_is_used_where_it_is(home: Home, tmp_path: Path) -> None:
    (tmp_path / "root" / "bin").mkdir(parents=True)

    catalog.add(home, Wish("x", rootfs=tmp_path / "root"))

    assert str(tmp_path / "root") == entry_of(home, "x").rootfs


def test_an_archive_is_unpacked_into_the_home(home: Home, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_text("#!/bin/sh\n")
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "bin", "bin")

    for _ in range(2):
        catalog.add(home, Wish("x", rootfs=tmp_path / "x.tar.gz", command=("tool",)))

    root = Path(entry_of(home, "x").rootfs)
    assert root.is_relative_to(home.path)
    assert (root / "bin" / "tool").is_file()
    assert 1 == len(list(home.roots.iterdir())), "the same archive is kept once"


def test_requirements_are_packages_and_files_of_packages(tmp_path: Path) -> None:
    (tmp_path / "needs.txt").write_text("# what we need\nnumpy==2.4.6  # for arrays\n\ntransformers\n")

    assert ("pandas", "numpy==2.4.6", "transformers") == catalog.requirements(["pandas", "needs.txt"], tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["gone.txt"], "there is no file", id="a file that is not there"),
        pytest.param(["options.txt"], "'--pre' is an option of pip", id="options of pip"),
    ],
)
def test_requirements_that_cannot_be_read(words: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "options.txt").write_text("--pre\n")

    with pytest.raises(Refused, match=said):
        catalog.requirements(words, tmp_path)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        pytest.param(Wish("<训练镜像>"), "is not an image name", id="what is no name"),
        pytest.param(Wish("x", python="torch"), "not one of boosting, jax, mpi, mxnet, paddle, pytorch, tensorflow",
                     id="packages that do not come with the catalog"),
        pytest.param(Wish("x", rootfs=Path("/no/such")), "there is no /no/such", id="a root that is not there"),
        pytest.param(Wish("x", rootfs=Path("/proc/self/fd")), "is not a root file system",
                     id="a directory of other things"),
        pytest.param(Wish("x", rootfs=Path("/etc/hostname")), "is not an archive", id="a file that is no archive"),
        pytest.param(Wish("x", rootfs=Path("/"), python="jax"), "brings a Python of its own", id="two ways at once"),
        pytest.param(Wish("x", files={"/a": Path("/no/such")}), "there is no /no/such", id="a file that is not there"),
        pytest.param(Wish("x", files={"a": Path("/etc")}), "must begin with /", id="a relative place for a file"),
        pytest.param(Wish("x", directory="app"), "must begin with /", id="a relative working directory"),
    ],
)
def test_what_is_refused(wish: Wish, said: str, home: Home) -> None:
    with pytest.raises(Refused, match=said):
        catalog.add(home, wish)

    assert not home.images.exists()


def test_a_file_that_was_broken_by_hand_is_named_and_left_alone(home: Home) -> None:
    home.path.mkdir()
    home.images.write_text("images: [{name: x}]")

    with pytest.raises(Refused, match=r"images.yaml cannot be read: .*name"):
        catalog.add(home, Wish("y"))
    assert "images: [{name: x}]" == home.images.read_text()


def test_removing_what_is_not_there_is_said(home: Home) -> None:
    with pytest.raises(Refused, match="no image named 'x'"):
        catalog.forget(home, "x")
