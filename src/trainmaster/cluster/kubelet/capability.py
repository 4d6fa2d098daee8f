"""Can this machine run pods? Found out by running one, and explained when it cannot.

Nothing is concluded from files: a kernel may refuse for reasons that no file tells. The real sequence is run in a child
with a runtime directory of its own (holder, bridge, sandbox, root file system, `/bin/true`), the first step that fails
is reported, and only then files are looked at, to say why and what to do about it.
"""

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainmaster.cluster.kubelet.holder import needs_user_namespace
from trainmaster.cluster.kubelet.machinefiles import text_of
from trainmaster.cluster.kubelet.records import Failed

_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[2])
from trainmaster.cluster.kubelet.trial import main
main(sys.argv[1])
"""
_REWRITING = """
import os, socket
from trainmaster.cluster.kubelet.holder import new_namespaces
from trainmaster.cluster.network.layout import SERVICE_NETWORK, WAY_OUT_PORT
from trainmaster.cluster.network.nftables import NETLINK_NETFILTER, Nftables
new_namespaces(os.open("/proc", os.O_RDONLY))
Nftables(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER), SERVICE_NETWORK).begin(WAY_OUT_PORT)
"""
_SOURCE = Path(__file__).resolve().parents[3]
_PATIENCE = 30.0
OLDEST_KERNEL = (5, 12)      # overlay in user namespaces is of 5.11, recursive mount attributes are of 5.12


@dataclass(frozen=True, slots=True)
class Facts:
    """What files say; used to explain a failure, never to predict one."""

    root: bool = False
    admin: bool = False                         # CAP_SYS_ADMIN
    filtered: bool = False                      # a seccomp filter is in force
    no_new_privileges: bool = False
    kernel: tuple[int, int] = (6, 0)
    user_namespaces: int | None = None          # user.max_user_namespaces
    network_namespaces: int | None = None       # user.max_net_namespaces
    unprivileged_clone: int | None = None       # kernel.unprivileged_userns_clone: Debian, Arch
    apparmor_restricts: int | None = None       # kernel.apparmor_restrict_unprivileged_userns: Ubuntu
    container: bool = False                     # we are inside a container already


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why pods cannot run here, and what to do."""

    step: str
    number: int
    text: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        code = f" ({errno.errorcode[self.number]})" if self.number in errno.errorcode else ""
        return f"This machine cannot {self.step}: {self.text}{code}. {self.cause} {self.remedy}".strip()


def probe(directory: Path | None = None, read: Callable[[str], str] = text_of) -> Obstacle | None:
    """Run one pod below `directory` (a temporary one by default). None: it works, and nothing is left of it."""
    with tempfile.TemporaryDirectory(prefix="trainmaster-", dir=directory, ignore_cleanup_errors=True) as run:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, run, str(_SOURCE)],
                capture_output=True, timeout=_PATIENCE, check=False,
            )
            said = json.loads(done.stdout.strip() or b"{}")
        except subprocess.TimeoutExpired:
            said = {"step": "run a pod", "errno": 0, "text": f"it did not end within {_PATIENCE:.0f} seconds"}
        except ValueError:
            said = {"step": "run a pod", "errno": 0, "text": "the trial said nothing that can be read"}
        if not said:
            text = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            said = {"step": "run a pod", "errno": 0, "text": "".join(text) or f"the trial ended with {done.returncode}"}
    if said.get("ok"):
        return None
    return explain(Failed.from_message(said), gather(read))


