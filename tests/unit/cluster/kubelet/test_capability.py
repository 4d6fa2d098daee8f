"""Whether this machine can run pods, and what is said when it cannot."""

import errno
import json
import os
import subprocess
import sys
import tempfile
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
    pytest.param("without the capability SETFCAP", "--cap-add SETFCAP",
                 Failed("map the user into the user namespace", errno.EPERM, ""), Facts(root=True, filtered=True),
                 id="root of a container without capabilities"),
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
    place = Path(tempfile.gettempdir())
    before = {entry.name for entry in place.iterdir() if entry.name.startswith("trainmaster-")}

    found = probe()

    assert found is None or (found.step and found.text), found
    assert before >= {entry.name for entry in place.iterdir() if entry.name.startswith("trainmaster-")}
    assert gather().kernel >= (2, 6)


REFUSE = """
import ctypes, json, os, struct, sys
refused, files = json.loads(sys.argv[1])
# Load the number of the call; those that are refused return an error, the others are allowed.
program = struct.pack("HBBI", 0x20, 0, 0, 0)
for number, error in refused:
    program += struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | error)
program += struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
buffer = ctypes.create_string_buffer(program)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
wanted = Program(len(program) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(wanted)) == 0
from trainmaster.cluster.kubelet.capability import probe
from trainmaster.cluster.kubelet.machinefiles import text_of
print(probe(read=lambda path: files[path] if path in files else text_of(path)))
"""
# Numbers of system calls of x86_64.
UNSHARE, MOUNT, SETHOSTNAME, MOUNT_SETATTR = 272, 165, 170, 442
NO_FILTER = {"/proc/self/status": "CapEff:\t0\nSeccomp:\t0\n"}       # but for ours
WITHOUT_RIGHTS = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter above is for x86_64")
@pytest.mark.parametrize(("step", "cause", "remedy", "refused", "files"), [
    pytest.param("namespace", "user.max_user_namespaces is 0", "sysctl user.max_user_namespaces=65536",
                 [(UNSHARE, errno.ENOSPC)], {**NO_FILTER, "/proc/sys/user/max_user_namespaces": "0\n"},
                 id="user namespaces are off"),
    pytest.param("namespace", "kernel.unprivileged_userns_clone is 0", "sysctl kernel.unprivileged_userns_clone=1",
                 [(UNSHARE, errno.EPERM)], {**NO_FILTER, "/proc/sys/kernel/unprivileged_userns_clone": "0\n"},
                 id="user namespaces are off, as Debian had them"),
    pytest.param("", "AppArmor restricts user namespaces", "apparmor_restrict_unprivileged_userns=0",
                 [(MOUNT, errno.EACCES), (SETHOSTNAME, errno.EPERM)],
                 {**NO_FILTER, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
                 id="AppArmor of Ubuntu 24.04: there is a namespace, and no right in it"),
    pytest.param("namespace", "A seccomp filter is in force", "--security-opt seccomp=unconfined",
                 [(UNSHARE, errno.EPERM)], {}, id="a Docker container without the rights"),
    pytest.param("", "The kernel is 5.4; pods need 5.12 or later.", "Use a newer kernel.",
                 [(MOUNT_SETATTR, errno.ENOSYS)], {**NO_FILTER, "/proc/sys/kernel/osrelease": "5.4.0-42-generic\n"},
                 id="a kernel that is too old"),
])
def test_an_obstacle_is_found_by_trying_and_has_a_remedy(
    step: str, cause: str, remedy: str, refused: list[tuple[int, int]], files: dict[str, str]
) -> None:
    """The whole sequence in a child, without rights; only the refusal, and the file that tells of it, are made up."""
    packages = [path for path in sys.path if path.endswith("site-packages")]
    said = subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-c", REFUSE, json.dumps([refused, files])], capture_output=True, text=True,
        env={"PYTHONPATH": ":".join([f"{ROOT}/src", *packages]), "PATH": os.environ["PATH"]}, timeout=120, check=True,
    ).stdout

    assert said.startswith("This machine cannot ")
    assert step in said.partition(":")[0]
    assert cause in said
    assert remedy in said


READ_ONLY = """
for mount in $(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts); do
    mount -o remount,bind,ro "$mount" || exit 77
done
exec "$@"
"""
LIMITS = """
from pathlib import Path
from trainmaster.local.doctor import findings
from trainmaster.local.home import Home
print(*(one.told for one in findings(Home(Path("/tmp/nowhere"))) if one.what == "limits"))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount control groups read-only")
def test_control_groups_that_are_read_only_are_found_and_no_reason_not_to_start() -> None:
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", sys.executable, "-c", LIMITS], capture_output=True,
        text=True, timeout=120, check=False)
    if done.returncode == 77:
        pytest.skip("control groups cannot be mounted anew here")

    assert "Read-only file system" in done.stdout, done.stderr
    assert "Cause: " in done.stdout
    assert "systemd-run --user --scope -p Delegate=yes" in done.stdout
    assert "'--cgroupns=private' and a writable /sys/fs/cgroup" in done.stdout
