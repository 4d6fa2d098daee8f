"""Becoming the user's command: the last steps between a fork of ours and the exec of a program, for starts and execs.

A shim starts the command of its container, and the helper's child that joined a running container starts another one
there. Both must be the same user with the same environment, directory and capabilities, so there is one way to do it.
The terminal, when one is wanted, is opened by the child after it gave up its rights: it then belongs to the right user,
and what a container may have put at /dev/ptmx is opened with no more than the container's own rights.

Small standard modules only: the shims carry this one.
"""

# pathlib is too large to carry
# ruff: noqa: PTH103

import errno
import fcntl
import os
import signal
import socket
import struct
import termios
from collections.abc import Sequence
from typing import TypedDict

from trainmaster.cluster.kubelet import linux
from trainmaster.cluster.kubelet.confinement import Confinement, LimitPlan
from trainmaster.cluster.kubelet.forks import fork_into, keep_only
from trainmaster.cluster.kubelet.records import Failed

_TERMINAL = b"terminal"


class Standing(TypedDict):
    """Who a command is in its container, and what it may use."""

    environment: dict[str, str]
    directory: str           # working directory in the container
    user: int
    group: int
    groups: list[int]
    capabilities: list[int]
    new_privileges: bool     # allowPrivilegeEscalation
    limits: LimitPlan


class Footing(Standing):
    """What every command of one container has in common."""

    privileged: bool
    rootless: bool           # a single user is mapped: there is nobody else to become
    host_network: bool       # the container shares the host's network


def launch(
    argv: Sequence[str], footing: Footing, streams: tuple[int, int, int] | None, confinement: Confinement
) -> tuple[int, int]:
    """Start a command on these descriptors, or without any on a terminal of its own. Raises Failed.

    The confinement was opened where the host's files can be seen, which here they cannot any more.
    Returns its pid and the master's end of the terminal, -1 without one.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)      # closed by a successful exec
    child = fork_into(lambda: _command(argv, footing, streams, confinement, theirs), "tm-start")
    theirs.close()
    terminal = -1
    with ours:
        while True:
            data, fds, _, _ = socket.recv_fds(ours, 4096, 1, socket.MSG_CMSG_CLOEXEC)
            if data != _TERMINAL:
                break
            terminal = fds[0] if fds else -1
    if data:
        os.waitpid(child, 0)
        if terminal >= 0:
            os.close(terminal)
        raise Failed("start the command", 0, data.decode(errors="replace"))
    return child, terminal


def resize(terminal: int, columns: int, rows: int) -> None:
    """Say how large the window is on the other side of a terminal; its foreground processes get SIGWINCH."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0))


def _command(
    argv: Sequence[str], footing: Footing, streams: tuple[int, int, int] | None, confinement: Confinement,
    trouble: socket.socket,
) -> None:
    try:
        confinement.enter()
        os.setsid()
        os.umask(0o022)
        os.makedirs(footing["directory"], mode=0o755, exist_ok=True)
        _lower(footing)
        for target, fd in enumerate(streams or _terminal(trouble)):
            os.dup2(fd, target)
        keep_only([trouble.fileno()])
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)        # Python ignores them, a command expects them
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(footing["directory"])
        environment = footing["environment"] if streams else {"TERM": "xterm", **footing["environment"]}
        os.execvpe(argv[0], list(argv), environment)  # noqa: S606  no shell is the point
    except OSError as error:
        trouble.send(_why(argv[0], error).encode()[:4096])
    except ValueError as error:                          # a NUL or "=" where none may be
        trouble.send(f"the command or its environment cannot be passed on: {error}".encode()[:4096])


def _terminal(parent: socket.socket) -> tuple[int, int, int]:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    socket.send_fds(parent, [_TERMINAL], [master])
    return slave, slave, slave


def _lower(footing: Footing) -> None:
    """Give up what a container does not get, in the one order in which each step is still allowed."""
    allowed = frozenset(footing["capabilities"])
    if not footing["privileged"]:
        linux.bound_capabilities(allowed)
    if not footing["rootless"]:
        os.setgroups(footing["groups"])
        os.setgid(footing["group"])
        os.setuid(footing["user"])
    if not footing["privileged"] and os.getuid() == 0:
        linux.set_capabilities(allowed)
    if not footing["new_privileges"]:
        linux.forbid_new_privileges()


def _why(program: str, error: OSError) -> str:
    if error.filename is not None and error.errno == errno.ENOENT and "/" not in program:
        return f'exec: "{program}": executable file not found in $PATH'
    if error.errno == errno.ENOEXEC:
        return f'exec: "{program}": exec format error (a script needs "#!" and its interpreter in its first line)'
    named = os.fsdecode(error.filename) if error.filename is not None else program
    where = f' "{named}"' if named != program else ""
    return f'exec: "{program}":{where} {(error.strerror or str(error)).lower()}'
