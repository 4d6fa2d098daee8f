"""Which targets are scripts, what is read of them, what is left at the end."""

from pathlib import Path

import pytest

from trainmaster.cli import run, scripts
from trainmaster.cli.scripts import Options
from trainmaster.sdk.launches import PROFILES
from trainmaster.sdk.parcels import ScriptError


def write(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("apiVersion: v1\nkind: Pod\n" if name.endswith(".yaml") else "import torch\n")
    return root


@pytest.mark.parametrize(("there", "target", "options", "is_script"), [
    pytest.param(["train.py"], "train.py", Options(), True, id="a Python file"),
    pytest.param(["job.yaml"], "job.yaml", Options(), False, id="not a manifest"),
    pytest.param(["p/train.py"], "p", Options(), True, id="a folder of code"),
    pytest.param(["p/train.py", "p/job.yaml"], "p", Options(), False, id="not a folder with manifests"),
    pytest.param(["p/train.py", "p/job.yaml"], "p", Options(workers=2), True, id="unless it is said how to run it"),
    pytest.param(["p/readme.txt"], "p", Options(), False, id="not a folder with neither"),
])
def test_what_is_a_script(tmp_path: Path, there: list[str], target: str, options: Options, is_script: bool) -> None:
    write(tmp_path, *there)

    assert is_script == (scripts.meant([str(tmp_path / target)], options) is not None)


@pytest.mark.parametrize(("targets", "options", "sentence"), [
    pytest.param(["a.py", "b.yaml"], Options(), "one script .* at a time", id="a script with something else"),
    pytest.param(["b.yaml"], Options(workers=3), "^--workers: is for scripts", id="an option with a manifest"),
    pytest.param(["b.yaml"], Options(arguments=("x",)), "^arguments after --: is for", id="arguments with a manifest"),
])
def test_mixtures_are_refused(targets: list[str], options: Options, sentence: str) -> None:
    with pytest.raises(ScriptError, match=sentence):
        scripts.meant(targets, options)


def test_a_name_that_is_nearly_that_of_a_script_is_answered_with_it(tmp_path: Path) -> None:
    folder = write(tmp_path, "train.py", "other.py")

    with pytest.raises(ScriptError, match=r"trian\.py: No such file or directory\. Did you mean .*/train\.py\?"):
        scripts.meant([str(folder / "trian.py")], Options())


def test_that_code_beside_manifests_is_passed_over_is_said(tmp_path: Path) -> None:
    folder = write(tmp_path, "a.py", "train.py", "job.yaml")

    said = scripts.passed_over([str(folder), str(folder / "job.yaml")])

    assert 1 == len(said)
    assert f"{folder} has manifests and code (train.py, a.py): runs the manifests; " in said[0]
    assert said[0].endswith(f"name it: trainmaster run {folder}/train.py")


@pytest.mark.parametrize(("name", "would_do"), [
    pytest.param("Bad_Name", "bad-name", id="capitals and underscores"),
    pytest.param("9lives", "job-9lives", id="a digit first"),
    pytest.param("a" * 60, "a" * 40, id="more letters than a pod's name has room for"),
])
def test_a_name_that_cannot_be_is_refused_with_one_that_can(tmp_path: Path, name: str, would_do: str) -> None:
    file = write(tmp_path, "train.py") / "train.py"

    with pytest.raises(ScriptError, match=rf"^--name {name}: a job's name has .*; {would_do} would do\.$"):
        scripts.read(file, Options(name=name), {})


@pytest.mark.parametrize(("there", "first"), [
    pytest.param(["train.py", "other.py"], "train.py", id="train.py"),
    pytest.param(["train.py", "main.py"], "main.py", id="main.py before it"),
    pytest.param(["only.py"], "only.py", id="the only one"),
])
def test_a_folder_is_started_by(tmp_path: Path, there: list[str], first: str) -> None:
    assert first == scripts.read(write(tmp_path, *there), Options(), {}).launch.script


def test_a_folder_in_which_none_is_the_first_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"which of its scripts is to run \(a.py, b.py\)\? Call it main.py or train"):
        scripts.read(write(tmp_path, "a.py", "b.py"), Options(), {})


def test_a_guess_is_said_aloud_and_a_choice_is_not(tmp_path: Path) -> None:
    file = write(tmp_path, "train.py") / "train.py"

    assert "train.py imports torch: runs as a PyTorchJob (--framework says otherwise)" == scripts.read(
        file, Options(), {}).said[-1]
    assert 1 == len(scripts.read(file, Options(framework="jax"), {}).said)


def test_variables_are_given_or_taken_from_here(tmp_path: Path) -> None:
    file = write(tmp_path, "train.py") / "train.py"
    read = scripts.read(file, Options(environment=("A=1", "B")), {"B": "2", "C": "3"})

    assert {"A": "1", "B": "2"} == read.launch.environment
    with pytest.raises(ScriptError, match="--env D: write NAME=VALUE"):
        scripts.read(file, Options(environment=("D",)), {})


@pytest.mark.parametrize(("options", "embedded", "sentence"), [
    pytest.param(Options(servers=1), True, "^--ps: jobs of pytorch have no parameter servers", id="no servers"),
    pytest.param(Options(requirements="no.txt"), True, "^--requirements: no.txt: No such file", id="no list"),
    pytest.param(Options(output="/dev/null/x"), True, "^--output /dev/null/x: Not a directory", id="no folder"),
    pytest.param(Options(), False, "^--image: is needed on a cluster that is not", id="elsewhere without an image"),
    pytest.param(Options(image="x", output="y"), False, "^--output: working directories can be", id="output elsewhere"),
])
def test_what_cannot_be_is_told_of_the_option_as_it_is_typed(
        tmp_path: Path, options: Options, embedded: bool, sentence: str) -> None:
    with pytest.raises(ScriptError, match=sentence):
        scripts.read(write(tmp_path, "train.py") / "train.py", options, {}, embedded=embedded).manifests()


def test_code_is_not_output(tmp_path: Path) -> None:
    code, out = write(tmp_path / "code", "train.py", "deep/x.py"), tmp_path / "out"
    read = scripts.read(code, Options(output=str(out)), {})
    write(out / "worker-0", "train.py", "deep/x.py", "__pycache__/x.pyc", "model.bin")
    (out / "worker-0" / "deep" / "x.py").write_text("changed")

    assert [f"What they wrote is in {out}: worker-0."] == read.left()
    assert {"deep", "model.bin"} == {path.name for path in (out / "worker-0").iterdir()}


def test_the_command_offers_every_framework() -> None:
    """The list is written twice, so that `--help` need not load the first."""
    assert set(PROFILES) == set(run.FRAMEWORKS)
