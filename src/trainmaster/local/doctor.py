"""What this machine lacks to be a cluster, found out by trying."""

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trainmaster.cluster.kubelet import capability, cgroups
from trainmaster.local.home import Home


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: fine, or what is wrong and what to do."""

    what: str
    fine: bool
    told: str


def findings(home: Home) -> list[Finding]:
    """Look at everything; the order is that of a start."""
    return [_python(), _home(home), _sandbox(), _limits()]


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


def _limits() -> Finding:
    """Without the kernel's help limits are kept less well, but pods run: never a reason not to start."""
    with tempfile.TemporaryDirectory(prefix="trainmaster-") as run:
        groups = cgroups.begin(Path(run))
        cgroups.end(Path(run))
    if not groups.missing:
        return Finding("limits", True, f"memory, CPU and processes by control groups (version {groups.version})")
    kept = ", ".join(groups.folders) or "none"
    told = f"by control groups: {kept}; memory is watched otherwise, CPU and processes are not limited"
    return Finding("limits", True, f"{told}. Cause: {groups.missing}. {cgroups.REMEDY}")
