"""The command line without a cluster: help, bad input, exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from trainmaster.cli.main import COMMANDS, HABITS, SECTIONS, Lazy, cli


def run(*arguments: str, home: Path | None = None, text: str = "") -> Result:
    environment = {"TRAINMASTER_HOME": str(home or "/nowhere"), "KUBECONFIG": ""}
    return CliRunner().invoke(cli, list(arguments), env=environment, input=text)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_with_an_example(command: str) -> None:
    shown = run(command, "--help")

    assert 0 == shown.exit_code
    assert f"Example: trainmaster {command}" in shown.output


@pytest.mark.parametrize("words", [*([name] for name in sorted(COMMANDS)), ["images", "add"], ["images", "remove"]],
                         ids=" ".join)
def test_commands_have_the_same_options(words: list[str]) -> None:
    command: click.Command | None = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    options = {word: each for each in command.params for word in each.opts}

    form = options["-o"].type
    assert isinstance(form, click.Choice)
    assert ["table", "wide", "json", "yaml", "name"] == list(form.choices)
    assert {"-n", "--namespace", "--kubeconfig", "--context", "--debug"} <= set(options)


def test_a_command_that_prints_one_thing_only_takes_the_word_for_another_all_the_same() -> None:
    assert run("completion", "bash").output == run("completion", "bash", "-o", "json", "-n", "a").output
    assert (3, True) == ((shown := run("scheduler", "-o", "json")).exit_code, "No cluster" in shown.output)


@pytest.mark.parametrize(("words", "begins"), [
    pytest.param([], "apiVersion: apiextensions.k8s.io/v1", id="YAML, unless another form is asked for"),
    pytest.param(["-o", "json"], "{", id="JSON"),
    pytest.param(["-o", "name"], "tfjobs.kubeflow.org\n", id="names"),
    pytest.param(["-o", "table"], "NAME                       KIND         SHORT NAMES   VERSIONS\n"
                 "tfjobs.kubeflow.org        TFJob        tfj           v1\n", id="a table"),
])
def test_definitions_have_all_forms(words: list[str], begins: str) -> None:
    assert run("crds", *words).output.startswith(begins)


@pytest.mark.parametrize("words", [
    pytest.param(["--kubeconfig", "/nowhere", "get", "jobs"], id="before the command"),
    pytest.param(["get", "jobs", "--kubeconfig", "/nowhere"], id="after it"),
    pytest.param(["--kubeconfig", "/elsewhere", "get", "jobs", "--kubeconfig", "/nowhere"], id="the last word counts"),
    pytest.param(["--kubeconfig", "/nowhere", "-n", "a", "--context", "b", "exec", "mnist", "--", "-n"],
                 id="all of them"),
])
def test_which_cluster_is_said_before_the_command_or_after_it(words: list[str]) -> None:
    done = run(*words, home=Path("/home-of-nobody"))

    assert 2 == done.exit_code
    assert "/nowhere" in done.output


def test_who_asks_no_cluster_takes_the_word_for_one_all_the_same() -> None:
    assert 0 == run("-n", "a", "crds", "--kubeconfig", "/nowhere").exit_code


def test_help_lists_every_command_and_loads_none() -> None:
    """Starting must stay cheap: nothing asynchronous, no client, no terminal library for a word of help."""
    program = """
import sys
from trainmaster.cli.main import cli
try:
    cli(["--help"])
except SystemExit:
    print(sorted(sys.modules))
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert all(name in shown for name in COMMANDS)
    assert not [module for module in ("asyncio", "aiohttp", "rich", "yaml", "cryptography") if f"'{module}'" in shown]


def test_the_package_can_be_run_as_the_command() -> None:
    """For those whose PATH lacks the folder into which pip put it."""
    done = subprocess.run([sys.executable, "-m", "trainmaster", "get", "--kubeconfig", "/nowhere"],
                          capture_output=True, text=True, check=False)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: /nowhere: No such file or directory.")


