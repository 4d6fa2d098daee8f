"""The protocol on disk between processes of different lives: who runs, and how it ended.

Holder, pause and shim outlive the agent that asked for them, so what a later agent must know is written by the process
it is about, never by the one that asked: `claim` makes the record and takes the name in one atomic step, so of two
processes asked to be the same attempt of a container only one can be it, and at no moment does one run unrecorded.
A process is named by pid, start time and boot: a pid alone may by now be somebody else's.

Layout below the runtime directory (all 0700):
    holder.json                                 the holder
    pods/<uid>/pod.json                         what the agent must know to clean up once the object is gone
    pods/<uid>/sandbox.json                     the pause process, and the pod's address
    pods/<uid>/<container>/<attempt>/shim.json  the shim: this attempt was started
    pods/<uid>/<container>/<attempt>/exit.json  this attempt has ended, and how
    pods/<uid>/<container>/<attempt>/verdict.json  the agent found that this attempt must end, and why

Small standard modules only: the forked processes carry this one.
"""

# pathlib is too large to carry
# ruff: noqa: PTH118, PTH123

import json
import os
from typing import Any, TypedDict

# What is here means the same to every release with this number, which may only add to it. A release with a larger one
# reads this one, too; one with a smaller one keeps its hands off (`newest`).
PROTOCOL = 1

HOLDER = "holder.json"
POD = "pod.json"
SANDBOX = "sandbox.json"
SHIM = "shim.json"
EXIT = "exit.json"
VERDICT = "verdict.json"
FORMER = "former.json"      # beside what a pod that is gone left: whose it was


class Failed(Exception):
    """A step of making a sandbox that the kernel refused; travels between processes as a dictionary."""

    def __init__(self, step: str, number: int, text: str) -> None:
        super().__init__(f"{step}: {text}")
        self.step = step
        self.number = number
        self.text = text

    def as_message(self) -> dict[str, Any]:
        return {"step": self.step, "errno": self.number, "text": self.text}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> "Failed":
        return cls(str(message.get("step", "")), int(message.get("errno", 0)), str(message.get("text", "")))


class Identity(TypedDict):
    """Which process, beyond doubt."""

    protocol: int
    pid: int
    start: int   # clock ticks since boot, field 22 of /proc/PID/stat
    boot: str


class Step:
    """`with Step("make the bridge"):` turns an OSError into a Failed that says during what."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise Failed(self._name, error.errno or 0, str(error.strerror or error)) from error


def write(directory: int | str, name: str, record: Any) -> None:
    """Put a whole record in place of the one of that name, or nothing."""
    handle = _open_directory(directory)
    try:
        temporary = _temporary(handle, name, record)
        os.rename(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    finally:
        os.close(handle)


def claim(directory: int | str, name: str, record: Any) -> bool:
    """Like write, but only the first wins; False for whoever comes later."""
    handle = _open_directory(directory)
    try:
        temporary = _temporary(handle, name, record)
        try:
            os.link(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary, dir_fd=handle)
        return True
    finally:
        os.close(handle)


def read(directory: str, name: str) -> dict[str, Any] | None:
    """The record, or None when there is none. Records appear whole, so one that cannot be read is not one of ours."""
    try:
        with open(os.path.join(directory, name), "rb") as file:
            found = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def identity_of_caller(proc: int) -> Identity:
    """Who the calling process is to somebody outside, read through `proc`, a descriptor of the host's /proc.

    The link `self` of a proc file system gives the pid that the caller has in *that* file system's PID namespace.
    """
    pid = int(os.readlink("self", dir_fd=proc))
    return {"protocol": PROTOCOL, "pid": pid, "start": _start_time(pid, proc), "boot": _boot(proc)}


def open_process(record: dict[str, Any]) -> int | None:
    """A pidfd of the process a record names, or None when that process is gone."""
    try:
        pid, start, boot = int(record["pid"]), int(record["start"]), record["boot"]
        pidfd = os.pidfd_open(pid)
    except (KeyError, TypeError, ValueError, ProcessLookupError):
        return None
    except OSError as error:
        if error.errno == 22:   # EINVAL: the pid is now a thread's
            return None
        raise
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _boot(proc) == boot and _start_time(pid, proc) == start and not _is_zombie(pid, proc):
            return pidfd
    except (FileNotFoundError, ProcessLookupError):
        pass
    finally:
        os.close(proc)
    os.close(pidfd)
    return None


def newest(run: str) -> int:
    """The largest protocol that processes speak which live below a runtime directory; 0 if there are none."""
    places = [(run, HOLDER)]
    for folder, _, names in os.walk(os.path.join(run, "pods")):
        places += [(folder, name) for name in (SANDBOX, SHIM) if name in names]
    found = 0
    for folder, name in places:
        record = read(folder, name)
        if record and (pidfd := open_process(record)) is not None:
            os.close(pidfd)
            found = max(found, int(record.get("protocol") or 0))
    return found


def _start_time(pid: int, proc: int) -> int:
    return int(_stat(pid, proc)[19])


def _is_zombie(pid: int, proc: int) -> bool:
    return _stat(pid, proc)[0] in (b"Z", b"X")


def _stat(pid: int, proc: int) -> list[bytes]:
    """The fields of /proc/PID/stat after the name, which may itself contain blanks and parentheses."""
    return _contents(f"{pid}/stat", proc).rpartition(b")")[2].split()


def _boot(proc: int) -> str:
    return _contents("sys/kernel/random/boot_id", proc).decode().strip()


def _contents(path: str, directory: int) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        return os.read(handle, 4096)
    finally:
        os.close(handle)


def _open_directory(directory: int | str) -> int:
    if isinstance(directory, int):
        return os.dup(directory)
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _temporary(directory: int, name: str, record: Any) -> str:
    temporary = f".{name}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o600, dir_fd=directory)
    try:
        left = memoryview(json.dumps(record).encode())
        while left:
            left = left[os.write(handle, left):]
    except OSError:
        os.unlink(temporary, dir_fd=directory)
        raise
    finally:
        os.close(handle)
    return temporary
