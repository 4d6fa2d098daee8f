"""Whether this machine can run pods, and what is said when it cannot."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet.capability import Facts, explain, gather, probe
from trainmaster.cluster.kubelet.holder import needs_user_namespace
from trainmaster.cluster.kubelet.records import Failed

ROOT = Path(__file__).parents[4]
USERNS = "make a user namespace"


@pytest.mark.parametrize(("cause", "remedy", "failed", "facts"), [
    pytest.param("max_user_namespaces is 0", "sysctl user.max_user_namespaces=65536",
                 Failed(USERNS, errno.ENOSPC, ""), Facts(user_namespaces=0), id="no user namespaces allowed"),
    pytest.param("max_net_namespaces is 0", "sysctl user.max_net_namespaces",
                 Failed("make a network namespace", errno.ENOSPC, ""), Facts(network_namespaces=0),
                 id="no network ones"),
    pytest.param("limit on namespaces is reached", "raise", Failed(USERNS, errno.ENOSPC, ""), Facts(), id="too many"),
    pytest.param("unprivileged_userns_clone is 0", "unprivileged_userns_clone=1",
                 Failed(USERNS, errno.EPERM, ""), Facts(unprivileged_clone=0), id="Debian and Arch kernels"),
    pytest.param("AppArmor restricts", "apparmor_restrict_unprivileged_userns=0",
                 Failed("map the user into the user namespace", errno.EACCES, ""), Facts(apparmor_restricts=1),
                 id="Ubuntu 23.10 and later"),
    pytest.param("seccomp filter", "seccomp=unconfined", Failed(USERNS, errno.EPERM, ""),
                 Facts(filtered=True, container=True), id="a Docker container with default settings"),
    pytest.param("masked by the container", "systempaths=unconfined",
                 Failed("mount /proc", errno.EPERM, ""), Facts(container=True), id="masked /proc"),
    pytest.param("forbidden", "outside of a chroot", Failed(USERNS, errno.EPERM, ""), Facts(), id="a chroot"),
    pytest.param("no bridge driver", "modprobe bridge", Failed("make the bridge", errno.EOPNOTSUPP, ""), Facts(),
                 id="no bridge in the kernel"),
    pytest.param("no veth driver", "modprobe veth", Failed("make the pod's link", errno.EOPNOTSUPP, ""), Facts(),
                 id="no veth in the kernel"),
    pytest.param("no overlay driver", "modprobe overlay", Failed("mount the root file system", errno.ENODEV, ""),
                 Facts(), id="no overlay in the kernel"),
    pytest.param("upper layer of an overlay", "TRAINMASTER_HOME",
                 Failed("mount the root file system", errno.EINVAL, ""), Facts(), id="a home on an overlay"),
    pytest.param("kernel is 5.4; pods need 5.12", "newer kernel", Failed("mount_setattr", errno.ENOSYS, ""),
                 Facts(kernel=(5, 4)), id="an old kernel"),
])
def test_causes_and_remedies(cause: str, remedy: str, failed: Failed, facts: Facts) -> None:
    found = explain(failed, facts)

    assert cause in found.cause
    assert remedy in found.remedy


def test_an_obstacle_is_a_sentence() -> None:
    found = explain(Failed(USERNS, errno.EPERM, "not permitted"), Facts(filtered=True))

    assert str(found).startswith("This machine cannot make a user namespace: not permitted (EPERM). A seccomp filter")


@pytest.mark.parametrize(("expected", "line"), [
    pytest.param(False, "CapEff:\t000001ffffffffff", id="all capabilities: root's way"),
    pytest.param(True, "CapEff:\t00000000a80425fb", id="root of a container: the way of an ordinary user"),
    pytest.param(True, "CapEff:\t0000000000000000", id="an ordinary user"),
    pytest.param(True, "", id="nothing known"),
])
def test_which_way(expected: bool, line: str) -> None:
    assert expected is needs_user_namespace(f"Name:\tpython\n{line}\n")


def test_this_machine() -> None:
    """The whole sequence for real. Where the machine forbids it, the report must at least say what and why."""
    before = {entry.name for entry in Path("/tmp").iterdir() if entry.name.startswith("trainmaster-")}

    found = probe()

    assert found is None or (found.step and found.text), found
    assert before >= {entry.name for entry in Path("/tmp").iterdir() if entry.name.startswith("trainmaster-")}
    assert gather().kernel >= (2, 6)


REFUSE = """
import ctypes, ctypes.util, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
# load the number of the call; unshare (272 on x86_64)? then EPERM, else allow
program = struct.pack("HBBI", 0x20, 0, 0, 0) + struct.pack("HBBI", 0x15, 0, 1, 272) \\
    + struct.pack("HBBI", 0x06, 0, 0, 0x00050001) + struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(program)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
wanted = Program(4, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(wanted)) == 0
from trainmaster.cluster.kubelet.capability import probe
print(probe())
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter below is for x86_64")
def test_a_seccomp_filter_is_found_and_named() -> None:
    """As Docker's: the call is refused, and nothing but /proc/self/status tells why."""
    packages = [path for path in sys.path if path.endswith("site-packages")]
    said = subprocess.run(
        [sys.executable, "-c", REFUSE], env={"PYTHONPATH": ":".join([f"{ROOT}/src", *packages])}, capture_output=True,
        text=True, timeout=60, check=True,
    ).stdout

    assert "namespace" in said.partition(":")[0]
    assert "seccomp=unconfined" in said
