"""The completion scripts in the shells themselves, each where the machine has it: a person who presses Tab."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest
from click.testing import CliRunner
from tests.unit.cli.conftest import JOB, Shell

from trainmaster.cli.main import cli

LONGEST = 120.0      # seconds, for a machine that is busy
TRIES = 8            # of pressing Tab: where the cluster is slow to answer, nothing is offered


@pytest.fixture
def machine(shell: Shell, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has a job, `trainmaster` on the path, and nothing else."""
    shell.says("apply", "-f", "-", text=JOB)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "trainmaster").symlink_to(Path(sys.executable).with_name("trainmaster"))
    (tmp_path / "only-one.yaml").touch()
    return {**shell.environment, "HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "TERM": "dumb"}


def needs(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"this machine has no {name}")
    return found


def script(name: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CliRunner().invoke(cli, ["completion", name]).output)
    return path


@pytest.mark.parametrize(("words", "expected"), [
    pytest.param("trainmaster descr", "describe", id="a command"),
    pytest.param("trainmaster describe -n NAMESPACE mn", "mnist", id="a job"),
    pytest.param("trainmaster get --all-n", "--all-namespaces", id="an option"),
    pytest.param("trainmaster run only-o", "only-one.yaml", id="a file to run"),
    pytest.param("trainmaster apply -f only-o", "only-one.yaml", id="a file of an option"),
])
class TestTab:
    """Slow: each starts the shell, and the command in it."""

    def test_bash(self, machine: dict[str, str], shell: Shell, words: str, expected: str, tmp_path: Path) -> None:
        source = script("bash", tmp_path / "completion.bash")
        (tmp_path / ".bashrc").write_text(f"PS1='ready> '\nbind 'set enable-bracketed-paste off'\nsource {source}\n")
        shown = completed([needs("bash"), "--rcfile", str(tmp_path / ".bashrc"), "-i"], machine, tmp_path,
                          words.replace("NAMESPACE", shell.namespace), expected)

        assert f"<{expected}>" in shown

    def test_zsh(self, machine: dict[str, str], shell: Shell, words: str, expected: str, tmp_path: Path) -> None:
        functions = script("zsh", tmp_path / ".zfunc" / "_trainmaster").parent
        (tmp_path / ".zshrc").write_text(
            f"PS1='ready> '\nfpath=({functions} $fpath)\nautoload -Uz compinit && compinit -u\nbindkey -e\n")
        shown = completed([needs("zsh"), "-i"], machine, tmp_path,
                          words.replace("NAMESPACE", shell.namespace), expected)

        assert f"<{expected}>" in shown

    def test_fish(self, machine: dict[str, str], shell: Shell, words: str, expected: str, tmp_path: Path) -> None:
        """fish tells what it would offer; no terminal is needed."""
        script("fish", tmp_path / ".config" / "fish" / "completions" / "trainmaster.fish")
        asked = f"complete -C '{words.replace('NAMESPACE', shell.namespace)}'"
        for _ in range(TRIES):
            shown = subprocess.run([needs("fish"), "-c", asked], env=machine, cwd=tmp_path, capture_output=True,
                                   text=True, check=True)
            if shown.stdout:
                break

        assert [expected] == [each.split("\t")[0] for each in shown.stdout.splitlines()], shown.stderr


def completed(command: list[str], environment: dict[str, str], folder: Path, words: str, expected: str) -> str:
    """The words of the line after Tab, as the shell itself splits them."""
    with Terminal(command, environment, folder) as terminal:
        terminal.wait_for("ready> ")
        terminal.type(words)
        for _ in range(TRIES):
            terminal.type("\t")
            if terminal.shows(f"{expected} ", LONGEST / TRIES):
                break
        terminal.type("\x01printf '<%s>' \r")      # at the beginning of the line
        return terminal.wait_for(r"<trainmaster>.*>")


class Terminal:
    """A shell that believes that somebody sits in front of it."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._screen, theirs = pty.openpty()
        self._shell = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder,
                                       start_new_session=True)
        os.close(theirs)
        self._seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._screen)

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def wait_for(self, pattern: str) -> str:
        """All that was on the screen, once the pattern is in it."""
        assert self.shows(pattern, LONGEST), f"{pattern!r} is not in {self._seen!r}"
        return self._seen

    def shows(self, pattern: str, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while not re.search(pattern, self._seen):
            if not select.select([self._screen], [], [], max(0.0, ends - time.monotonic()))[0]:
                return False
            self._seen += os.read(self._screen, 65536).decode(errors="replace")
        return True
