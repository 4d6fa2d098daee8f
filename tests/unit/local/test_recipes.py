"""Lists of packages that become environments."""

from pathlib import Path

import pytest

from trainmaster.cluster.kubelet.catalog import read
from trainmaster.cluster.kubelet.images import ImageError
from trainmaster.local.home import Home
from trainmaster.local.recipes import PREFIX, BadRequirements, WithRecipes, text_of, written


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.make()
    return made


def test_the_same_list_is_the_same_environment_and_another_is_another(home: Home) -> None:
    one = written(home, "tqdm==4.67", "python")

    assert one == written(home, "tqdm==4.67", "python:3.11")
    assert one != written(home, "tqdm==4.66", "python")
    assert one != written(home, "tqdm==4.67", "tensorflow/tensorflow")


def test_plain_packages_are_told_by_name(home: Home) -> None:
    name = written(home, "# what we need\ntqdm==4.67  # bars\n", "python")
    (entry,) = read((home.path / "recipes" / f"{name.removeprefix(PREFIX)}.yaml").read_text()).images

    assert ("tqdm==4.67",) == entry.packages


def test_options_of_pip_stay_in_the_list(home: Home) -> None:
    name = written(home, "--pre\ntqdm", "tensorflow/tensorflow")
    (entry,) = read((home.path / "recipes" / f"{name.removeprefix(PREFIX)}.yaml").read_text()).images

    assert "tensorflow" == entry.python
    assert "-r" == entry.packages[-2]
    assert "--pre\ntqdm\n" == Path(entry.packages[-1]).read_text()


def test_lists_that_name_others_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n-r b.txt\nthree # as it is\n")
    (tmp_path / "b.txt").write_text("two --hash=sha256:abc\n")

    assert "one\ntwo --hash=sha256:abc\nthree # as it is" == text_of(tmp_path / "a.txt")


@pytest.mark.parametrize(("text", "sentence"), [
    pytest.param("-e .", "line 1: '-e .' is a folder of yours", id="a folder"),
    pytest.param("-r a.txt", "in a circle", id="itself"),
    pytest.param("-r none.txt", "none.txt: No such file", id="one that is not there"),
])
def test_what_cannot_be_used(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "a.txt").write_text(text)

    with pytest.raises(BadRequirements, match=sentence):
        text_of(tmp_path / "a.txt")


async def test_a_name_that_was_not_written_here_is_said_to_be_none(home: Home) -> None:
    with pytest.raises(ImageError, match="Run the script with --requirements here"):
        await WithRecipes(home, None).prepare(f"{PREFIX}0123", print)  # type: ignore[arg-type]  # never asked
