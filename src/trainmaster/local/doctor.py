"""What this machine lacks to be a cluster, found out by trying."""

import os
import sys
from dataclasses import dataclass

from trainmaster.cluster.kubelet import capability
from trainmaster.local.home import Home


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: fine, or what is wrong and what to do."""

    what: str
    fine: bool
    told: str


def findings(home: Home) -> list[Finding]:
    """Look at everything; the order is that of a start."""
    return [_python(), _home(home), _sandbox()]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("Python", sys.version_info >= (3, 11), f"{version}, {sys.executable}")


def _home(home: Home) -> Finding:
    there = next(folder for folder in (home.path, *home.path.parents) if folder.exists())
    if os.access(there, os.W_OK | os.X_OK):
        return Finding("home", True, str(home.path))
    return Finding("home", False, f"{there}: is not writable. Set TRAINMASTER_HOME to a folder of your own.")


def _sandbox() -> Finding:
    obstacle = capability.probe()
    if obstacle is None:
        return Finding("pods", True, "a pod was made and removed")
    return Finding("pods", False, str(obstacle))
