"""Our operator on the embedded server does what the Go operator did on a real one."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kubernetes.processes import processes
from tests.spec import parity

from trainmaster.local import parts
from trainmaster.local.asked import Asked
from trainmaster.local.home import Home

SETTLE = 0.5
# One of each idea; the others are played on the real server.
SLICE = ("seed-000-*", "tf-exit-code-137", "tf-suspend-resume", "tf-scale-up", "tf-clean-running", "tf-chief-fails",
         "tf-sidecar", "tf-onfailure-evicted", "tf-refused", "pytorch-success", "pytorch-elastic-hpa",
         "xgboost-success", "jax-worker-fails-never", "paddle-collective", "gang-volcano-tf", "gang-scheduler-*")
recordings = pytest.mark.skipif(not parity.scenarios(), reason=f"the recordings are not in {parity.KIT}")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[parity.Place]:
    """An API server with its own controllers, without scheduler, node or operator: the scenarios play these."""
    home = Home(tmp_path / "home")
    home.make()
    part = parts.control_plane(home)
    environment = {"TRAINMASTER_HOME": str(home.path)}
    with processes(tmp_path) as started:
        command = [sys.executable, "-m", part.module, Asked(only_apiserver=True).words()]
        started.start(part.name, command, {**os.environ, **environment})
        started.wait(part.name, lambda: "server" in (part.facts() or {}))
        operator = [sys.executable, "-m", "trainmaster.cli.main", "operator"]
        yield parity.Place(home.kubeconfig, tmp_path, operator, environment)


@recordings
def test_the_operator_does_what_the_go_operator_did(place: parity.Place) -> None:
    assert {} == parity.differing(parity.chosen(SLICE), place, settle=SETTLE)


@recordings
@pytest.mark.parametrize("pattern", SLICE)
def test_every_pattern_of_the_slice_chooses_something(pattern: str) -> None:
    assert parity.chosen([pattern])


def test_every_allowed_difference_names_its_rule_and_its_reason() -> None:
    rule = re.compile(r"B-\d\d|\d+\.\d+")
    unfounded = [line for line in parity.allowed() if not rule.fullmatch(line["rule"]) or not line["why"]]

    assert [] == unfounded
