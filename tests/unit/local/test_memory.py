"""The collector leaves alone what start-up made."""

import gc
import subprocess
import sys

from trainmaster.local import memory


def test_what_is_there_at_the_end_of_the_start_is_not_looked_at_again() -> None:
    program = ("import gc\nfrom trainmaster.local import memory\nkept = [[] for _ in range(1000)]\nmemory.settle()\n"
               "print(gc.get_freeze_count() > 1000, gc.get_threshold() == memory.THRESHOLDS, "
               "len(gc.get_objects()) < 1000)")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert "True True True" == said.strip()
    assert gc.get_threshold() != memory.THRESHOLDS, "a process of its own: ours goes on as it was"
