"""A function that the unmodified kubeflow-training SDK makes a job of really trains, with PyTorch from the catalog.

What the SDK does otherwise (create, list, wait, logs, conditions, delete) is in `tests/conformance`, where pods are
played.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance import environments
from tests.e2e.person import Person

pytestmark = pytest.mark.frameworks

PROGRAM = Path(__file__).with_name("function_of_sdk.py")
PATIENCE = 600       # seconds, of which a first download may take most


@pytest.mark.parametrize(
    "trainer", [pytest.param("root", marks=pytest.mark.full), "ordinary user"], indirect=True
)
def test_a_function_trains_in_two_pods_and_both_learn_the_same(trainer: Person) -> None:
    environment = {"PYTHONPATH": str(environments.packages("kubeflow-training")), "HOME": str(trainer.home),
                   "PATH": trainer.environment["PATH"]}
    done = subprocess.run(
        [sys.executable, "-S", "-W", "ignore", PROGRAM, trainer.environment["KUBECONFIG"], str(PATIENCE)],
        env=environment, capture_output=True, text=True, timeout=PATIENCE + 60, check=False,
    )
    found = re.findall(r"(line-\S+) rank (\d) of 2 loss ([\d.]+) -> ([\d.]+) parameters (\w+)", done.stdout)

    assert [("line-master-0", "0"), ("line-worker-0", "1")] == [each[:2] for each in found], done
    assert all(float(last) < float(first) * 0.1 for _, _, first, last, _ in found), found
    assert 1 == len({each[-1] for each in found}), found
