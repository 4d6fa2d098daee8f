"""What this machine lacks to be a cluster, found out by trying."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from trainmaster.cluster.kubelet import capability, cgroups, confinement, gpus
from trainmaster.local.home import Home
from trainmaster.sdk.checkup import Finding

_MODULES = (
    "As root, for the kernel's own way: modprobe -a nf_tables nft_chain_nat nft_masq nft_redir nft_numgen "
    "nft_reject_ipv4"
)


def findings(home: Home) -> list[Finding]:
    """Look at everything; the order is that of a start."""
    seen = _sandbox()
    found = [_python(), _home(home), seen, _limits()]
    return [*found, *_network(), *_gpus()] if seen.fine else found


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
    others = "processes are counted by PID namespaces, CPU is not limited" \
        if confinement.counts_processes(os.uname().release) else "CPU and processes are not limited"
    told = f"by control groups: {kept}; memory is watched otherwise, {others}"
    return Finding("limits", True, f"{told}. Cause: {groups.missing}. {cgroups.REMEDY}")


def _network() -> list[Finding]:
    """Neither is a reason not to start: there is another way for each, or pods do without."""
    refused = capability.rewriting()
    if refused:
        return [
            Finding("services", True, f"by relays of the node agent. Cause: {refused}. {_MODULES}"),
            Finding("outside", True, "pods have no way out. Cause: that of services"),
        ]
    return [Finding("services", True, "by the kernel (nftables)"), _way_out()]


def _way_out() -> Finding:
    if shutil.which("slirp4netns") is None:
        why = "slirp4netns is not installed. For UDP, too: install the package slirp4netns."
    elif not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        why = "/dev/net/tun cannot be opened. For UDP, too, as root: chmod 666 /dev/net/tun (as most systems have it)."
    else:
        return Finding("outside", True, "pods reach it by slirp4netns")
    return Finding("outside", True, f"pods reach it by TCP, through the node agent. Cause: {why}")


def _gpus() -> list[Finding]:
    found = gpus.found()
    told = f"{len(found)} of NVIDIA, given to pods that ask for {gpus.RESOURCE}"
    return [Finding("GPUs", True, told)] if found else []
