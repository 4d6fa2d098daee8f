"""A new clone, an empty home, two words: `make run`."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(folder: Path) -> Path:
    """What is committed, without anything that an earlier run left in the checkout."""
    place = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, place], check=True)
    return place


@pytest.mark.frameworks
def test_make_run_trains_from_a_new_clone_with_an_empty_home(clone: Path, folder: Path) -> None:
    """Slow, because everything is installed: that is the point."""
    home = folder / "empty-home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name in ("PATH", "LANG")}

    done = subprocess.run(
        ["make", "run"], cwd=clone, env={**kept, "HOME": str(home)}, capture_output=True, text=True, timeout=600,
        check=False,
    )

    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Succeeded after" in done.stderr
    assert "test accuracy" in done.stdout
    assert "The cluster is down." in done.stderr
    assert not (home / ".local/state/trainmaster/run").exists()
    shutil.rmtree(home)
