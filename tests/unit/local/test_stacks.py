"""What is said about a process that py-spy may not look into."""

from pathlib import Path

import pytest

from trainmaster.local.stacks import by_itself


@pytest.mark.parametrize(("caught", "said"), [
    pytest.param("0000000000000020", "trainmaster exec JOB/REPLICA -- kill -ABRT 7",
                 id="one with a handler for it is told to abort, by its number in the pod"),
    pytest.param("0000000000000002", "with PYTHONFAULTHANDLER=1 in its environment it would write that to its log",
                 id="one without is told how to have one"),
])
def test_how_it_can_be_made_to_say_where_it_stands(tmp_path: Path, caught: str, said: str) -> None:
    (tmp_path / "status").write_text(f"Name:\tpython3\nPid:\t4711\nNSpid:\t4711\t7\nSigCgt:\t{caught}\n")

    first, second = by_itself(tmp_path, "Permission denied (os error 13)")

    assert "py-spy may not look into it: Permission denied (os error 13)" == first
    assert said in second
