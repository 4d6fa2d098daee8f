"""Lists of packages that become environments."""

from pathlib import Path

import pytest

from trainmaster.cluster.kubelet.catalog import Entry, known
from trainmaster.cluster.kubelet.images import ImageError
from trainmaster.cluster.kubelet.pythons import Packages
from trainmaster.local import catalog
from trainmaster.local.catalog import Wish
from trainmaster.local.home import Home
from trainmaster.local.recipes import WithRecipes, document
from trainmaster.sdk.requirements import PREFIX, Recipe, written


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.make()
    return made


def entry_of(home: Home, requirements: str, image: str) -> Entry:
    return document(home, written(home.path, Recipe(image, requirements))).images[0]


def packages_of(home: Home, requirements: str, image: str) -> Packages:
    """By which an environment is known."""
    found = known([document(home, written(home.path, Recipe(image, requirements)))])
    (entry,) = found.entries.values()
    return found.packages(entry)


@pytest.mark.parametrize("options", [pytest.param("", id="plain packages"), pytest.param("--pre\n", id="with options")])
def test_the_same_list_is_the_same_environment_and_another_is_another(home: Home, options: str) -> None:
    one = packages_of(home, f"{options}tqdm==4.67", "python")

    assert one == packages_of(home, f"{options}tqdm==4.67", "python:3.11")
    assert one != packages_of(home, f"{options}tqdm==4.66", "python")
    assert one != packages_of(home, f"{options}tqdm==4.67", "tensorflow/tensorflow")


def test_plain_packages_are_told_by_name(home: Home) -> None:
    assert ("tqdm==4.67",) == entry_of(home, "# what we need\ntqdm==4.67  # bars\n", "python").packages


def test_options_of_pip_stay_in_the_list(home: Home) -> None:
    entry = entry_of(home, "--pre\ntqdm", "tensorflow/tensorflow")

    assert "tensorflow" == entry.python
    assert "-r" == entry.packages[-2]
    assert "--pre\ntqdm\n" == Path(entry.packages[-1]).read_text()


def test_packages_go_on_top_of_an_image_of_ones_own(home: Home) -> None:
    catalog.add(home, Wish("mine/net", python="jax", requirements=("flax",), environment={"A": "1"}))
    entry = entry_of(home, "tqdm", "mine/net:2")

    assert ("jax", ("flax", "tqdm"), {"A": "1"}) == (entry.python, entry.packages, entry.environment)


async def test_what_cannot_be_made_is_said(home: Home, tmp_path: Path) -> None:
    images = WithRecipes(home, None)  # type: ignore[arg-type]  # never asked
    with pytest.raises(ImageError, match="Run the script with --requirements here"):
        await images.prepare(f"{PREFIX}0123", print)
    (tmp_path / "root" / "bin").mkdir(parents=True)
    catalog.add(home, Wish("mine/root", rootfs=tmp_path / "root"))
    with pytest.raises(ImageError, match="image 'mine/root' has a root file system of its own, to which no packages"):
        await images.prepare(written(home.path, Recipe("mine/root", "tqdm")), print)
