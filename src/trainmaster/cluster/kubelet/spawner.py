"""The helper that forks: small, single-threaded, inside the cluster's namespaces.

Forking a pod from the agent would copy the page tables of a large threaded process (110 ms instead of 7) and joining a
user namespace is allowed only to a process with one thread, so the agent starts this program, asks it through a socket
for sandboxes, containers and sockets, and gets back descriptors. It keeps no state: when the agent ends, it ends, and
what it forked belongs to the holder.

A request is one datagram with a JSON head and descriptors: first where to answer, then what the request needs. Anything
long comes as a memory file, because a container's environment may exceed a datagram, and secrets in it touch no disk.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from trainmaster.cluster.kubelet import entering, holder, linux, sandbox, shim
from trainmaster.cluster.kubelet.forks import fork_into, keep_only
from trainmaster.cluster.kubelet.records import Failed, Step

_DESCRIPTORS = 6


def main(control: int, run: str, *, host_network: bool = False) -> None:
    """Serve the agent on a descriptor until it is gone."""
    linux.set_process_name("tm-spawner")
    os.umask(0o022)          # what containers see must be readable to them, whatever the umask of who typed `up`
    channel = socket.socket(fileno=control)
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _enter(run, proc, host_network)
    except Failed as failed:
        channel.send(json.dumps(failed.as_message()).encode())
        return
    channel.send(b"{}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)       # what we fork is reaped by the kernel
    gc.collect()
    gc.freeze()              # a collection in a child would touch, and so copy, every page that it shares with us
    while _serve_one(channel, proc):
        pass


def _enter(run: str, proc: int, host_network: bool) -> None:
    found = holder.find(run)
    pidfd = found[0] if found else holder.make(run, proc)
    record = holder.find(run)
    if record is None:
        raise Failed("find the holder", 0, "it ended as soon as it was started")
    with Step("join the cluster's namespaces"):
        joined = holder.namespaces(bool(record[1].get("rootless")))
        linux.setns(pidfd, joined & ~linux.CLONE_NEWNET if host_network else joined)
    os.close(pidfd)
    os.close(record[0])
    os.chdir("/")


def _serve_one(channel: socket.socket, proc: int) -> bool:
    data, fds, _, _ = socket.recv_fds(channel, 1 << 16, _DESCRIPTORS)
    if not data:
        return False
    try:
        _serve(json.loads(data), fds, proc)
    finally:
        for fd in fds:
            os.close(fd)
    return True


def _serve(request: dict[str, Any], fds: list[int], proc: int) -> None:
    report = socket.socket(fileno=os.dup(fds[0]))
    with report:
        if request["do"] == "sandbox":
            _fork(lambda: sandbox.make(_plan(fds[1]), proc, report), "tm-pause", [proc, report.fileno(), *fds])
        elif request["do"] == "container":
            target = fds[3] if len(fds) > 3 else None
            _fork(lambda: shim.start(_plan(fds[1]), fds[2], target, proc, report), "tm-shim",
                  [proc, report.fileno(), *fds])
        elif request["do"] == "exec":
            streams = (fds[3], fds[4], fds[5]) if len(fds) == _DESCRIPTORS else None      # none: a terminal
            _fork(lambda: entering.enter(_plan(fds[1]), fds[2], streams, report), "tm-exec", [report.fileno(), *fds])
        elif request["do"] == "pod sockets":
            _fork(lambda: _pod_sockets(fds[1], report), "tm-sockets", [report.fileno(), *fds])
        elif request["do"] == "socket":
            _socket(request, report)


def _fork(body: Callable[[], None], name: str, wanted: list[int]) -> None:
    def child() -> None:
        keep_only(wanted)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        body()

    fork_into(child, name)


def _plan(memory: int) -> Any:
    size = os.fstat(memory).st_size
    return json.loads(os.pread(memory, size, 0))


def _pod_sockets(pause: int, report: socket.socket) -> None:
    """Two TCP sockets, of each family, in the network of a pod; where a socket was made, it stays."""
    try:
        with Step("join the pod's network"):
            linux.setns(pause, linux.CLONE_NEWNET)
            pair = [socket.socket(family, socket.SOCK_STREAM) for family in (socket.AF_INET, socket.AF_INET6)]
    except Failed as failed:
        report.send(json.dumps(failed.as_message()).encode())
        return
    with contextlib.suppress(BrokenPipeError):      # who asked has gone
        socket.send_fds(report, [b"{}"], [each.fileno() for each in pair])


def _socket(request: dict[str, Any], report: socket.socket) -> None:
    """A socket in the cluster's network; the agent itself stays in the host's."""
    bind = request["bind"]
    where = f"listen on {bind[0]}:{bind[1]}" if bind else "make a socket"
    made = None
    try:
        with Step(f"{where} in the cluster's network"):
            made = socket.socket(request["family"], request["kind"], request["protocol"])
            if bind:
                if request["kind"] == socket.SOCK_STREAM:
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                made.bind((bind[0], bind[1]))
                if request["kind"] == socket.SOCK_STREAM:
                    made.listen(128)
        with contextlib.suppress(BrokenPipeError):      # who asked has gone
            socket.send_fds(report, [b"{}"], [made.fileno()])
    except Failed as failed:
        report.send(json.dumps(failed.as_message()).encode())
    finally:
        if made is not None:
            made.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
