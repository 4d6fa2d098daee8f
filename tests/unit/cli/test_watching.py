"""`get jobs -w` as a program: rows come by themselves, for all jobs or those that are named."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest
from tests.unit.cli.conftest import JOB, Shell


@contextmanager
def following(shell: Shell, *words: str) -> Iterator[IO[str]]:
    """What the command prints, until the one who reads is done and presses Ctrl-C."""
    typed = [sys.executable, "-m", "trainmaster.cli.main", "get", *words, "-w", "-n", shell.namespace]
    command = ["env", "--default-signal=INT", *typed]      # which shells ignore in what they start in the background
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(command, env={**environment, **shell.environment}, stdout=subprocess.PIPE, text=True) as run:
        too_long = threading.Timer(120, run.kill)      # what never comes fails the test instead of hanging it
        too_long.start()
        try:
            assert run.stdout is not None
            yield run.stdout
        finally:
            run.send_signal(signal.SIGINT)
            run.wait()
            too_long.cancel()
        assert 130 == run.returncode


@pytest.mark.parametrize("words", [
    pytest.param(["jobs"], id="all jobs"),
    pytest.param(["jobs", "mnist"], id="one by its name"),
    pytest.param(["mnist"], id="one by its name alone"),
])
def test_a_row_for_what_changes(shell: Shell, words: list[str]) -> None:
    shell.client.submit(JOB)
    with following(shell, *words) as printed:
        assert ["KIND", "NAME", "STATE", "REPLICAS", "AGE", "WHY"] == printed.readline().split()
        assert ["TFJob", "mnist", "Waiting", "0/3"] == printed.readline().split()[:4]
        shell.condition("Suspended")
        assert ["TFJob", "mnist", "Suspended", "0/3"] == printed.readline().split()[:4]


def test_one_kind_at_a_time(shell: Shell) -> None:
    refused = shell.run("get", "pods,services", "-w")

    assert 2 == refused.exit_code
    assert "-w follows one kind or one object at a time." in refused.output
