"""A disk that is full, really full: reads and deletions go on, and when there is room everything does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.store_full import SKIP

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(75, id="at some moments"),
        pytest.param(3, id="at many moments", marks=pytest.mark.faults),
    ],
)
def test_the_disk_is_full(tmp_path: Path, step: int) -> None:
    """A file system of our own needs a namespace of our own, hence a process."""
    alone = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    program = [sys.executable, "-m", "tests.faults.store_full", str(tmp_path), str(step)]
    done = subprocess.run([*alone, *program], cwd=ROOT, capture_output=True, text=True, check=False)

    if done.returncode == SKIP or (done.returncode and done.stderr.startswith("unshare:")):
        pytest.skip(f"no file system to fill up can be mounted here: {done.stdout}{done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
