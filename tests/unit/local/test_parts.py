"""The cluster's own processes."""

import os
from pathlib import Path

import pytest

from trainmaster.local.part_logs import MOST_LOGGED
from trainmaster.local.parts import Part, StartError


def test_a_log_that_has_grown_is_left_for_another_at_the_next_start(tmp_path: Path) -> None:
    """Nobody else rotates it, and a cluster may be brought up for years."""
    part = Part("node", "platform", tmp_path, tmp_path)      # a module of Python that ends by itself
    part.log.touch()
    os.truncate(part.log, MOST_LOGGED + 1)

    with pytest.raises(StartError, match="ended while it was starting"):
        part.start(environment={}).ready()

    assert MOST_LOGGED + 1 == (tmp_path / "node.log.1").stat().st_size
    assert part.log.stat().st_size < MOST_LOGGED
