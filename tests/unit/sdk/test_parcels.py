"""What is sent of a folder or a script, and how."""

import base64
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.sdk import launches, parcels
from trainmaster.sdk.parcels import ScriptError


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(("files", "sent"), [
    pytest.param({"train.py": "", "data/a.csv": ""}, {"train.py", "data/a.csv"}, id="everything, as it is"),
    pytest.param({"train.py": "", ".gitignore": "*.csv\n", "a.csv": ""}, {"train.py", ".gitignore"},
                 id="but what .gitignore names"),
    pytest.param({"train.py": "", ".gitignore": "data/\n", "data/a.csv": "", "more/data/b.csv": ""},
                 {"train.py", ".gitignore"}, id="a folder that it names, wherever it is"),
    pytest.param({"train.py": "", ".gitignore": "*.csv\n", "keep/.gitignore": "!*.csv\n", "keep/a.csv": "",
                  "b.csv": ""}, {"train.py", ".gitignore", "keep/.gitignore", "keep/a.csv"},
                 id="an inner .gitignore knows better"),
    pytest.param({"train.py": "", "a/.gitignore": "x\n", "b/x": "", "a/x": ""}, {"train.py", "a/.gitignore", "b/x"},
                 id="and says nothing about its neighbours"),
    pytest.param({"train.py": "", ".git/HEAD": "", "__pycache__/t.pyc": "", "env/pyvenv.cfg": "", "env/lib/x.py": ""},
                 {"train.py"}, id="never repositories, caches and virtual environments"),
])
def test_of_a_folder(tmp_path: Path, files: dict[str, str], sent: set[str]) -> None:
    assert sent == set(parcels.of_folder(write(tmp_path, files)))


@pytest.mark.parametrize(("files", "sent"), [
    pytest.param({"train.py": "import os", "other.py": "", "big.bin": ""}, {"train.py"}, id="alone if that will do"),
    pytest.param({"train.py": "import helper", "helper.py": "from deep import x", "deep.py": "import train"},
                 {"train.py", "helper.py", "deep.py"}, id="with what it imports, and what that imports"),
    pytest.param({"train.py": "def f():\n    from models.net import Net", "models/net.py": "", "models/w.json": ""},
                 {"train.py", "models/net.py", "models/w.json"}, id="with whole packages, data too"),
    pytest.param({"train.py": "import torch", "torch": ""}, {"train.py"}, id="what is installed stays there"),
])
def test_of_a_script(tmp_path: Path, files: dict[str, str], sent: set[str]) -> None:
    assert sent == set(parcels.of_script(write(tmp_path, files) / "train.py"))


def test_rules_of_the_repository_above_hold_too(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", ".gitignore": "*.csv\n", "job/train.py": "", "job/a.csv": ""})

    assert {"train.py"} == set(parcels.of_folder(tmp_path / "job"))


def test_the_same_content_is_the_same_parcel_and_comes_back_whole(tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacked by the program that pods run."""
    monkeypatch.setattr(parcels, "PART", 1000)
    files = {"train.py": b"print(1)", "a/deep/data.bin": bytes(range(256)) * 8000, "empty": b"", "zwölf\n": b"1 1\nxy"}
    one = parcels.packed(files, "x")
    code, work = tmp_path / "code", tmp_path / "work"
    code.mkdir()
    work.mkdir()
    for part in parcels.config_maps(one, "mnist"):
        for name, value in part["binaryData"].items():
            (code / name).write_bytes(base64.b64decode(value))
    unpack = [sys.executable, "-I", "-S", "-c", launches.UNPACK.replace(launches.CODE, str(code)), "true"]
    subprocess.run(unpack, cwd=work, check=True)

    assert one.digest == parcels.packed(dict(reversed(files.items())), "x").digest
    assert one.digest != parcels.packed({**files, "train.py": b"print(2)"}, "x").digest
    assert len(list(code.iterdir())) > 2
    assert files == {str(path.relative_to(work)): path.read_bytes() for path in work.rglob("*") if path.is_file()}


def test_parts_fit_into_config_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "PART", 100)
    made = parcels.config_maps(parcels.packed({"a": bytes(range(256))}, "x"), "mnist")

    assert len(made) > 2
    assert all(len(base64.b64decode(data)) <= 100 for part in made for data in part["binaryData"].values())
    assert len(made) == len({part["metadata"]["name"] for part in made})


@pytest.mark.parametrize(("limit", "value", "sentence"), [
    pytest.param("MOST_FILES", 1, "more than 1 files", id="too many files"),
    pytest.param("MOST_BYTES", 1 << 20, "more than 1 MB", id="too many bytes"),
])
def test_what_is_too_much_is_said_with_the_largest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str,
                                                   value: int, sentence: str) -> None:
    monkeypatch.setattr(parcels, limit, value)
    write(tmp_path, {"a.py": "x", "data.bin": "y" * (2 << 20)})

    with pytest.raises(ScriptError, match=rf"{sentence}, .* data.bin \(2.0 MB\).* .gitignore"):
        parcels.of_folder(tmp_path)


def test_what_does_not_pack_small_enough_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "MOST_PACKED", 10)

    with pytest.raises(ScriptError, match=r"^job: its code is .* when packed"):
        parcels.packed({"a.py": b"x"}, "job")


def test_a_script_that_is_not_python_is_refused_with_its_line() -> None:
    with pytest.raises(ScriptError, match=r"^train\.py, line 2: is not Python"):
        parcels.imports("import os\nprint 'x'\n", "train.py")