class Interrupted(Lazy):
    """A group whose commands are all interrupted by Ctrl-C."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:  # noqa: ARG002  click's signature
        def callback() -> None:
            raise KeyboardInterrupt

        return click.Command(cmd_name, callback=callback)


def test_ctrl_c_ends_a_command_without_a_word() -> None:
    shown = CliRunner().invoke(Interrupted("trainmaster"), ["logs"])

    assert (130, "") == (shown.exit_code, shown.output.strip())


def test_every_command_has_its_section_of_help() -> None:
    listed = [name for _, names in SECTIONS for name in names]

    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["run", "/no/such.yaml"], "No such file or directory", id="a file that is not there"),
        pytest.param(["run", "https://example.org/x.yaml"], "not fetched from the network", id="an address"),
        pytest.param(["run"], "Missing argument", id="nothing to run"),
        pytest.param(["up", "--resource", "nvidia.com/gpu"], "write NAME=AMOUNT", id="a resource without an amount"),
        pytest.param(["up", "--memory", "many"], "'many' is not a quantity", id="an amount that is none"),
        pytest.param(["up", "--port", "70000"], "70000 is not in the range", id="a port that is none"),
        pytest.param(["operator", "--leader-elec"], "Did you mean", id="a flag that is almost one"),
        pytest.param(["operator", "-qps=x"], "--qps x: write a number", id="a flag as Go writes it, with a bad value"),
        pytest.param(["operator", "--master=http://x", "--enable-scheme=x"], "scheme x is not supported yet",
                     id="a kind that is none"),
        pytest.param(["operator", "--master=http://x", "--metrics-bind-address=x"],
                     "--metrics-bind-address x: write HOST:PORT", id="an address that is none"),
        pytest.param(["validate"], "give a file, a folder, or - for standard input", id="nothing to look at"),
        pytest.param(["completion", "tcsh"], "'tcsh' is not one of 'bash', 'fish', 'zsh'", id="another shell"),
        pytest.param(["run", "x.py", "--workers", "0"], "0 is not in the range x>=1", id="no workers"),
        pytest.param(["run", "x.py", "--epochs", "3"], "If it is for x.py, write it after --: `trainmaster run x.py -- "
                     "--epochs ...`.", id="an option of the script among ours"),
        pytest.param(["run", "x.py", "--framework", "tf"], "'tf' is not one of 'pytorch'", id="no framework"),
        pytest.param(["up", "--fake-nodes", "1", "--fake-node", "cpu"], "--fake-node cpu: write NAME=AMOUNT",
                     id="a simulated resource without an amount"),
        pytest.param(["fly"], "No such command", id="a command that is none"),
        pytest.param(["create", "-f", "x"], "No such command 'create'. Did you mean apply?", id="as kubectl calls it"),
        pytest.param(["ps"], "No such command 'ps'. Did you mean get?", id="as docker calls it"),
        pytest.param(["help"], "Did you mean --help?", id="help as a command"),
        pytest.param(["lgos"], "No such command 'lgos'. Did you mean logs?", id="a command that is nearly one"),
    ],
)
def test_bad_input_is_exit_code_2_and_a_sentence(arguments: list[str], sentence: str) -> None:
    shown = run(*arguments)

    assert 2 == shown.exit_code
    assert sentence in shown.output
    assert "Traceback" not in shown.output


def test_habits_lead_to_what_is_there() -> None:
    assert not HABITS.keys() & COMMANDS.keys()
    assert set(HABITS.values()) <= {*COMMANDS, "--version", "--help"}


def test_a_cluster_that_is_down_is_exit_code_3(tmp_path: Path) -> None:
    shown = run("status", home=tmp_path)

    assert (3, True) == (shown.exit_code, "trainmaster up" in shown.output)


def test_down_of_nothing_says_so(tmp_path: Path) -> None:
    shown = run("down", home=tmp_path)

    assert (0, True) == (shown.exit_code, "was not up" in shown.output)


def test_what_an_image_means_is_told_in_the_form_that_is_asked_for(tmp_path: Path) -> None:
    added = run("images", "add", "mine/net:1", "--python", "pytorch", "--entrypoint", "python a.py", "-o", "json",
                home=tmp_path)
    assert {"name": "mine/net:1", "runs": "python a.py", "yours": True}.items() <= json.loads(added.output).items()
    assert "mine/net:1\n" == run("images", "remove", "mine/net:1", "-o", "name", home=tmp_path).output
    assert "mine/net:1" not in run("images", "-o", "name", home=tmp_path).output
