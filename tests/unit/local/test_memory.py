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


def test_what_outlives_a_look_is_put_aside_and_no_look_is_long() -> None:
    program = ("import gc\nfrom trainmaster.local import memory\nmemory.settle()\nlooks = []\n"
               "def look(phase, _): phase == 'stop' and looks.append(len(gc.get_objects()))\n"
               "gc.callbacks.insert(0, look)\n"
               "kept = [[] for _ in range(20 * memory.THRESHOLDS[0])]\n"
               "print(len(looks) > 10, max(looks) < 2 * memory.THRESHOLDS[0])")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert "True True" == said.strip()


def test_a_ring_of_garbage_that_was_put_aside_is_found_by_the_long_look() -> None:
    program = ("import gc, weakref\nfrom trainmaster.local import memory\nclass Ring: pass\n"
               "one = Ring()\none.self = one\n"
               "known = weakref.ref(one)\nmemory.settle()\ndel one\ngc.collect()\nbefore = known() is not None\n"
               "memory.look_at_all()\nprint(before, known() is None)")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert "True True" == said.strip()
