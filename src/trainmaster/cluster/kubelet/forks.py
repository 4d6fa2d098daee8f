"""Forking without exec: the child must never come back into its parent's code, nor keep its parent's files.

The helper forks every pause and shim instead of executing a fresh interpreter: a forked one costs about 1 MB of its own
and half a millisecond, a fresh one four times the memory and fifty times the time.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable

from trainmaster.cluster.kubelet import linux
from trainmaster.cluster.kubelet.records import Failed


def fork_into(body: Callable[[], None], name: str) -> int:
    """Run `body` in a child and return the child's pid. The child ends when `body` does, whatever happens in it."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        linux.set_process_name(name)
        body()
        code = 0
    except BaseException:  # noqa: BLE001  an exception that left this frame would run the parent's code twice
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def keep_only(wanted: Iterable[int]) -> None:
    """Close every descriptor except the standard three and these."""
    last = 2
    for fd in sorted(wanted):
        os.closerange(last + 1, fd)
        last = fd
    os.closerange(last + 1, _limit())


def become_quiet() -> None:
    """Give up the standard three, so that a process that lives on holds nobody's terminal or pipe open."""
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def stand(claim: Callable[[], bool], report: socket.socket) -> None:
    """Hold the namespaces one is in, if the claim to that was the first; whoever asked is told in any case."""
    try:
        first = claim()
    except Failed as failed:
        report.send(json.dumps(failed.as_message()).encode())
        return
    if not first:
        report.send(json.dumps({"taken": True}).encode())
        return
    with contextlib.suppress(BrokenPipeError):   # whoever asked is gone; the next agent finds us by the record
        socket.send_fds(report, [b"{}"], [os.pidfd_open(os.getpid())])
    os.chdir("/")
    become_quiet()
    keep_only([])
    reap_for_ever()


def reap_for_ever() -> None:
    """Be an init: collect whatever ends below us, until we are killed or told to end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    wanted = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        if signal.sigwait(wanted) == signal.SIGTERM:
            return


def _limit() -> int:
    return min(1 << 20, os.sysconf("SC_OPEN_MAX"))
