"""Archives become root file systems: layers over each other, links within the image, and never a file outside of it."""

import io
import json
import os
import stat
import tarfile
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet import imageroots
from trainmaster.cluster.kubelet.imageroots import BadArchive

File = tuple[str, str]      # name, and text; "-> x" is a symbolic link, "=> x" a hard one, "/" a directory


def tar(path: Path | None, *files: File) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, text in files:
            member = tarfile.TarInfo(name)
            member.mode = 0o755
            kind, _, target = text.partition(" ")
            if text == "/":
                member.type = tarfile.DIRTYPE
            elif kind in ("->", "=>"):
                member.type, member.linkname = (tarfile.SYMTYPE if kind == "->" else tarfile.LNKTYPE), target
            data = text.encode() if member.isreg() else b""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    if path is not None:
        path.write_bytes(made.getvalue())
    return made.getvalue()


def oci(path: Path, config: dict[str, object], *layers: bytes) -> None:
    """An OCI archive, with the names that a real one has."""
    blobs: dict[str, bytes] = {}

    def blob(number: int, data: bytes) -> dict[str, str]:
        name = f"sha256:{number:064x}"
        blobs["blobs/" + name.replace(":", "/")] = data
        return {"digest": name}

    parts = [blob(number, layer) for number, layer in enumerate(layers, 10)]
    manifest = {"config": blob(1, json.dumps({"config": config}).encode()), "layers": parts}
    index = {"manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json",
                            **blob(2, json.dumps(manifest).encode())}]}
    with tarfile.open(path, "w") as archive:
        for name, data in {"oci-layout": b"{}", "index.json": json.dumps(index).encode(), **blobs}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_an_oci_archive_gives_its_files_and_how_to_run_it(tmp_path: Path) -> None:
    config: dict[str, object] = {
        "Entrypoint": ["/bin/run"], "Cmd": ["--all"], "Env": ["A=1", "B=x=y"], "WorkingDir": "/work", "User": "7:8",
    }
    oci(tmp_path / "x.tar", config, tar(None, ("bin", "/"), ("bin/run", "one")), tar(None, ("bin/run", "two")))

    found = imageroots.unpack(tmp_path / "x.tar", tmp_path / "root")

    assert imageroots.Config(("/bin/run",), ("--all",), {"A": "1", "B": "x=y"}, "/work", "7:8") == found
    assert "two" == (tmp_path / "root" / "bin" / "run").read_text(), "a later layer covers an earlier one"


def test_what_docker_saves_is_read_too(tmp_path: Path) -> None:
    layer = tar(None, ("etc/x", "y"))
    manifest = json.dumps([{"Config": "c.json", "Layers": ["layer.tar"]}])
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name, data in (("manifest.json", manifest.encode()), ("c.json", b"{}"), ("layer.tar", layer)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))

    assert imageroots.Config() == imageroots.unpack(tmp_path / "x.tar", tmp_path / "root")
    assert "y" == (tmp_path / "root" / "etc" / "x").read_text()


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param([[("a/b", "1"), ("a/c", "2")], [("a/.wh.b", "")]], {"a/c": "2"},
                     id="a later layer takes one away"),
        pytest.param([[("a/b", "1")], [("a/.wh..wh..opq", ""), ("a/d", "3")]], {"a/d": "3"},
                     id="or all that was in a directory"),
        pytest.param([[("a/b", "1")], [("a", "2")]], {"a": "2"}, id="a file takes the place of a directory"),
        pytest.param([[("a", "1")], [("a", "/"), ("a/b", "2")]], {"a/b": "2"}, id="and a directory that of a file"),
        pytest.param([[("run", "/"), ("var/run", "-> /run"), ("var/run/x", "1")]], {"run/x": "1"},
                     id="an absolute link is one within the image"),
        pytest.param([[("a", "1"), ("b", "=> a")]], {"a": "1", "b": "1"}, id="hard links are kept"),
        pytest.param([[("../out", "1")]], {"out": "1"}, id="nothing leads above the image's root"),
        pytest.param([[("x", "-> ../../.."), ("x/y/out", "1")]], {"y/out": "1"}, id="no link does either"),
        pytest.param([[("/etc/x", "1")]], {"etc/x": "1"}, id="absolute names are the image's"),
    ],
)
def test_layers(layers: list[list[File]], expected: dict[str, str], tmp_path: Path) -> None:
    oci(tmp_path / "x.tar", {}, *(tar(None, *layer) for layer in layers))

    imageroots.unpack(tmp_path / "x.tar", tmp_path / "root")

    root = tmp_path / "root"
    found = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*")
             if path.is_file() and not path.is_symlink()}
    assert expected == found
    assert {"x.tar", "root"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("files", [
    pytest.param([("d", "/"), ("d", "-> {outside}")], id="a directory that becomes a link"),
    pytest.param([("a/d", "/"), ("a", "-> {parent}"), ("b", "x")], id="or one above it"),
])
def test_no_rights_are_changed_outside_of_the_image(files: list[File], tmp_path: Path) -> None:
    """The rights of directories come last; by then another member may have put a link in their place."""
    outside = tmp_path / "elsewhere" / "d"
    outside.mkdir(parents=True)
    outside.chmod(0o700)
    tar(tmp_path / "x.tar", *((name, text.format(outside=outside, parent=outside.parent)) for name, text in files))

    imageroots.unpack(tmp_path / "x.tar", tmp_path / "root")

    assert 0o700 == outside.stat().st_mode & 0o777


def test_folders_that_are_only_implied_are_for_all(tmp_path: Path) -> None:
    tar(tmp_path / "x.tar", ("opt/deep/file", "x"))
    before = os.umask(0o077)
    try:
        imageroots.unpack(tmp_path / "x.tar", tmp_path / "root")
        assert 0o077 == os.umask(0o077), "and the umask is what it was"
    finally:
        os.umask(before)

    assert [0o755] * 3 == [stat.S_IMODE((tmp_path / "root" / path).stat().st_mode) for path in ("", "opt", "opt/deep")]


def test_a_hard_link_to_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of this machine")
    tar(tmp_path / "x.tar", ("link", f"-> {tmp_path / 'secret'}"), ("bin/copy", "=> link"))

    imageroots.unpack(tmp_path / "x.tar", tmp_path / "root")

    assert (tmp_path / "root" / "bin" / "copy").is_symlink()


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    tar(tmp_path / "x.tar", ("a", "-> b"), ("b", "-> a"), ("a/c", "1"))

    with pytest.raises(BadArchive, match="leads to itself"):
        imageroots.unpack(tmp_path / "x.tar", tmp_path / "root")


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_text("hello")

    with pytest.raises(BadArchive, match=r"x\.tar is not an archive"):
        imageroots.unpack(tmp_path / "x.tar", tmp_path / "root")


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param("", (0, 0), id="nobody named is root"),
        pytest.param("7", (7, 0), id="a number that nobody has"),
        pytest.param("7:8", (7, 8), id="two numbers"),
        pytest.param("app", (1000, 1001), id="a name, with its group"),
        pytest.param("1000", (1000, 1001), id="a number that somebody has"),
        pytest.param("app:staff", (1000, 50), id="a name and a group"),
    ],
)
def test_users(user: str, expected: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\napp:x:1000:1001::/:/bin/sh\n")
    (tmp_path / "etc" / "group").write_text("staff:x:50:\n")

    assert expected == imageroots.user_of(tmp_path, user)


def test_a_user_that_the_image_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArchive, match="runs as 'app'"):
        imageroots.user_of(tmp_path, "app")
