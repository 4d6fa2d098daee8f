"""The system calls that make a sandbox, by ctypes.

Python 3.11 has neither `unshare` nor `setns`, and no version has the mount calls. The programs that offer them cost ten
times as long per pod as the calls themselves, so this is the thinnest possible layer over libc: each function is one
call, raises OSError with a sentence that names the call and its argument, and knows nothing about pods. Only small
standard modules are imported, because every pause and shim process carries them.
"""

import ctypes
import errno
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000
MNT_DETACH = 0x2

ATTR_RDONLY = 0x1
ATTR_NOSUID = 0x2
ATTR_NODEV = 0x4
ATTR_NOEXEC = 0x8

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 0x1
_OPEN_TREE_CLOEXEC = 0x80000
_MOVE_MOUNT_F_EMPTY_PATH = 0x4

# Numbers above 423 are the same on every architecture; pivot_root is older than that agreement.
_SYS_OPEN_TREE = 428
_SYS_MOVE_MOUNT = 429
_SYS_OPENAT2 = 437
_SYS_MOUNT_SETATTR = 442
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}

_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522

# What containerd gives a container that asks for nothing, by capability number.
DEFAULT_CAPABILITIES = frozenset({
    0,   # CHOWN
    1,   # DAC_OVERRIDE
    3,   # FOWNER
    4,   # FSETID
    5,   # KILL
    6,   # SETGID
    7,   # SETUID
    8,   # SETPCAP
    10,  # NET_BIND_SERVICE
    13,  # NET_RAW
    18,  # SYS_CHROOT
    27,  # MKNOD: harmless, every mount of a pod but its six device files is nodev
    29,  # AUDIT_WRITE
    31,  # SETFCAP
})
# The names as a securityContext writes them, in the order of their numbers.
CAPABILITY_NAMES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64), ("clear", ctypes.c_uint64), ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilityHalf(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), f"unshare({flags:#x})")


def setns(fd: int, flags: int) -> None:
    """Join the namespaces of a process, given its pidfd (needs Linux 5.8)."""
    _checked(_libc.setns(fd, flags), f"setns({flags:#x})")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode() or None
    )
    _checked(result, f"mount {kind or 'flags'} on {target}" + (f" with {options}" if options else ""))


def propagation(flags: int) -> None:
    """Say for all mounts of this namespace whether later mounts are passed on."""
    mount("none", "/", "", MS_REC | flags)


def unmount(target: str, flags: int = 0) -> None:
    _checked(_libc.umount2(os.fsencode(target), flags), f"unmount {target}")


def open_beneath(folder: int, path: str) -> int:
    """A place below an open directory, only to be named by (O_PATH). Links that lead out of the directory are refused
    with EXDEV, by the kernel: whoever writes below it cannot put one in the way between a look and the use."""
    wanted = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    fd = -1
    for _ in range(100):      # EAGAIN: something above was just renamed, and the kernel could not tell
        fd = int(_libc.syscall(_SYS_OPENAT2, folder, os.fsencode(path), wanted, ctypes.sizeof(wanted)))
        if fd >= 0 or ctypes.get_errno() != errno.EAGAIN:
            break
    _checked(fd, f"open {path} in a volume")
    return fd


def clone_tree(path: str | int, attributes: int) -> int:
    """A detached copy of what is mounted at `path` and below, as a file descriptor; `attach` puts it somewhere.

    Source and target can so be looked up in different roots: the source as the host sees it, the target as the
    container does, whose symbolic links must not lead out.
    """
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    if isinstance(path, int):
        fd = int(_libc.syscall(_SYS_OPEN_TREE, path, b"", flags | _AT_EMPTY_PATH))
    else:
        fd = int(_libc.syscall(_SYS_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags))
    _checked(fd, f"open_tree {path}")
    _set_attributes(fd, "", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes)
    return fd


def restrict(path: str, attributes: int) -> None:
    """Add attributes to one mount, keeping those it has."""
    _set_attributes(_AT_FDCWD, path, 0, attributes)


def attach(tree: int, target: str) -> None:
    """Mount what `clone_tree` returned."""
    result = _libc.syscall(_SYS_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)
    _checked(result, f"move_mount to {target}")


def pivot_root(new: str, old: str) -> None:
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(38, f"pivot_root: number of the call is not known for {os.uname().machine}")
    _checked(_libc.syscall(number, os.fsencode(new), os.fsencode(old)), f"pivot_root to {new}")


def set_hostname(name: str) -> None:
    raw = name.encode()
    _checked(_libc.sethostname(raw, len(raw)), f"sethostname {name}")


def set_sysctl(name: str, value: str) -> None:
    """Set a sysctl of the caller's namespaces, where the kernel has it."""
    try:
        handle = os.open(f"/proc/sys/{name}", os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.write(handle, value.encode())
    finally:
        os.close(handle)


def set_process_name(name: str) -> None:
    """What `ps -o comm` shows."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def adopt_orphans() -> None:
    """Be the parent of whatever loses its own below us, as an init is."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl(PR_SET_CHILD_SUBREAPER)")


def set_dumpable(allowed: bool) -> None:
    """Whether processes of the same user may look into this one through /proc."""
    _checked(_libc.prctl(_PR_SET_DUMPABLE, int(allowed), 0, 0, 0), "prctl(PR_SET_DUMPABLE)")


def forbid_new_privileges() -> None:
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def bound_capabilities(allowed: frozenset[int]) -> None:
    """Nothing executed from here on can have a capability that is not in `allowed`."""
    for number in range(len(CAPABILITY_NAMES)):
        if number not in allowed and _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            if ctypes.get_errno() == 22:
                return  # EINVAL: this kernel knows no capability of that number, nor any above
            _checked(-1, f"prctl(PR_CAPBSET_DROP, {CAPABILITY_NAMES[number]})")


def set_capabilities(allowed: frozenset[int]) -> None:
    """Have exactly these capabilities, none of them inherited by what a user other than 0 executes."""
    halves = (_CapabilityHalf * 2)()
    for number in allowed:
        halves[number // 32].effective |= 1 << number % 32
        halves[number // 32].permitted |= 1 << number % 32
    header = _CapabilityHeader(_CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(halves)), "capset")


def _set_attributes(directory: int, path: str, flags: int, attributes: int) -> None:
    wanted = _MountAttributes(set=attributes)
    result = _libc.syscall(
        _SYS_MOUNT_SETATTR, directory, os.fsencode(path), flags, ctypes.byref(wanted), ctypes.sizeof(wanted)
    )
    _checked(result, f"mount_setattr {path}")


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
