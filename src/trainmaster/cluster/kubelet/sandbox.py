"""A pod's own namespaces, and the pause process that holds them.

Network, UTS, IPC and PID namespace belong to the pod and must outlive any of its containers (init containers end,
others restart while the address stays), so neither a container nor its shim can hold them: a pause process does. It is
PID 1 of the pod's PID namespace, inside which every container gets a nested one of its own, as on Kubernetes. So ending
the pause process ends the whole pod by the kernel's hand, whatever its processes have forked. The pod's mount namespace
holds what its containers share and no host may see: volumes in memory.
"""

import json
import os
import socket
import stat
from typing import TypedDict

from trainmaster.cluster.kubelet import linux, records
from trainmaster.cluster.kubelet.forks import fork_into, stand
from trainmaster.cluster.kubelet.records import Failed, Step
from trainmaster.cluster.network.netlink import Netlink, mac_of, wait_until_forwarding

POD_NAMESPACES = linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC | linux.CLONE_NEWPID


class MemoryVolume(TypedDict):
    """A tmpfs that the pod's containers share."""

    path: str      # an empty directory of the pod
    size: int      # bytes; 0: the kernel's default, half the memory


class SandboxPlan(TypedDict):
    """What the agent asks for."""

    directory: str           # the pod's directory below the runtime directory
    hostname: str
    address: str
    prefix: int
    gateway: str
    bridge: str
    port: str                # name of the bridge's end of the pod's link
    host_network: bool       # none of these: the pod shares the host's network
    memory: list[MemoryVolume]
    sysctls: dict[str, str]  # path below /proc/sys -> value


def make(plan: SandboxPlan, proc: int, report: socket.socket) -> None:
    """Body of a child of the helper. Answers `report` with the pidfd of the pause process, or with what failed."""
    try:
        _prepare(plan)
        fork_into(lambda: _pause(plan, proc, report), "tm-pause")
    except Failed as failed:
        report.send(json.dumps(failed.as_message()).encode())


def pod_namespaces(host_network: bool) -> int:
    """What to make for a pod, and to join in order to enter it."""
    return POD_NAMESPACES & ~linux.CLONE_NEWNET if host_network else POD_NAMESPACES


def _prepare(plan: SandboxPlan) -> None:
    if plan["host_network"]:
        with Step("make the pod's namespaces"):
            linux.unshare(pod_namespaces(host_network=True))
    else:
        _connect(plan)
    with Step("set the pod's host name"):
        linux.set_hostname(plan["hostname"])
    for name, value in plan["sysctls"].items():
        with Step(f"set the pod's sysctl {name}"):
            linux.set_sysctl(name, value)
    with Step("mount the pod's volumes in memory"):
        linux.propagation(linux.MS_PRIVATE)
        for volume in plan["memory"]:
            linux.mount("tmpfs", volume["path"], "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, _options(volume))


def _options(volume: MemoryVolume) -> str:
    """Open to everybody, and the group's that the directory was given to."""
    facts = os.stat(volume["path"])  # noqa: PTH116  pathlib is too large to carry
    group = f",gid={facts.st_gid}" if facts.st_gid else ""
    size = f",size={volume['size']}" if volume["size"] else ""
    return f"mode={stat.S_IMODE(facts.st_mode) | 0o1777:o}{group}{size}"


def _connect(plan: SandboxPlan) -> None:
    """Leave the cluster's namespaces for the pod's own, joined to it by a link."""
    # These two stay in the cluster's network, where the bridge is, when we leave it below.
    cluster, news = Netlink(), Netlink(news=True)
    with Step("find the bridge"):
        bridge = socket.if_nametoindex(plan["bridge"])
    with Step("make the pod's namespaces"):
        linux.unshare(POD_NAMESPACES)
    with Step("set the pod's network options"):
        linux.set_sysctl("net/ipv4/ip_unprivileged_port_start", "0")
        # One address family: half the name queries, and no wait for duplicate detection. Said for links to come: to say
        # it of a link takes a lock that the kernel does not wait for but tries again and again, burning a core, while
        # other pods' links are made.
        linux.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")
    with Step("make the pod's link"):
        cluster.make_pair(plan["port"], bridge, "eth0", mac_of(plan["address"]), os.getpid())
    pod = Netlink()
    with Step("configure the pod's link"):
        index = socket.if_nametoindex("eth0")
        pod.raise_loopback()
        pod.add_address(index, plan["address"], plan["prefix"])
        pod.raise_link(index)
        pod.add_default_route(index, plan["gateway"])
    pod.close()
    with Step("wait for the pod's link"):
        wait_until_forwarding(plan["port"], cluster, news)
    cluster.close()
    news.close()


def _pause(plan: SandboxPlan, proc: int, report: socket.socket) -> None:
    def claim() -> bool:
        with Step("write the sandbox's record"):
            record = {**records.identity_of_caller(proc), "address": plan["address"]}
            return records.claim(plan["directory"], records.SANDBOX, record)

    stand(claim, report)
