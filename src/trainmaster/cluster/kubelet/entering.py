"""Another command in a container that runs: the helper's side of exec.

A child of the helper joins the namespaces of the container through its shim, starts the command inside, and waits for
it outside. So the command is in the container's PID namespace and ends with it, while whoever reports its end is not
and cannot be reached from there. The agent's end of the report socket is the command's lease of life: when it is
closed, because the client went away, a time-out passed or the agent died, the command is hung up on and then killed.
Rejected: letting the shim start it. The shim has given up the rights that becoming another user takes.
"""

import contextlib
import json
import os
import select
import signal
import socket
from typing import Any, TypedDict

from trainmaster.cluster.kubelet import linux
from trainmaster.cluster.kubelet.command import Footing, launch
from trainmaster.cluster.kubelet.confinement import Confinement
from trainmaster.cluster.kubelet.forks import become_quiet
from trainmaster.cluster.kubelet.records import Failed, Step
from trainmaster.cluster.kubelet.sandbox import pod_namespaces

_PARTING_SECONDS = 2.0      # between the hang-up and the kill


class ExecPlan(TypedDict):
    """What the agent asks for."""

    argv: list[str]
    footing: Footing


def enter(plan: ExecPlan, shim: int, streams: tuple[int, int, int] | None, report: socket.socket) -> None:
    """Body of a child of the helper. Answers `report` when the command runs (with its terminal, if it has one), and
    again with how it ended; or with what failed."""
    try:
        with Step("open the container's control groups"):
            confinement = Confinement(plan["footing"]["limits"])
        with Step("join the container's namespaces"):
            linux.setns(shim, pod_namespaces(plan["footing"]["host_network"]))
        with Step("start the command"):
            child, terminal = launch(plan["argv"], plan["footing"], streams, confinement)
    except Failed as failed:
        _tell(report, failed.as_message())
        return
    for fd in streams or ():
        os.close(fd)
    with contextlib.suppress(OSError):      # a container that has no /dev/null of its own
        become_quiet()
    _tell(report, {"started": True}, *([terminal] if terminal >= 0 else []))
    if terminal >= 0:
        os.close(terminal)
    status = _awaited(child, report)
    code = os.waitstatus_to_exitcode(status)
    _tell(report, {"code": code if code >= 0 else 128 - code, "signal": max(0, -code)})


def _awaited(child: int, report: socket.socket) -> int:
    """How the child ended, which it is made to when nobody listens any more."""
    pidfd = os.pidfd_open(child)
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    poller.register(report, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poller.poll()}
        if pidfd in ready:
            break
        poller.unregister(report)
        for number, patience in ((signal.SIGHUP, _PARTING_SECONDS), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, number)       # it leads a session, so its group has its number
            if poller.poll(None if patience is None else patience * 1000):
                break
        break
    return os.waitpid(child, 0)[1]


def _tell(report: socket.socket, message: dict[str, Any], *fds: int) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        socket.send_fds(report, [json.dumps(message).encode()], fds)
