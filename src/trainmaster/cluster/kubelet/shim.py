"""The shim: init of one container. It reaps, writes the container's output to its log, and its end to disk.

One per attempt, PID 1 of the attempt's own PID namespace, so that the attempt's end is the end of everything it forked
away. It depends on nobody: when the agent is gone it goes on writing the log, and the exit code waits on disk for the
next agent. The user's command is its child and not itself PID 1: the kernel would then ignore a SIGTERM for which the
command has no handler, zombies would be the command's problem, and nobody would be left to write the end down.

It lives in the container's root with two directories of its own attempt open; whoever in the container managed to look
into it would find nothing but the container's own log.
"""

# pathlib is too large to carry
# ruff: noqa: PTH103, PTH123, PTH208

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import Any, NamedTuple

from trainmaster.cluster.kubelet import binds, linux, records, rootfs
from trainmaster.cluster.kubelet.command import Footing, Standing, launch
from trainmaster.cluster.kubelet.confinement import Confinement
from trainmaster.cluster.kubelet.doorway import Doorway
from trainmaster.cluster.kubelet.forks import become_quiet, fork_into, keep_only
from trainmaster.cluster.kubelet.output import STDERR, STDOUT, Log
from trainmaster.cluster.kubelet.records import Failed, Step
from trainmaster.cluster.kubelet.sandbox import pod_namespaces

# Asks the shim to kill everything in the container and to report it. A SIGKILL for the shim itself would do the first
# but lose the second. (glibc keeps the lowest real-time signals for itself.)
KILL_ALL = signal.SIGRTMIN + 13
START_ERROR = 128           # the exit code that containerd reports for a command that could not be started
_PASSED_ON = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGWINCH,
    signal.SIGCONT, signal.SIGTSTP, signal.SIGALRM,
)
_AWAITED = (*_PASSED_ON, KILL_ALL, signal.SIGCHLD)
_FAREWELL_SECONDS = 1.0     # how long those who look on may take to hear the last of it
_ROUNDS = 20                # of killing what a container without a PID namespace of its own has forked
_DRAIN_SECONDS = 2.0        # how long output is awaited from whoever still holds the pipe after all processes are dead


class ContainerPlan(Standing):
    """What the agent asks for."""

    attempt_directory: str
    log: str                 # directory of the attempt's log
    log_bytes: int           # size of one file of it
    log_files: int           # how many are kept; 0: one, without a bound
    root: rootfs.RootPlan
    argv: list[str]
    stdin: bool              # keep an input open for those who attach
    stdin_once: bool         # until the first of them is done
    tty: bool
    share_processes: bool    # it sees another container's processes: no PID namespace of its own
    facts: dict[str, Any]    # what a later agent must know of this attempt, kept in its record


def start(plan: ContainerPlan, pause: int, target: int | None, proc: int, report: socket.socket) -> None:
    """Body of a child of the helper: join the pod, be the init of a nested PID namespace, or be in the `target`'s.

    Answers `report` with a pidfd of the shim as soon as the command runs, or with what failed.
    """
    # From before the record is written until the handlers are there, signals wait: whoever finds the record may send
    # one at once, and the kernel drops what an init has no handler for.
    signal.pthread_sigmask(signal.SIG_SETMASK, _AWAITED)
    try:
        with Step("join the pod's namespaces"):
            linux.setns(pause, pod_namespaces(plan["root"]["host_network"]))
            if target is not None:
                linux.setns(target, linux.CLONE_NEWPID)
        # A process that joined a PID namespace is not in it, its child is; and only from within can one be nested.
        fork_into(lambda: _nest(plan, proc, report), "tm-shim")
    except Failed as failed:
        report.send(json.dumps(failed.as_message()).encode())


def _nest(plan: ContainerPlan, proc: int, report: socket.socket) -> None:
    try:
        with Step("make the container's namespaces"):
            linux.unshare(linux.CLONE_NEWNS | (0 if plan["share_processes"] else linux.CLONE_NEWPID))
        fork_into(lambda: _shim(plan, proc, report), "tm-shim")
    except Failed as failed:
        report.send(json.dumps(failed.as_message()).encode())


