"""`trainmaster validate`, and what `apply` and `run` say about the same mistakes: file, line, field, remedy."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.cli.conftest import Shell
from tests.unit.cli.mistakes import GOOD, Mistake, mistakes, oversights

from trainmaster.cli.validate import command
from trainmaster.local.validate import Validator, validating

each_mistake = pytest.mark.parametrize("mistake", [pytest.param(each, id=each.when) for each in mistakes()])
PLAIN = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "elsewhere"}}


@pytest.fixture
async def validator() -> AsyncIterator[Validator]:
    async with validating() as found:
        yield found


def said(path: Path, *arguments: str, stdin: str = "") -> tuple[int, list[str]]:
    done = CliRunner().invoke(command, [*arguments, str(path)] if path.name else list(arguments), input=stdin)
    return done.exit_code, done.output.replace(str(path), "FILE").splitlines()


@each_mistake
def test_validate_says(tmp_path: Path, mistake: Mistake) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(mistake.text)

    code, lines = said(path)

    assert (2, mistake.says) == (code, tuple(lines[:-1]))


@each_mistake
@pytest.mark.parametrize("command_line", [
    pytest.param(["apply", "-f"], id="apply"), pytest.param(["run", "--kubeconfig", "COPY"], id="run"),
])
def test_apply_and_run_say_the_same(shell: Shell, copy: str, command_line: list[str], mistake: Mistake) -> None:
    """With a copy of the kubeconfig, since `run` would bring up the node of the embedded cluster."""
    path = shell.file(mistake.text)
    shown = shell.run(*[copy if word == "COPY" else word for word in command_line], path)
    lines = shown.output.replace(path, "FILE").splitlines()

    assert (2, mistake.says) == (shown.exit_code, tuple(line for line in lines if line.startswith("error: ")))
    assert [] == shell.client.list()


@pytest.mark.parametrize("oversight", [pytest.param(each, id=each.when) for each in oversights()])
def test_what_is_not_there_is_noted(shell: Shell, oversight: Mistake) -> None:
    path = shell.file(oversight.text)
    shown = shell.run("apply", "-f", path)
    lines = shown.stderr.replace(path, "FILE").replace(shell.namespace, "HERE").splitlines()

    assert (0, oversight.says) == (shown.exit_code, tuple(line for line in lines if line.startswith("note: ")))
    assert ["mnist"] == [job.name for job in shell.client.list()]


@pytest.fixture
def copy(shell: Shell) -> str:
    return shell.file((shell.home / "cluster" / "kubeconfig").read_text(), "kubeconfig")


def test_there_are_many_mistakes() -> None:
    assert len(mistakes()) >= 40


def test_a_good_manifest(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(GOOD)

    assert (0, ["1 object: nothing is wrong."]) == said(path)


def test_files_folders_and_standard_input_together(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yml").write_text("kind: [")
    (tmp_path / "c.txt").write_text("not looked at")

    code, lines = said(tmp_path, "-f", "-", stdin=GOOD.replace("replicas: 2", "replicas: -1"))

    assert (2, "2 mistakes in 3 objects.") == (code, lines[-1])
    assert lines[0].startswith("error: FILE/b.yml, line 2, column 1: ")
    assert lines[1].startswith("error: standard input, line 10: spec.tfReplicaSpecs[Worker].replicas: ")


def test_findings_are_data_for_programs(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(GOOD.replace("replicas: 2", "replicas: -1"))
    shown = CliRunner().invoke(command, ["-o", "json", str(path)])
    (found,) = json.loads(shown.output)

    assert (2, 10, "spec.tfReplicaSpecs[Worker].replicas") == (shown.exit_code, found["line"], found["field"])


def test_nothing_to_look_at_is_a_mistake_in_the_command() -> None:
    assert 2 == CliRunner().invoke(command, []).exit_code


async def test_a_namespace_that_is_not_here_is_no_mistake(validator: Validator) -> None:
    assert [] == await validator.findings(PLAIN)


async def test_a_kind_of_others_is_noted_and_not_judged(validator: Validator) -> None:
    [found] = await validator.findings({"apiVersion": "example.com/v1", "kind": "Zeppelin", "metadata": {"name": "z"}})

    assert (True, "kind: Zeppelin in example.com/v1 is not known here, so it was not checked") == (
        found.advice, str(found))


async def test_what_is_hardly_meant_is_noted(validator: Validator) -> None:
    container = {"name": "tensorflow", "image": "x"}
    found = await validator.findings({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a"}, "spec": {"tfReplicaSpecs": {
            "Worker": {"restartPolicy": "Always", "template": {"spec": {"containers": [container]}}}}}})

    assert [True] == [each.advice for each in found]


async def test_one_mistake_does_not_hide_the_next(validator: Validator) -> None:
    container = {"name": "c", "image": "x", "tty": "yes", "ports": [{"containerPort": 70000}]}
    found = await validator.findings({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "nodname": "x", "containers": [container]}})

    assert ["spec.containers[0].tty", "spec.nodname", "spec.containers[0].ports[0].containerPort"] == [
        each.field for each in found]
