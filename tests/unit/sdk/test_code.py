"""Code on its way to a launch: what is sent, what is started, and how it is known."""

from pathlib import Path

import pytest

from trainmaster.sdk import code
from trainmaster.sdk.code import Code, How
from trainmaster.sdk.parcels import ScriptError

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
    launch = code.launched(SENT, how, output="/out")

    assert ("mine", "pytorch", 3, ["1", "two"], {"A": "1"}, "/out") == (
        launch.name, launch.framework, launch.workers, launch.arguments, launch.environment, launch.output)
    with pytest.raises(ScriptError, match="framework='abacus': choose one of pytorch, "):
        code.launched(SENT, {"framework": "abacus"})
