"""Files that are there whole or not at all."""

import os
from pathlib import Path

import pytest

from trainmaster.local import files


@pytest.mark.parametrize("before", [
    pytest.param({}, id="nothing was there"),
    pytest.param({"config": b"old and longer"}, id="another one was there, which others might read"),
    pytest.param({"config.new": b"ha"}, id="a writer was stopped half-way"),
])
def test_a_file_has_the_new_content_and_is_for_its_owner_alone(tmp_path: Path, before: dict[str, bytes]) -> None:
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o644)

    files.write(tmp_path / "config", b"new")

    assert {"config": (b"new", 0o100600)} == {
        each.name: (each.read_bytes(), each.stat().st_mode) for each in tmp_path.iterdir()}


def test_who_has_the_old_one_open_goes_on_reading_it(tmp_path: Path) -> None:
    (tmp_path / "config").write_bytes(b"old")
    with (tmp_path / "config").open("rb") as reader:
        files.write(tmp_path / "config", b"new")

        assert b"old" == reader.read()


def test_nothing_is_written_through_a_link_that_somebody_left(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"theirs")
    os.symlink("other", tmp_path / "config.new")  # noqa: PTH211  the target is relative to the link

    files.write(tmp_path / "config", b"new")

    assert (b"theirs", b"new") == ((tmp_path / "other").read_bytes(), (tmp_path / "config").read_bytes())
