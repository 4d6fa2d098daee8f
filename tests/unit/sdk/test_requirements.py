"""Lists of packages that code needs: as they are read, and as they are left for the node."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from trainmaster.sdk import requirements
from trainmaster.sdk.requirements import PREFIX, BadRequirements, Recipe, text_of, written


def test_lists_that_name_others_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n-r b.txt\nthree # as it is\n")
    (tmp_path / "b.txt").write_text("two --hash=sha256:abc\n")

    assert "one\ntwo --hash=sha256:abc\nthree # as it is" == text_of(tmp_path / "a.txt")
    assert "zero\none\ntwo --hash=sha256:abc\nthree # as it is" == text_of(["zero", f"-r {tmp_path / 'a.txt'}"])


@pytest.mark.parametrize(("text", "sentence"), [
    pytest.param("-e .", r"a\.txt, line 1: '-e .' is a folder of yours", id="a folder"),
    pytest.param("-r a.txt", "in a circle", id="itself"),
    pytest.param("-r none.txt", "none.txt: No such file", id="one that is not there"),
])
def test_files_that_cannot_be_used(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "a.txt").write_text(text)

    with pytest.raises(BadRequirements, match=sentence):
        text_of(tmp_path / "a.txt")


@pytest.mark.parametrize(("lines", "sentence"), [
    pytest.param(["tqdm", "-e ."], "^the list, line 2: '-e .' is a folder of yours", id="a folder"),
    pytest.param(["-r none.txt"], "^none.txt: No such file", id="a file that is not there"),
])
def test_lines_that_cannot_be_used(lines: Sequence[str], sentence: str) -> None:
    with pytest.raises(BadRequirements, match=sentence):
        text_of(lines)


def test_what_was_written_is_found_by_its_name_and_is_nobody_elses(tmp_path: Path) -> None:
    home, recipe = tmp_path / "new" / "home", Recipe("python", "tqdm==4.67")
    name = written(home, recipe)

    assert name == written(home, recipe)      # the same is the same
    assert 3 == len({name, written(home, Recipe("python", "tqdm==4.66")), written(home, Recipe("jax", "tqdm==4.67"))})
    assert recipe == requirements.read(home, name)
    assert requirements.read(home, f"{PREFIX}0123") is None
    assert {0o700} == {path.stat().st_mode & 0o777 for path in (home, home / "recipes")}
    assert 3 == len(list((home / "recipes").iterdir()))      # nothing is left of the writing
