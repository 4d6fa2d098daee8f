"""The holder: PID 1 of the cluster's own namespaces. It holds them, reaps, and does nothing else.

Network, mounts and processes of all pods live inside its namespaces, so the host's network never gets a link and
everything of the cluster ends when the holder does: the kernel kills a PID namespace with its first process. Two things
follow. It must outlive agents (training goes on while one is restarted or upgraded), so it is nobody's child and found
again by its record; and it must never have a reason to crash, so there is no code in it worth naming.
"""

import contextlib
import json
import os
import select
import signal
import socket

from trainmaster.cluster.kubelet import linux, records
from trainmaster.cluster.kubelet.forks import fork_into, keep_only, stand
from trainmaster.cluster.kubelet.records import Failed, Step
from trainmaster.cluster.network import layout
from trainmaster.cluster.network.netlink import Netlink

BRIDGE = layout.BRIDGE
GATEWAY = layout.GATEWAY
PREFIX = layout.PREFIX
# Locally administered; fixed, because a bridge without an address of its own takes that of its lowest port.
BRIDGE_MAC = bytes((0x02, 0x54, 10, 88, 0, 1))

CAP_SYS_ADMIN = 21


def needs_user_namespace(status: str) -> bool:
    """Whether a process with this /proc/self/status must take the way of an ordinary user: root's way takes
    CAP_SYS_ADMIN, which root in a plain Docker container does not have."""
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return not int(line.split()[1], 16) >> CAP_SYS_ADMIN & 1
    return True


def find(run: str) -> tuple[int, dict[str, object]] | None:
    """The living holder of a runtime directory: its pidfd and record."""
    record = records.read(run, records.HOLDER)
    pidfd = records.open_process(record) if record else None
    return (pidfd, record) if pidfd is not None and record is not None else None


def alive(run: str | os.PathLike[str]) -> bool:
    """Whether the namespaces of a runtime directory still exist."""
    found = find(os.fspath(run))
    if found is not None:
        os.close(found[0])
    return found is not None


def end(run: str | os.PathLike[str], timeout: float = 60.0) -> bool:
    """Kill the holder, and with it everything in its namespaces. True once it is gone."""
    found = find(os.fspath(run))
    if found is None:
        return True
    pidfd, _ = found
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        # The kernel lets an init end only after everything in its PID namespace has.
        return bool(select.select([pidfd], [], [], timeout)[0])
    finally:
        os.close(pidfd)


def make(run: str, proc: int) -> int:
    """Start the holder and return its pidfd once bridge and record are there. Raises Failed.

    If another one was quicker (an agent that was killed may leave one just being made), that one is it.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = fork_into(lambda: _leave(run, proc, theirs), "tm-holder")
    theirs.close()
    with ours:
        data, fds, _, _ = socket.recv_fds(ours, 1 << 16, 1)
    os.waitpid(child, 0)
    if fds:
        return fds[0]
    if not data:
        raise Failed("start the holder", 0, "it ended without a word; see the node's log")
    message = json.loads(data)
    if message.get("taken") and (found := find(run)) is not None:
        return found[0]
    raise Failed.from_message(message)


def namespaces(rootless: bool) -> int:
    """What to join when entering the cluster."""
    inner = linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    return inner | (linux.CLONE_NEWUSER if rootless else 0)


def _leave(run: str, proc: int, report: socket.socket) -> None:
    keep_only([proc, report.fileno()])
    os.setsid()
    try:
        rootless = new_namespaces(proc)
        fork_into(lambda: _hold(run, proc, report, rootless), "tm-holder")
    except Failed as failed:
        report.send(json.dumps(failed.as_message()).encode())


def new_namespaces(proc: int) -> bool:
    """Leave the host's namespaces; the next child is PID 1 of the new ones. True when that took a user namespace."""
    handle = os.open("self/status", os.O_RDONLY, dir_fd=proc)
    status = os.read(handle, 1 << 16).decode()
    os.close(handle)
    rootless = needs_user_namespace(status)
    if rootless:
        uid, gid = os.geteuid(), os.getegid()
        with Step("make a user namespace"):
            linux.unshare(linux.CLONE_NEWUSER)
        with Step("map the user into the user namespace"):
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                handle = os.open(f"self/{name}", os.O_WRONLY, dir_fd=proc)
                os.write(handle, text.encode())
                os.close(handle)
    for flag, word in (
        (linux.CLONE_NEWNET, "network"), (linux.CLONE_NEWNS, "mount"), (linux.CLONE_NEWPID, "PID"),
        (linux.CLONE_NEWIPC | linux.CLONE_NEWUTS, "IPC and UTS"),
    ):
        with Step(f"make a {word} namespace"):
            linux.unshare(flag)
    return rootless


def furnish() -> None:
    """Make the cluster's namespaces usable: their own /proc, loopback and the bridge."""
    with Step("keep mounts to ourselves"):
        # Slave, not private: what the host mounts or unmounts later is seen here, and never kept busy by us.
        linux.propagation(linux.MS_SLAVE)
    with Step("mount /proc"):
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    link = Netlink()
    with Step("raise the loopback link"):
        link.raise_loopback()
    with Step("make the bridge"):
        bridge = link.make_bridge(BRIDGE, BRIDGE_MAC)
    with Step("give the bridge its address"):
        link.add_address(bridge, GATEWAY, PREFIX)
    with Step("make a route to the addresses of services"):
        link.add_route(layout.SERVICE_NETWORK, bridge)
        linux.set_sysctl("net/ipv4/ip_forward", "1")
        # A packet for a service comes in and goes out by the bridge; nobody shall be told of a shorter way.
        for name in ("all", "default", BRIDGE):
            linux.set_sysctl(f"net/ipv4/conf/{name}/send_redirects", "0")
    link.close()


def _hold(run: str, proc: int, report: socket.socket, rootless: bool) -> None:
    def claim() -> bool:
        furnish()
        with Step("write the holder's record"):
            return records.claim(run, records.HOLDER, {**records.identity_of_caller(proc), "rootless": rootless})

    stand(claim, report)
