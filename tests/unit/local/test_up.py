"""Starting a cluster, and thinking better of it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

# Parts of the cluster that take for ever to start: found by every Python, before anything else.
SLOW = """
import sys, time
if any(word.startswith("trainmaster.local.") for word in sys.orig_argv):
    time.sleep(600)
"""
LONGEST = 120.0      # seconds, for a machine that is busy


def parts(home: Path) -> list[str]:
    """Processes of a cluster, by the home in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"TRAINMASTER_HOME={home}".encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except (OSError, ValueError):
            continue
    return found


def test_ctrl_c_stops_what_was_about_to_start(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    home = tmp_path / "home"
    environment = {"HOME": str(tmp_path), "TRAINMASTER_HOME": str(home), "PATH": "/usr/bin:/bin",
                   "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "trainmaster", "up"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as starting:
        ends = time.monotonic() + LONGEST
        while len(parts(home)) < 2 and time.monotonic() < ends:      # itself, and one that was made
            os.sched_yield()
        starting.send_signal(signal.SIGINT)
        _, said = starting.communicate(timeout=LONGEST)

    assert (130, "Interrupted; what was about to start is stopped.\n") == (starting.returncode, said)
    assert [] == parts(home)
