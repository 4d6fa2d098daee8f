"""The beginning of the program."""

import subprocess
import sys

import pytest

from trainmaster.cli import entry, output

# Somebody presses Ctrl-C while that module is loaded.
PROGRAM = """
import sys

class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
sys.argv = ["trainmaster", "completion", "bash"]
from trainmaster.cli.entry import main
main()
"""


@pytest.mark.parametrize("module", ["click", "trainmaster.cli.main", "trainmaster.cli.completion"])
def test_ctrl_c_while_it_is_loaded_is_no_traceback(module: str) -> None:
    shown = subprocess.run([sys.executable, "-c", PROGRAM.format(module=module)], capture_output=True, text=True,
                           check=False)

    assert (130, "", "") == (shown.returncode, shown.stdout, shown.stderr)


def test_the_exit_code_is_that_of_all_interruptions() -> None:
    """It is written twice, so that nothing is loaded for it."""
    assert output.INTERRUPTED == entry.INTERRUPTED
