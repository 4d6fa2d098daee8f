"""One pod from beginning to end in a process of its own: the real code, the whole sequence, and nothing left of it.

Run by `capability.probe` in a fresh small interpreter, because it must fork and join namespaces. Says on its output how
it went: `{"ok": true}` or the step that failed.
"""

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from trainmaster.cluster.kubelet import holder, linux, records, sandbox, shim
from trainmaster.cluster.kubelet.forks import fork_into
from trainmaster.cluster.kubelet.records import Failed, Step

_PATIENCE = 20.0


def main(run: str) -> None:
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        keep = holder.make(run, proc)
        try:
            _one_pod(run, proc, keep)
        finally:
            signal.pidfd_send_signal(keep, signal.SIGKILL)
            select.select([keep], [], [], _PATIENCE)
    except Failed as failed:
        said: dict[str, Any] = failed.as_message()
    else:
        said = {"ok": True}
    sys.stdout.write(json.dumps(said))


def _one_pod(run: str, proc: int, keep: int) -> None:
    found = holder.find(run)
    rootless = bool(found and found[1].get("rootless"))
    pod = f"{run}/pod"
    attempt = f"{pod}/main/0"
    for directory in (attempt, f"{pod}/.shm"):
        os.makedirs(directory, mode=0o700)  # noqa: PTH103  pathlib is too large to carry
    with Step("join the cluster's namespaces"):
        linux.setns(keep, holder.namespaces(rootless))
    pause = _asked(lambda report: sandbox.make(_sandbox(pod), proc, report), "make a pod")
    process = _asked(lambda report: shim.start(_container(run, pod, attempt, rootless), pause, None, proc, report),
                     "start")
    if not select.select([process], [], [], _PATIENCE)[0]:
        raise Failed("run a command in a pod", 0, "it does not end")
    end = records.read(attempt, records.EXIT) or {}
    if end.get("code") != 0:
        raise Failed("run a command in a pod", 0, f"it ended with {end.get('code')}: {end.get('message')}")


def _asked(body: Callable[[socket.socket], None], what: str) -> int:
    """Run the body of a helper's child and return the descriptor it answers with."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(_PATIENCE)
    child = fork_into(lambda: body(theirs), "tm-trial")
    theirs.close()
    with ours:
        try:
            data, fds, _, _ = socket.recv_fds(ours, 1 << 16, 1)
        except TimeoutError as error:
            os.kill(child, signal.SIGKILL)
            raise Failed(what, 0, "no answer came") from error
    os.waitpid(child, 0)
    if fds:
        return fds[0]
    message = json.loads(data) if data else {}
    if "step" in message:
        raise Failed.from_message(message)
    raise Failed(what, 0, str(message.get("start_error") or "it ended without a word"))


def _sandbox(pod: str) -> sandbox.SandboxPlan:
    return {
        "directory": pod, "hostname": "trial", "address": "10.88.0.2", "prefix": holder.PREFIX,
        "gateway": holder.GATEWAY, "bridge": holder.BRIDGE, "port": "vtrial", "host_network": False,
        "sysctls": {}, "memory": [{"path": f"{pod}/.shm", "size": 0}],
    }


def _container(run: str, pod: str, attempt: str, rootless: bool) -> shim.ContainerPlan:
    return {
        "attempt_directory": attempt, "log": f"{attempt}/log", "log_bytes": 0, "log_files": 0,
        "stdin": False, "stdin_once": False, "tty": False,
        "root": {
            "rootless": rootless, "host_network": False, "scratch": f"{attempt}/root",
            "etc": {"hosts": "127.0.0.1 localhost\n"},
            "image": "", "homes": ["/root", "/home"], "hidden": [run], "private": [], "devices": [],
            "shm": f"{pod}/.shm", "binds": [],
            "privileged": False, "readonly": False,
        },
        "argv": ["/bin/true"], "environment": {"PATH": "/usr/bin:/bin"}, "directory": "/", "user": 0, "group": 0,
        "groups": [], "capabilities": sorted(linux.DEFAULT_CAPABILITIES), "new_privileges": False,
        "share_processes": False,
        "facts": {},
        "limits": {"groups": [], "watch": 0, "score": 0, "processes": 0},
    }
