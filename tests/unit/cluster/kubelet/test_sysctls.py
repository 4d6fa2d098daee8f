"""Settings of the kernel that pods want."""

from typing import Any

import pytest

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.sysctls import refusal, wanted


def pod(*names: str, **spec: Any) -> Object:
    return {"spec": {"securityContext": {"sysctls": [{"name": name, "value": "1"} for name in names]}, **spec}}


@pytest.mark.parametrize(("refused", "thing"), [
    pytest.param(False, {"spec": {}}, id="a pod that wants none"),
    pytest.param(False, pod("kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies"), id="those that are safe"),
    pytest.param(False, pod("net/ipv4/tcp_syncookies"), id="written with slashes"),
    pytest.param(True, pod("kernel.shm_rmid_forced", "vm.swappiness"), id="one of the machine's"),
    pytest.param(True, pod("kernel.msgmax"), id="one that is the pod's own and may do harm"),
    pytest.param(True, pod("net.ipv4.tcp_syncookies", hostNetwork=True), id="one of a network that is not its own"),
    pytest.param(False, pod("kernel.shm_rmid_forced", hostNetwork=True), id="another, in the machine's network"),
])
def test_what_is_refused(refused: bool, thing: Object) -> None:
    assert refused == (refusal(thing) is not None)


def test_what_is_set() -> None:
    assert {"kernel/shm_rmid_forced": "1", "net/ipv4/tcp_rmem": "1"} == \
        wanted(pod("kernel.shm_rmid_forced", "net/ipv4/tcp_rmem"))