def _shim(plan: ContainerPlan, proc: int, report: socket.socket) -> None:
    keep_only([proc, report.fileno()])
    os.setsid()
    try:
        if plan["share_processes"]:
            with Step("become the parent of the container's orphans"):
                linux.adopt_orphans()
        with Step("open the attempt's directory"):
            directory = os.open(plan["attempt_directory"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            os.makedirs(plan["log"], mode=0o700, exist_ok=True)
            log = os.open(plan["log"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        volumes = binds.opened(plan["root"]["binds"])
        with Step("write the shim's record"):
            record = {**records.identity_of_caller(proc), "created": time.time_ns(), **plan["facts"]}
            first = records.claim(directory, records.SHIM, record)
    except Failed as failed:
        report.send(json.dumps(failed.as_message()).encode())
        return
    os.close(proc)
    if not first:
        report.send(json.dumps({"taken": True}).encode())
        return
    # From here on this attempt has happened: whatever comes, its end is written down.
    run = _Run(directory)
    footing = _footing(plan)
    try:
        with Step("open the log and the shim's door"):
            run.log = Log(log, plan["log_bytes"], plan["log_files"])
            door = Doorway(directory, footing)
        with Step("open the container's control groups"):
            confinement = Confinement(plan["limits"])
        rootfs.build(plan["root"], volumes)
        started = _launched(plan, footing, confinement)
    except Failed as failed:
        run.record_start_error(str(failed))
        _answer(report, {"start_error": str(failed)}, with_self=False)
        return
    _answer(report, {"started": run.started}, with_self=True)
    report.close()
    become_quiet()
    if not plan["root"]["privileged"] and not plan["root"]["rootless"]:
        linux.bound_capabilities(frozenset(plan["capabilities"]) | {5})
        linux.set_capabilities(frozenset(plan["capabilities"]) | {5})     # 5: KILL, whatever user the command became
        linux.set_dumpable(False)
    run.attend(started, door, confinement, once=plan["stdin_once"])


def _footing(plan: ContainerPlan) -> Footing:
    return {
        "environment": plan["environment"], "directory": plan["directory"], "user": plan["user"],
        "group": plan["group"], "groups": plan["groups"], "capabilities": plan["capabilities"],
        "new_privileges": plan["new_privileges"], "privileged": plan["root"]["privileged"],
        "rootless": plan["root"]["rootless"], "limits": plan["limits"], "host_network": plan["root"]["host_network"],
    }


class _Started(NamedTuple):
    """A command and our ends of its streams. With a terminal all of them are one."""

    child: int
    streams: dict[int, int]      # descriptor -> which it is
    stdin: int
    terminal: bool


def _launched(plan: ContainerPlan, footing: Footing, confinement: Confinement) -> _Started:
    if plan["tty"]:
        child, terminal = launch(plan["argv"], footing, None, confinement)
        return _Started(child, {terminal: STDOUT}, terminal, terminal=True)
    if plan["stdin"]:
        theirs, stdin = os.pipe2(os.O_CLOEXEC)
    else:
        theirs, stdin = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), -1
    out, out_write = os.pipe2(os.O_CLOEXEC)
    err, err_write = os.pipe2(os.O_CLOEXEC)
    try:
        child, _ = launch(plan["argv"], footing, (theirs, out_write, err_write), confinement)
    finally:
        for fd in (theirs, out_write, err_write):
            os.close(fd)
    return _Started(child, {out: STDOUT, err: STDERR}, stdin, terminal=False)


class _Run:
    """The life of one attempt, from its command's start to its record."""

    log: Log

    def __init__(self, directory: int) -> None:
        self._directory = directory
        self._confinement: Confinement | None = None
        self.started = time.time_ns()
        self._status: int | None = None
        self._finished = 0
        self._child = 0
        self._dropped = 0

    def record_start_error(self, message: str) -> None:
        now = time.time_ns()
        self._write({"code": START_ERROR, "signal": 0, "started": 0, "finished": now, "reason": "StartError",
                     "message": message})

    def attend(self, started: _Started, door: Doorway, confinement: Confinement, *, once: bool) -> None:
        """Move output and pass signals on until the command, and then everything else in the container, has ended."""
        self._child = started.child
        self._confinement = confinement
        wake = _signals()
        streams = dict(started.streams)
        poller = select.poll()
        for fd in (*streams, wake):
            poller.register(fd, select.POLLIN)
        door.attend(poller, started.stdin, terminal=started.terminal, once=once)
        until = 0.0
        while streams and not (until and time.monotonic() > until):
            for fd, events in self._next(poller, until):
                if fd == wake:
                    self._handle(os.read(wake, 4096))
                    continue
                door.handle(fd, events)
                if fd in streams and events & ~select.POLLOUT and not self._move(fd, streams[fd], door):
                    poller.unregister(fd)
                    door.lost(fd)
                    os.close(fd)
                    del streams[fd]
            if self._status is not None and not until:
                until = time.monotonic() + _DRAIN_SECONDS
        while self._status is None:            # the command closed its output and goes on
            for fd, events in self._next(poller):
                if fd == wake:
                    self._handle(os.read(wake, 4096))
                else:
                    door.handle(fd, events)
        code = os.waitstatus_to_exitcode(self._status)
        reason = "OOMKilled" if code and confinement.killed() else ""
        self._write({"code": code if code >= 0 else 128 - code, "signal": max(0, -code), "started": self.started,
                     "finished": self._finished, "reason": reason, "message": "", "dropped": self._dropped})
        door.farewell(_FAREWELL_SECONDS)

    def _next(self, poller: select.poll, until: float = 0.0) -> list[tuple[int, int]]:
        """What is ready to be read; nothing, when a look at the memory was due or the time `until` is over."""
        now = time.monotonic()
        waits = [until - now] if until else []
        look = self._confinement.wait(now) if self._confinement is not None and self._status is None else None
        waits += [look] if look is not None else []
        ready = poller.poll(max(0.0, min(waits)) * 1000 if waits else None)
        if look is not None and self._confinement is not None and self._confinement.exceeded(time.monotonic()):
            _kill_everything()
        return ready

    def _handle(self, numbers: bytes) -> None:
        for number in numbers:
            if number == KILL_ALL:
                _kill_everything()
            elif number == signal.SIGCHLD:
                self._reap()
            elif self._status is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._child, number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._child:
                    self._status, self._finished = status, time.time_ns()
                    # A container ends with its command: what it left behind must not hold the pod or the pipes open.
                    _kill_everything()

    def _move(self, fd: int, stream: int, door: Doorway) -> bool:
        """Output from the pipe to the log and to those who look on; False at its end."""
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            data = b""                     # what a terminal says when nobody has its other side open any more
        if data:
            door.show(stream, data)
        self._dropped += self.log.feed(stream, data, time.time_ns())
        return bool(data)

    def _write(self, record: dict[str, Any]) -> None:
        records.write(self._directory, records.EXIT, {"protocol": records.PROTOCOL, **record})


def _answer(report: socket.socket, message: dict[str, Any], *, with_self: bool) -> None:
    # BrokenPipe: the agent is gone; the next one finds us by our record.
    fds = [os.pidfd_open(os.getpid())] if with_self else []
    with contextlib.suppress(BrokenPipeError):
        socket.send_fds(report, [json.dumps(message).encode()], fds)
    for fd in fds:
        os.close(fd)


def _signals() -> int:
    """A descriptor on which the numbers of arriving signals can be read."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in _AWAITED:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return read


def _kill_everything() -> None:
    """Every process of the container; the kernel spares the init that asks."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(-1, signal.SIGKILL)
        return
    for _ in range(_ROUNDS):                   # whoever is quick enough to fork meanwhile is found in the next round
        found = _descendants()
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _descendants() -> list[int]:
    """Where containers share their processes: those that came from us. Orphans come back to us, as to an init."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    parents[int(name)] = int(parent)
    mine, found = {os.getpid()}, list[int]()
    while more := [pid for pid, parent in parents.items() if parent in mine and pid not in mine]:
        mine.update(more)
        found += more
    return found
