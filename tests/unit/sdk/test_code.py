"""Code on its way to a launch: what is sent, what is started, and how it is known."""

from pathlib import Path

import pytest

from trainmaster.sdk import code, requirements
from trainmaster.sdk.code import Code, How
from trainmaster.sdk.launches import REQUIREMENTS
from trainmaster.sdk.parcels import BadOption, ScriptError
from trainmaster.sdk.requirements import Recipe

MANIFEST = "apiVersion: v1\nkind: Pod\n"
SENT = Code("train.py", "train.py", "train.py", {"train.py": b"import jax"}, ["jax"])


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text(MANIFEST if name.endswith(".yaml") else "import torch\n")
    return folder


@pytest.mark.parametrize(("there", "told", "expected"), [
    pytest.param(["train.py"], False, True, id="a folder of code"),
    pytest.param(["train.py", "job.yaml"], False, False, id="not one of manifests"),
    pytest.param(["train.py", "job.yaml"], True, True, id="unless it is told how to run it"),
    pytest.param(["readme.txt"], True, False, id="not one of neither"),
])
def test_what_is_code(tmp_path: Path, there: list[str], told: bool, expected: bool) -> None:
    assert expected is code.is_code(write(tmp_path, *there), told=told)


def test_a_folder_is_sent_whole_and_started_by_its_main_script(tmp_path: Path) -> None:
    found = code.of_path(write(tmp_path, "main.py", "train.py", "notes.txt"), {"more": b"x"})

    assert ("main.py", "pytorch") == (found.script, found.framework)
    assert {"main.py", "train.py", "notes.txt", "more"} == found.files.keys()


def learns(rate: float = 1.0) -> None:
    import math  # what it needs is imported inside

    print(math.sqrt(rate))


def test_a_function_becomes_a_script_that_calls_it() -> None:
    found = code.of_function(learns, {"rate": 0.5})

    assert ("learns", "function.py", ["math", "json"]) == (found.name, found.script, found.imports)
    assert b"learns(**json.loads('{\"rate\": 0.5}'))" in found.files["function.py"]
    with pytest.raises(ScriptError, match="The function cannot be sent: got an unexpected keyword argument"):
        code.of_function(learns, {"speed": 1})


def test_what_is_not_said_has_a_default() -> None:
    launch = code.launched(SENT, {})

    assert ("train", "jax", 1, 0, 0) == (launch.name, launch.framework, launch.workers, launch.servers, launch.gpus)


def test_what_is_said_counts() -> None:
    how: How = {"name": "mine", "framework": "pytorch", "workers": 3, "args": [1, "two"], "env": {"A": "1"}}  # type: ignore[list-item]
    launch = code.launched(SENT, how)

    assert ("mine", "pytorch", 3, ["1", "two"], {"A": "1"}) == (
        launch.name, launch.framework, launch.workers, launch.arguments, launch.environment)


@pytest.mark.parametrize(("how", "sentence"), [
    pytest.param({"framework": "abacus"}, "^framework='abacus': choose one of pytorch, ", id="no framework"),
    pytest.param({"name": "Mine"}, "^name='Mine': a job's name has .*; mine would do.", id="no name"),
    pytest.param({"workers": 0}, "^workers='0': a job has at least one.", id="nobody"),
])
def test_what_cannot_be_is_refused(how: How, sentence: str) -> None:
    with pytest.raises(BadOption, match=sentence):
        code.launched(SENT, how)


@pytest.mark.parametrize("what", [pytest.param("script", id="a script"), pytest.param("function", id="a function")])
def test_packages_are_an_image_of_the_embedded_cluster_and_the_pods_own_matter_elsewhere(
        tmp_path: Path, what: str) -> None:
    target = learns if what == "function" else write(tmp_path, "train.py") / "train.py"
    (tmp_path / "needs.txt").write_text("tqdm\n")
    home = tmp_path / "home"

    sent, launch = code.planned(target, {"requirements": tmp_path / "needs.txt", "framework": "jax"}, home)
    assert Recipe("trainmaster.dev/jax", "tqdm") == requirements.read(home, launch.image)
    assert REQUIREMENTS not in sent.files
    _, same = code.planned(target, {"requirements": ["tqdm"], "framework": "jax"}, home)
    assert same.image == launch.image
    sent, launch = code.planned(target, {"requirements": ["tqdm"], "image": "mine"}, None)
    assert (b"tqdm", "mine") == (sent.files[REQUIREMENTS], launch.image)


def test_output_is_a_folder_of_this_machine(tmp_path: Path) -> None:
    _, launch = code.planned(learns, {"output": tmp_path / "deep" / "out"}, tmp_path / "home")

    assert str((tmp_path / "deep" / "out").resolve()) == launch.output
    assert (tmp_path / "deep" / "out").is_dir()


@pytest.mark.parametrize(("how", "embedded", "sentence"), [
    pytest.param({}, False, "^image: is needed on a cluster that is not the embedded one", id="no image elsewhere"),
    pytest.param({"image": "x", "output": "out"}, False, "^output: working directories can be kept on this machine by "
                 "the embedded cluster only", id="output elsewhere"),
    pytest.param({"output": "/dev/null/out"}, True, "^output='/dev/null/out': Not a directory.", id="no folder"),
    pytest.param({"requirements": "no.txt"}, True, "^requirements: no.txt: No such file", id="no list"),
    pytest.param({"requirements": ["-e ."]}, True, "^requirements: the list, line 1: '-e .' is a folder of yours",
                 id="a folder in the list"),
])
def test_what_a_cluster_cannot_do_is_refused(tmp_path: Path, how: How, embedded: bool, sentence: str) -> None:
    with pytest.raises(BadOption, match=sentence):
        code.planned(learns, how, tmp_path if embedded else None)
