"""Paths of `cp`, and archives that are unpacked where they should be and nowhere else."""

import io
import os
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainmaster.cli.copying import packing
from trainmaster.cli.cp import packed, split, unpacked
from trainmaster.cli.main import cli
from trainmaster.cli.output import Told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("mnist/worker-0:/a/b", ("mnist/worker-0", "/a/b"), id="in a replica"),
        pytest.param("mnist:model.pt", ("mnist", "model.pt"), id="in the replica that leads"),
        pytest.param("mnist:", ("mnist", "."), id="its working directory"),
        pytest.param("model.pt", ("", "model.pt"), id="here"),
        pytest.param("./a:b", ("", "./a:b"), id="here, with a colon"),
        pytest.param("/a:b", ("", "/a:b"), id="here, a whole path with a colon"),
    ],
)
def test_where_a_path_is(text: str, expected: tuple[str, str]) -> None:
    assert expected == split(text)


@pytest.mark.parametrize(("path", "expected"), [
    pytest.param("/a/b", ["/a", "--", "b"], id="under its own name"),
    pytest.param("model.pt", [".", "--", "model.pt"], id="in the working directory"),
    pytest.param(".", [".", "--", "."], id="the working directory: what is in it"),
    pytest.param("-x", [".", "--", "-x"], id="a name like an option"),
])
def test_what_is_packed(path: str, expected: list[str]) -> None:
    assert ["tar", "cf", "-", "-C", *expected] == packing(path)


def test_what_is_in_a_folder_is_put_into_the_one_that_is_named(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "result").write_text("1")
        tar.add(tmp_path / "there", arcname=".")
    (tmp_path / "here").mkdir()

    for target in (tmp_path / "here", tmp_path / "new"):
        with (tmp_path / "x.tar").open("rb") as archive:
            assert target == unpacked(archive, "", target)
        assert "1" == (target / "result").read_text()


def archive_of(path: Path, name: str) -> io.BytesIO:
    made = io.BytesIO()
    packed(made, path, name)
    return made


def test_a_file_gets_its_name_in_a_folder_and_another_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello")
    (tmp_path / "there").mkdir()

    assert tmp_path / "there" / "b" == unpacked(archive_of(tmp_path / "a", "b"), "b", tmp_path / "there")
    assert tmp_path / "c" == unpacked(archive_of(tmp_path / "a", "b"), "b", tmp_path / "c")
    assert ["hello", "hello"] == [(tmp_path / name).read_text() for name in ("there/b", "c")]
    assert ["a", "c", "there"] == sorted(each.name for each in tmp_path.iterdir())


def test_a_folder_is_joined_with_the_one_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "a" / "in").mkdir(parents=True)
    (tmp_path / "a" / "in" / "x").write_text("new")
    (tmp_path / "to" / "a" / "in").mkdir(parents=True)
    (tmp_path / "to" / "a" / "in" / "y").write_text("old")
    unpacked(archive_of(tmp_path / "a", "a"), "a", tmp_path / "to")

    assert ["x", "y"] == sorted(each.name for each in (tmp_path / "to" / "a" / "in").iterdir())


@pytest.mark.parametrize(
    "member",
    [
        pytest.param("../outside", id="above the folder"),
        pytest.param("/etc/outside", id="anywhere"),
    ],
)
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, member: str) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        info = tarfile.TarInfo(member)
        tar.addfile(info, io.BytesIO())
    (tmp_path / "here").mkdir()
    with pytest.raises(Told):
        unpacked(made, "outside", tmp_path / "here")

    assert [] == list((tmp_path / "here").iterdir())
    assert ["here"] == [each.name for each in tmp_path.iterdir()]


def test_a_file_is_sent_without_its_owner(tmp_path: Path) -> None:
    """Who is root in a replica may not make files of a user that is not there."""
    (tmp_path / "data").write_text("1")
    os.chown(tmp_path / "data", *((65432, 65432) if os.geteuid() == 0 else (-1, -1)))
    archive = io.BytesIO()
    packed(archive, tmp_path / "data", "data")
    with tarfile.open(fileobj=archive) as tar:
        (member,) = tar.getmembers()

    assert (0, 0, "", "") == (member.uid, member.gid, member.uname, member.gname)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(["cp", "a", "b"], "One of the two must be in a replica", id="both are here"),
        pytest.param(["cp", "j:a", "j:b"], "One of the two must be in a replica", id="both are there"),
        pytest.param(["cp", "/no/such", "j:b"], "/no/such: No such file", id="the file is not here"),
        pytest.param(["exec", "j"], "say what to run, after --", id="nothing to run"),
        pytest.param(["exec", "j", "ls"], "What to run comes after --", id="a command without the dashes"),
        pytest.param(["exec", "j", "ls", "-l"], "What to run comes after --", id="one with a flag of its own"),
    ],
)
def test_what_is_wrong_is_said_before_a_cluster_is_asked(words: list[str], sentence: str) -> None:
    shown = CliRunner().invoke(cli, words, env={"TRAINMASTER_HOME": "/nowhere", "KUBECONFIG": "", "HOME": "/nowhere"})

    assert (2, True) == (shown.exit_code, sentence in shown.output), shown.output