def rewriting() -> str:
    """Whether the kernel rewrites the addresses of services in a network of ours: "", or what it says. Tried in a
    child, since whoever leaves the host's network may not come back."""
    try:
        done = subprocess.run([sys.executable, "-c", _REWRITING], capture_output=True, text=True, timeout=_PATIENCE,
                              check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {_PATIENCE:.0f} seconds"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]


def explain(failed: Failed, facts: Facts) -> Obstacle:
    """Cause and remedy of a refused step."""
    cause, remedy = _why(failed, facts)
    return Obstacle(failed.step, failed.number, failed.text, cause, remedy)


def gather(read: Callable[[str], str] = text_of) -> Facts:
    """The facts of this machine."""
    def number(path: str) -> int | None:
        text = read(path).strip()
        return int(text) if text.isdecimal() else None

    status = read("/proc/self/status")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    release = read("/proc/sys/kernel/osrelease").strip() or "0"
    major, minor = (int("".join(filter(str.isdigit, part)) or 0) for part in f"{release}.0".split(".")[:2])
    return Facts(
        root=os.geteuid() == 0,
        admin=not needs_user_namespace(status),
        filtered=fields.get("Seccomp", "0").strip() == "2",
        no_new_privileges=fields.get("NoNewPrivs", "0").strip() == "1",
        kernel=(major, minor),
        user_namespaces=number("/proc/sys/user/max_user_namespaces"),
        network_namespaces=number("/proc/sys/user/max_net_namespaces"),
        unprivileged_clone=number("/proc/sys/kernel/unprivileged_userns_clone"),
        apparmor_restricts=number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        container=Path("/.dockerenv").exists() or Path("/run/.containerenv").exists(),
    )


def _why(failed: Failed, facts: Facts) -> tuple[str, str]:
    refused = failed.number in (errno.EPERM, errno.EACCES)
    if facts.kernel < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        return f"The kernel is {facts.kernel[0]}.{facts.kernel[1]}; pods need {oldest} or later.", "Use a newer kernel."
    if failed.number == errno.ENOSPC and "namespace" in failed.step:
        for name, limit in (
            ("user.max_user_namespaces", facts.user_namespaces), ("user.max_net_namespaces", facts.network_namespaces),
        ):
            if limit == 0:
                return f"The sysctl {name} is 0.", f"As root: sysctl {name}=65536"
        return "A limit on namespaces is reached.", "As root, raise the sysctls user.max_*_namespaces."
    if refused and facts.apparmor_restricts == 1 and not facts.admin:
        return (
            "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1).",
            "As root: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile with 'userns,' for Python.",
        )
    if refused and facts.unprivileged_clone == 0 and not facts.admin:
        return (
            "Only root may make user namespaces here (kernel.unprivileged_userns_clone is 0).",
            "As root: sysctl kernel.unprivileged_userns_clone=1",
        )
    if refused and facts.root and not facts.admin and failed.step == "map the user into the user namespace":
        return (
            "Root without the capability SETFCAP may not be root of a user namespace, as in a container without any.",
            "Run as an ordinary user, or start the container with '--cap-add SETFCAP' or '--privileged'.",
        )
    if refused and facts.filtered:
        return (
            "A seccomp filter is in force, as in a Docker container with default settings.",
            "Start the container with '--security-opt seccomp=unconfined', or with '--privileged'.",
        )
    if refused and failed.step.startswith("mount /proc") and facts.container:
        return (
            "Parts of /proc are masked by the container we are in, and then the kernel allows no new one.",
            "Start the container with '--security-opt systempaths=unconfined', or with '--privileged'.",
        )
    if refused and failed.step == "make a user namespace":
        return "Making user namespaces is forbidden; in a chroot it always is.", "Run as root, or outside of a chroot."
    return _missing(failed)


def _missing(failed: Failed) -> tuple[str, str]:
    """Causes that are a lack of something."""
    if failed.number in (errno.ENODEV, errno.EOPNOTSUPP):
        for word, driver in (("bridge", "bridge"), ("link", "veth"), ("root file system", "overlay")):
            if word in failed.step:
                return f"The kernel has no {driver} driver.", f"As root: modprobe {driver}"
    if failed.step == "mount the root file system" and failed.number == errno.EINVAL:
        return (
            ("The file system of the runtime directory cannot hold the upper layer of an overlay; that of a container "
            "cannot."),
            "Put TRAINMASTER_HOME on an ordinary disk (in Docker: on a volume).",
        )
    if failed.number == errno.EACCES and "record" in failed.step:
        return "The runtime directory cannot be written.", "Give TRAINMASTER_HOME a directory of your own."
    return "", "'trainmaster doctor' tries again and tells more; please report what it says."

